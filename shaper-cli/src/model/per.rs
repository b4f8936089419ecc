//! `--per`: what gets its own bucket.

use std::{fmt, str::FromStr};

use shaper_common::key::{self, Prefix};

use crate::error::Invalid;

/// Prefix lengths of keys that are whole addresses.
const WHOLE: Prefix = Prefix { v4: 32, v6: 128 };

/// Prefix length for IPv6 if only one was given: what a site gives to one customer or LAN.
const DEFAULT_V6: u8 = 64;

/// What gets its own bucket, with the prefix lengths of `src/N` and `dst/N` (32 and 128 otherwise).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Per {
    /// Which part of a packet's identity.
    pub kind: key::Per,
    /// Bits of an address that count.
    pub prefix: Prefix,
}

impl Per {
    /// The default: each flow.
    pub const FLOW: Self = Self { kind: key::Per::Flow, prefix: WHOLE };

    /// True if keys are prefixes and not addresses.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.prefix != WHOLE
    }
}

impl fmt::Display for Per {
    /// The spelling of `--per`, e.g. `flow`, `src/24,64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            key::Per::Flow => "flow",
            key::Per::Src => "src",
            key::Per::Dst => "dst",
            key::Per::Pair => "pair",
            key::Per::Dev => "dev",
        })?;
        if self.is_prefix() { write!(f, "/{},{}", self.prefix.v4, self.prefix.v6) } else { Ok(()) }
    }
}

impl FromStr for Per {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (word, lengths) = match text.split_once('/') {
            Some((word, lengths)) => (word, Some(lengths)),
            None => (text, None),
        };
        let kind = match word {
            "flow" => key::Per::Flow,
            "src" => key::Per::Src,
            "dst" => key::Per::Dst,
            "pair" => key::Per::Pair,
            "dev" => key::Per::Dev,
            _ => {
                return Err(Invalid::new(
                    format!("`{text}` is not a key"),
                    "keys: flow, src, dst, pair, src/N, dst/N, src/N,M, dst/N,M, dev",
                ));
            }
        };
        let prefix = match (kind, lengths) {
            (_, None) => WHOLE,
            (key::Per::Src | key::Per::Dst, Some(lengths)) => prefix(word, lengths)?,
            (_, Some(_)) => {
                return Err(Invalid::new(
                    format!("`{text}`: `{word}` has no prefix length"),
                    "only src and dst take one, as in src/24",
                ));
            }
        };
        Ok(Self { kind, prefix })
    }
}

/// Reads `N` or `N,M`.
fn prefix(word: &str, lengths: &str) -> Result<Prefix, Invalid> {
    let (v4, v6) = match lengths.split_once(',') {
        Some((v4, v6)) => (v4, Some(v6)),
        None => (lengths, None),
    };
    let length = |digits: &str, most: u8| {
        let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let length = digits.parse().ok().filter(|length| plain && *length <= most);
        match length {
            Some(0) => Err(Invalid::new(
                format!("`{word}/{lengths}`: a prefix of 0 bits is the same for everybody"),
                "lengths start at 1; one bucket for all is `--per dev`",
            )),
            Some(length) => Ok(length),
            None => Err(Invalid::new(
                format!("`{word}/{lengths}`: `{digits}` is not a prefix length of at most {most}"),
                format!("IPv4 comes first, then IPv6: {word}/24 or {word}/24,{DEFAULT_V6}, up to {word}/32,128"),
            )),
        }
    };
    Ok(Prefix { v4: length(v4, WHOLE.v4)?, v6: v6.map_or(Ok(DEFAULT_V6), |v6| length(v6, WHOLE.v6))? })
}

/// The key as text, for serde.
pub(super) mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Per;

    pub(in crate::model) fn serialize<S: Serializer>(per: &Per, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(per)
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Per, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

pub(super) mod optional_text {
    use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error};

    use super::Per;

    pub(in crate::model) fn serialize<S: Serializer>(per: &Option<Per>, to: S) -> Result<S::Ok, S::Error> {
        per.map(|per| per.to_string()).serialize(to)
    }

    pub(in crate::model) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Per>, D::Error> {
        Option::<String>::deserialize(from)?.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn keys_read_as_they_are_written() {
        for (text, kind, v4, v6, written) in [
            ("flow", key::Per::Flow, 32, 128, "flow"),
            ("src", key::Per::Src, 32, 128, "src"),
            ("dst", key::Per::Dst, 32, 128, "dst"),
            ("pair", key::Per::Pair, 32, 128, "pair"),
            ("dev", key::Per::Dev, 32, 128, "dev"),
            ("src/24", key::Per::Src, 24, 64, "src/24,64"),
            ("dst/1,1", key::Per::Dst, 1, 1, "dst/1,1"),
            ("src/32", key::Per::Src, 32, 64, "src/32,64"),
            ("src/32,128", key::Per::Src, 32, 128, "src"),
        ] {
            let per: Per = text.parse().unwrap();
            assert_eq!(per, Per { kind, prefix: Prefix { v4, v6 } }, "{text}");
            assert_eq!(per.to_string(), written);
            assert_eq!(written.parse(), Ok(per));
        }
    }

    #[test]
    fn refused_keys_say_why() {
        for (text, cause) in [
            ("", "`` is not a key"),
            ("Flow", "`Flow` is not a key"),
            ("source", "`source` is not a key"),
            ("src ", "`src ` is not a key"),
            ("flow/24", "`flow/24`: `flow` has no prefix length"),
            ("pair/24,64", "`pair/24,64`: `pair` has no prefix length"),
            ("dev/", "`dev/`: `dev` has no prefix length"),
            ("src/", "`src/`: `` is not a prefix length of at most 32"),
            ("src/33", "`src/33`: `33` is not a prefix length of at most 32"),
            ("src/256", "`src/256`: `256` is not a prefix length of at most 32"),
            ("src/+24", "`src/+24`: `+24` is not a prefix length of at most 32"),
            ("src/24,129", "`src/24,129`: `129` is not a prefix length of at most 128"),
            ("src/24,", "`src/24,`: `` is not a prefix length of at most 128"),
            ("src/24,64,1", "`src/24,64,1`: `64,1` is not a prefix length of at most 128"),
            ("src/0", "`src/0`: a prefix of 0 bits is the same for everybody"),
            ("dst/24,0", "`dst/24,0`: a prefix of 0 bits is the same for everybody"),
        ] {
            assert_eq!(text.parse::<Per>().unwrap_err().to_string(), cause);
        }
    }
}
