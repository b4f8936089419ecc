//! Command lines of this tool as people can give them to a shell.

use std::borrow::Cow;

use crate::text;

/// `shaper COMMAND DEV OPTIONS`; a device that looks like an option comes last, behind `--`. The options, if there are
/// any, start with a space.
pub(crate) fn line(netns: Option<&str>, command: &str, dev: &str, options: &str) -> String {
    let netns = match netns {
        Some(name) if name.starts_with('-') => format!("--netns={} ", quoted(name)),
        Some(name) => format!("-n {} ", quoted(name)),
        None => String::new(),
    };
    let place = quoted(dev);
    if dev.starts_with('-') {
        format!("shaper {netns}{command}{options} -- {place}")
    } else {
        format!("shaper {netns}{command} {place}{options}")
    }
}

/// A name as a shell reads it back.
pub(crate) fn quoted(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:+/%,=".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.into();
    }
    if !name.chars().any(text::is_unsafe) {
        return format!("'{}'", name.replace('\'', r"'\''")).into();
    }
    let mut word = String::from("$'");
    for c in name.chars() {
        match c {
            '\'' | '\\' => word.extend(['\\', c]),
            // In octal, a character is at most three digits: what follows is never read as part of it.
            c if text::is_unsafe(c) => {
                word.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")));
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word.into()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_that_looks_like_an_option_is_none() {
        assert_eq!(
            line(Some("-x"), "detach", "--all", " --direction ingress"),
            "shaper --netns=-x detach --direction ingress -- --all"
        );
        assert_eq!(line(None, "detach", "a-b", " --direction ingress"), "shaper detach a-b --direction ingress");
    }

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for name in [
            "eth0",
            "10.20.0.0/16",
            "dscp=CS1",
            "it's",
            "",
            "$(id)",
            "a b",
            "\u{1b}[2J",
            "\u{1b}1'\\",
            "\u{9b}7\u{7f}",
            "q\nr",
            "\u{202e}ü",
        ] {
            let word = quoted(name);
            assert!(!word.chars().any(text::is_unsafe), "{word:?}");
            let script = format!("printf %s {word}");
            let output = Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), name, "{word}");
        }
    }
}
