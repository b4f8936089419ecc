//! Address prefixes.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// Bits of an IPv6 address before the IPv4 address that is mapped into it.
const MAPPED: u8 = 96;

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

impl FromStr for Net {
    type Err = Invalid;

    /// Reads a CIDR; an address alone is a prefix of all its bits.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let place = || if len.is_some() { format!(" in `{text}`") } else { String::new() };
        let Ok(parsed) = address.parse::<IpAddr>() else {
            return Err(Invalid::new(
                format!("`{address}`{} is not an IP address", place()),
                "write an address or a prefix, like 192.0.2.7, 10.20.0.0/16 or 2001:db8:20::/48",
            ));
        };
        let most = if parsed.is_ipv4() { 32 } else { 128 };
        let length = |digits: &str| {
            // `parse` takes a sign.
            let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|len| plain && *len <= most).ok_or_else(|| {
                Invalid::new(format!("`{digits}` in `{text}` is not a prefix length"), format!("write 0 to {most}"))
            })
        };
        let len = len.map_or(Ok(most), length)?;
        if let IpAddr::V6(v6) = parsed
            && let Some(v4) = v6.to_ipv4_mapped().filter(|_| len >= MAPPED)
        {
            let meant = Self::around(v4.into(), len - MAPPED);
            return Err(Invalid::new(
                format!("`{text}` is IPv6 and matches no IPv4 packet"),
                format!("write `{meant}`"),
            ));
        }
        Self::new(parsed, len).ok_or_else(|| {
            Invalid::new(format!("`{text}` has host bits"), format!("write `{}`", Self::around(parsed, len)))
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_and_written() {
        for (text, shown) in [
            ("10.20.0.0/16", "10.20.0.0/16"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("192.0.2.7/32", "192.0.2.7/32"),
            ("2001:db8:20::/48", "2001:db8:20::/48"),
            ("2001:DB8:0::1", "2001:db8::1/128"),
            ("::/0", "::/0"),
            ("::fffe:0:0/95", "::fffe:0:0/95"),
        ] {
            let net: Net = text.parse().unwrap();
            assert_eq!(net.to_string(), shown);
            assert_eq!(shown.parse(), Ok(net));
        }
    }

    #[test]
    fn what_is_no_prefix_is_refused_with_what_is_meant() {
        const ADDRESS: &str = "write an address or a prefix, like 192.0.2.7, 10.20.0.0/16 or 2001:db8:20::/48";
        for (text, cause, hint) in [
            ("", "`` is not an IP address", ADDRESS),
            ("guests", "`guests` is not an IP address", ADDRESS),
            ("10.20/16", "`10.20` in `10.20/16` is not an IP address", ADDRESS),
            ("010.0.0.0/8", "`010.0.0.0` in `010.0.0.0/8` is not an IP address", ADDRESS),
            ("10.0.0.256", "`10.0.0.256` is not an IP address", ADDRESS),
            ("fe80::1%eth0", "`fe80::1%eth0` is not an IP address", ADDRESS),
            (" 10.0.0.0/8", "` 10.0.0.0` in ` 10.0.0.0/8` is not an IP address", ADDRESS),
            ("10.0.0.0/", "`` in `10.0.0.0/` is not a prefix length", "write 0 to 32"),
            ("10.0.0.0/33", "`33` in `10.0.0.0/33` is not a prefix length", "write 0 to 32"),
            ("10.0.0.0/+8", "`+8` in `10.0.0.0/+8` is not a prefix length", "write 0 to 32"),
            ("10.0.0.0/-8", "`-8` in `10.0.0.0/-8` is not a prefix length", "write 0 to 32"),
            ("10.0.0.0/8/8", "`8/8` in `10.0.0.0/8/8` is not a prefix length", "write 0 to 32"),
            ("10.0.0.0/255.0.0.0", "`255.0.0.0` in `10.0.0.0/255.0.0.0` is not a prefix length", "write 0 to 32"),
            ("::/129", "`129` in `::/129` is not a prefix length", "write 0 to 128"),
            ("10.20.0.1/16", "`10.20.0.1/16` has host bits", "write `10.20.0.0/16`"),
            ("10.0.0.1/0", "`10.0.0.1/0` has host bits", "write `0.0.0.0/0`"),
            ("2001:db8::1/32", "`2001:db8::1/32` has host bits", "write `2001:db8::/32`"),
            ("::ffff:10.0.0.0/104", "`::ffff:10.0.0.0/104` is IPv6 and matches no IPv4 packet", "write `10.0.0.0/8`"),
            ("::ffff:10.0.0.1/104", "`::ffff:10.0.0.1/104` is IPv6 and matches no IPv4 packet", "write `10.0.0.0/8`"),
            ("::ffff:0:0/96", "`::ffff:0:0/96` is IPv6 and matches no IPv4 packet", "write `0.0.0.0/0`"),
            ("::ffff:192.0.2.7", "`::ffff:192.0.2.7` is IPv6 and matches no IPv4 packet", "write `192.0.2.7/32`"),
        ] {
            let invalid = text.parse::<Net>().unwrap_err();
            assert_eq!((invalid.to_string().as_str(), invalid.hint()), (cause, hint));
        }
    }
}
