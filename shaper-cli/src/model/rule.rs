//! A rule: what it matches and what limits that.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Limits, Net, Per, Ports, per, protocol};
use crate::{error::Invalid, text::is_unsafe};

/// Longest name, bytes.
const LONGEST_NAME: usize = 64;

/// The name of what no rule matches.
pub const DEFAULT: &str = "default";

/// A rule of an attachment, besides the default. Its place in [`super::Config::rules`] is its age: the oldest is first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What people call it; no other rule of the attachment has this name. It is the same rule as long as it has it.
    pub name: String,
    /// Which packets.
    #[serde(rename = "match")]
    pub matches: Match,
    /// Who shares a bucket; as the attachment if `None`.
    #[serde(default, with = "per::optional_text")]
    pub per: Option<Per>,
    /// What limits them; `total` is of the rule. No limit and no block: they are not limited.
    pub limits: Limits,
}

/// Which packets a rule is for: all that is named here has to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Match {
    /// The address is in one of these; any address if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nets: Vec<Net>,
    /// Whose address.
    #[serde(default)]
    pub side: Side,
    /// IP protocol number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<u8>,
    /// Ports of TCP, UDP, UDP-Lite, SCTP and DCCP.
    #[serde(default)]
    pub ports: Ports,
}

/// Which address of a packet a rule names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// That of the other end: the source of what is received, the destination of what is sent.
    #[default]
    Remote,
    /// That of this end.
    Local,
}

/// What two rules of an attachment cannot have in common: a prefix, or any address, with the rest of the match.
pub type Part = (Option<Net>, Side, Option<u8>, Ports);

impl Match {
    /// The parts: one for each prefix, or one for any address.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let Self { nets, side, proto, ports } = self;
        // Where no address is named it does not matter whose.
        let any = nets.is_empty().then_some((None, Side::default(), *proto, *ports));
        any.into_iter().chain(nets.iter().map(|net| (Some(*net), *side, *proto, *ports)))
    }

    /// The first prefix, how many more there are, and the rest: a line, and the name of a rule that has none.
    #[must_use]
    pub fn short(&self) -> String {
        let more = self.nets.len().saturating_sub(1);
        match self.nets.first() {
            Some(first) if more > 0 => format!("{first} +{more}{}", Rest(self)),
            Some(first) => format!("{first}{}", Rest(self)),
            None => format!("any{}", Rest(self)),
        }
    }
}

impl fmt::Display for Match {
    /// All of it, e.g. `10.20.0.0/16, 2001:db8:20::/48 udp port 53`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nets.is_empty() {
            f.write_str("any")?;
        }
        for (n, net) in self.nets.iter().enumerate() {
            write!(f, "{}{net}", if n == 0 { "" } else { ", " })?;
        }
        Rest(self).fmt(f)
    }
}

/// What a match names besides prefixes, each word behind a space.
struct Rest<'a>(&'a Match);

impl fmt::Display for Rest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Match { side, proto, ports, .. } = self.0;
        if let Some(proto) = proto {
            write!(f, " {}", protocol::name(*proto))?;
        }
        match ports {
            Ports::Any => {}
            Ports::Either(port) => write!(f, " port {port}")?,
            Ports::Source(sport) => write!(f, " sport {sport}")?,
            Ports::Destination(dport) => write!(f, " dport {dport}")?,
            Ports::Both { sport, dport } => write!(f, " sport {sport} dport {dport}")?,
        }
        match side {
            Side::Remote => Ok(()),
            Side::Local => f.write_str(" local"),
        }
    }
}

/// Reads a name for a rule.
///
/// # Errors
///
/// If a rule cannot be called that.
pub fn name(text: &str) -> Result<String, Invalid> {
    let cause = if text.is_empty() || text.len() > LONGEST_NAME {
        format!("`{text}` has {} bytes", text.len())
    } else if text.chars().any(is_unsafe) {
        format!("`{text}` has characters that cannot be shown")
    } else if text.starts_with('-') {
        format!("`{text}` looks like an option")
    } else if text.trim() != text {
        format!("`{text}` begins or ends with a space")
    } else if text == DEFAULT {
        format!("`{text}` is what no rule matches")
    } else {
        return Ok(text.to_owned());
    };
    Err(Invalid::new(
        cause,
        format!("names have 1 to {LONGEST_NAME} bytes that can be shown, no `-` first, and none is `{DEFAULT}`"),
    ))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn matches(nets: &[&str], side: Side, proto: Option<u8>, ports: Ports) -> Match {
        Match { nets: nets.iter().map(|net| net.parse().unwrap()).collect(), side, proto, ports }
    }

    #[test]
    fn a_match_is_words() {
        let port = |text: &str| text.parse().unwrap();
        for (matches, text, short) in [
            (Match::default(), "any", "any"),
            (matches(&["10.20.0.0/16"], Side::Remote, None, Ports::Any), "10.20.0.0/16", "10.20.0.0/16"),
            (
                matches(&["10.20.0.0/16"], Side::Remote, Some(17), Ports::Either(port("53"))),
                "10.20.0.0/16 udp port 53",
                "10.20.0.0/16 udp port 53",
            ),
            (
                matches(&[], Side::Local, Some(6), Ports::Destination(port("80-90"))),
                "any tcp dport 80-90 local",
                "any tcp dport 80-90 local",
            ),
            (
                matches(&["10.0.0.1", "2001:db8::/32"], Side::Local, Some(200), Ports::Source(port("1"))),
                "10.0.0.1/32, 2001:db8::/32 200 sport 1 local",
                "10.0.0.1/32 +1 200 sport 1 local",
            ),
            (
                matches(&["::/0"], Side::Remote, None, Ports::Both { sport: port("1"), dport: port("2-3") }),
                "::/0 sport 1 dport 2-3",
                "::/0 sport 1 dport 2-3",
            ),
        ] {
            assert_eq!((matches.to_string().as_str(), matches.short().as_str()), (text, short));
        }
    }

    #[test]
    fn a_match_has_a_part_for_each_prefix() {
        let both = matches(&["10.0.0.0/8", "::/0"], Side::Local, Some(6), Ports::Any);
        let expected = both.nets.iter().map(|net| (Some(*net), Side::Local, Some(6), Ports::Any));
        assert!(both.parts().eq(expected));
        let any = matches(&[], Side::Local, None, Ports::Any);
        assert!(any.parts().eq([(None, Side::Remote, None, Ports::Any)]));
    }

    #[test]
    fn names_can_be_shown_and_typed() {
        for good in ["guests", "10.20.0.0/16 udp port 53", "b\u{fc}ro", "Default", &"x".repeat(64)] {
            assert_eq!(name(good).unwrap(), good);
        }
        let long = "x".repeat(65);
        for (bad, cause) in [
            ("", "`` has 0 bytes"),
            (long.as_str(), &*format!("`{long}` has 65 bytes")),
            ("a\nb", "`a\nb` has characters that cannot be shown"),
            ("--all", "`--all` looks like an option"),
            (" x", "` x` begins or ends with a space"),
            ("default", "`default` is what no rule matches"),
        ] {
            assert_eq!(name(bad).unwrap_err().to_string(), cause);
        }
    }
}
