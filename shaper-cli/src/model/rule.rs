//! A rule: what it matches and what limits that.

use std::{fmt, net::IpAddr};

use serde::{Deserialize, Serialize};

use super::{Limits, Per, per};

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

/// An address prefix without host bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Net {
    address: IpAddr,
    len: u8,
}

impl Net {
    /// The prefix, or `None` if the address has host bits or no such length.
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        let net = Self { address, len };
        (len <= net.bits() && net.masked().address == address).then_some(net)
    }

    /// The prefix of this length that holds `address`; a length that is too long is the longest.
    #[must_use]
    pub fn around(address: IpAddr, len: u8) -> Self {
        let net = Self { address, len };
        Self { address, len: len.min(net.bits()) }.masked()
    }

    /// Its first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits that count.
    #[must_use]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Whether every address of the IP version is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    const fn bits(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn masked(self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        };
        Self { address, ..self }
    }
}

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

impl Serialize for Net {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Net {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let net = text.split_once('/').and_then(|(address, len)| Self::new(address.parse().ok()?, len.parse().ok()?));
        net.ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a prefix")))
    }
}
