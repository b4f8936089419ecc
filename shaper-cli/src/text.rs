//! Text for people, who read it on a terminal: names come from others and must not control it.

use std::io::{self, Write};

/// Whether a character does something to a terminal instead of being shown by it.
pub(crate) fn is_unsafe(c: char) -> bool {
    // The others turn the direction of writing round.
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes text with such characters as escapes, line breaks as they are. Every write has to be whole characters, which
/// formatting sees to.
pub(crate) struct Shown<'a>(pub(crate) &'a mut dyn Write);

impl Write for Shown<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        for part in text.split_inclusive(|c| c != '\n' && is_unsafe(c)) {
            let last = part.chars().next_back().filter(|c| *c != '\n' && is_unsafe(*c));
            let safe = &part[..part.len() - last.map_or(0, char::len_utf8)];
            self.0.write_all(safe.as_bytes())?;
            if let Some(c) = last {
                write!(self.0, "{}", c.escape_unicode())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_is_escaped() {
        for (name, shown) in [
            ("eth0", "eth0"),
            ("\u{1b}[2Jx", "\\u{1b}[2Jx"),
            ("a\u{7f}\u{9b}", "a\\u{7f}\\u{9b}"),
            ("\u{202e}ü\n", "\\u{202e}ü\n"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            write!(Shown(&mut out), "<{name}>").unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("<{shown}>"));
        }
    }
}
