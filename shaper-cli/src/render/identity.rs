//! Whose bucket it is, as text. Parts that are not in the key are absent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shaper_common::key::{self, Address, Family, Key};

use crate::model::{Per, protocol};

/// The parts of a key. All are absent for frames whose IP header cannot be read, which share one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// Source address, or a CIDR where the key is a prefix.
    pub(super) src: Option<String>,
    /// Destination, likewise.
    pub(super) dst: Option<String>,
    /// Name or number of the IP protocol.
    pub(super) proto: Option<String>,
    /// Source port; 0 for protocols without ports and for fragments.
    pub(super) sport: Option<u16>,
    /// Destination port, likewise.
    pub(super) dport: Option<u16>,
}

impl Identity {
    pub(super) fn of(key: &Key, per: &Per) -> Self {
        let (src, dst) = (text(key.src, key, per), text(key.dst, key, per));
        match per.kind {
            _ if key.family == Family::None => Self::default(),
            key::Per::Flow => Self {
                src,
                dst,
                proto: Some(protocol::name(key.proto)),
                sport: Some(key.sport),
                dport: Some(key.dport),
            },
            key::Per::Src => Self { src, ..Self::default() },
            key::Per::Dst => Self { dst, ..Self::default() },
            key::Per::Pair => Self { src, dst, ..Self::default() },
            key::Per::Dev => Self::default(),
        }
    }
}

fn text(address: Address, key: &Key, per: &Per) -> Option<String> {
    let (address, length) = match (key.family, octets(address)) {
        (Family::None, _) => return None,
        (Family::V4, [a, b, c, d, ..]) => (IpAddr::from(Ipv4Addr::new(a, b, c, d)), per.prefix.v4),
        (Family::V6, octets) => (IpAddr::from(Ipv6Addr::from(octets)), per.prefix.v6),
    };
    Some(if per.is_prefix() { format!("{address}/{length}") } else { address.to_string() })
}

/// The address as it stands in the packet.
fn octets(address: Address) -> [u8; 16] {
    let mut octets = [0; 16];
    for (octet, byte) in octets.iter_mut().zip(address.into_iter().flat_map(u64::to_ne_bytes)) {
        *octet = byte;
    }
    octets
}
