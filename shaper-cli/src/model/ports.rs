//! Ports of a rule.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// Which ports a rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ports {
    /// None.
    #[default]
    Any,
    /// Source or destination.
    Either(PortRange),
    /// The source.
    Source(PortRange),
    /// The destination.
    Destination(PortRange),
    /// Both.
    Both {
        /// The source.
        sport: PortRange,
        /// The destination.
        dport: PortRange,
    },
}

/// Ports from the first to the last, 1 ..= 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last; not less than the first.
    pub last: u16,
}

impl fmt::Display for PortRange {
    /// `53` or `1000-2000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { write!(f, "{first}") } else { write!(f, "{first}-{last}") }
    }
}

impl FromStr for PortRange {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (port(first, text)?, port(last, text)?),
            None => {
                let port = port(text, text)?;
                (port, port)
            }
        };
        if first > last {
            return Err(Invalid::new(
                format!("`{text}` ends before it begins"),
                format!("write `{}`", Self { first: last, last: first }),
            ));
        }
        Ok(Self { first, last })
    }
}

fn port(digits: &str, text: &str) -> Result<u16, Invalid> {
    // `parse` takes a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|port| plain && *port > 0).ok_or_else(|| {
        let place = if digits == text { String::new() } else { format!(" in `{text}`") };
        Invalid::new(format!("`{digits}`{place} is not a port"), "write 1 to 65535, or a range like 1000-2000")
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_and_written() {
        for (text, first, last, shown) in [
            ("1", 1, 1, "1"),
            ("65535", 65_535, 65_535, "65535"),
            ("1000-2000", 1000, 2000, "1000-2000"),
            ("53-53", 53, 53, "53"),
        ] {
            let range: PortRange = text.parse().unwrap();
            assert_eq!(range, PortRange { first, last });
            assert_eq!(range.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for (text, cause, hint) in [
            ("", "`` is not a port", None),
            ("0", "`0` is not a port", None),
            ("65536", "`65536` is not a port", None),
            ("+53", "`+53` is not a port", None),
            ("dns", "`dns` is not a port", None),
            (" 53", "` 53` is not a port", None),
            ("-53", "`` in `-53` is not a port", None),
            ("1-", "`` in `1-` is not a port", None),
            ("1-2-3", "`2-3` in `1-2-3` is not a port", None),
            ("0-5", "`0` in `0-5` is not a port", None),
            ("20-10", "`20-10` ends before it begins", Some("write `10-20`")),
        ] {
            let invalid = text.parse::<PortRange>().unwrap_err();
            assert_eq!(invalid.to_string(), cause);
            assert_eq!(invalid.hint(), hint.unwrap_or("write 1 to 65535, or a range like 1000-2000"));
        }
    }
}
