//! Whether a packet may be said to have ports: etherparse, which walks only what the packet holds and the length field
//! of its IP header vouches for, and beyond what it knows (mobility headers, hop-by-hop options in any place,
//! authentication headers too short to be any, which Linux walks) a step of our own.

use etherparse::{IpNumber, Ipv6ExtensionsSlice, LaxNetSlice, LaxSlicedPacket};
use shaper_common::packet::proto;

/// What stands behind the headers of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Upper<'a> {
    pub(super) proto: u8,
    pub(super) fragmented: bool,
    pub(super) bytes: &'a [u8],
}

impl Upper<'_> {
    /// The ports, if there is a transport header that has them; zeros if not.
    pub(super) fn ports(&self) -> (u16, u16) {
        let has_ports = [proto::TCP, proto::UDP, proto::UDP_LITE, proto::SCTP, proto::DCCP].contains(&self.proto);
        match *self.bytes {
            [s0, s1, d0, d1, ..] if has_ports && !self.fragmented => {
                (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]))
            }
            _ => (0, 0),
        }
    }
}

/// What stands behind the headers of the IP packet that starts `bytes`; nothing if the IP header cannot be read.
pub(super) fn upper(bytes: &[u8]) -> Option<Upper<'_>> {
    let read = LaxSlicedPacket::from_ip(bytes).ok()?;
    let (payload, chain) = match &read.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            // Where etherparse is lax, a total length that does not cover its own header is no length at all.
            let vouched = header.total_len() == 0 || usize::from(header.total_len()) >= header.slice().len();
            let at = header.slice().len();
            let payload = if vouched { ip.payload().payload } else { &[] };
            // Authentication headers over IPv4 are not walked.
            if header.protocol().0 == proto::AH {
                let fragmented = header.is_fragmenting_payload();
                return Some(Upper { proto: proto::AH, fragmented, bytes: bytes.get(at..)? });
            }
            (Upper { proto: header.protocol().0, fragmented: header.is_fragmenting_payload(), bytes: payload }, false)
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let payload = ip.payload();
            let upper = Upper { proto: payload.ip_number.0, fragmented: payload.fragmented, bytes: payload.payload };
            (upper, true)
        }
        _ => return None,
    };
    Some(if chain { walk(payload) } else { payload })
}

/// Goes on where etherparse stops.
fn walk(upper: Upper<'_>) -> Upper<'_> {
    let &[next, units, ..] = upper.bytes else { return upper };
    let len = match upper.proto {
        proto::MOBILITY | proto::HOP_BY_HOP => (usize::from(units) + 1) * 8,
        proto::AH if units == 0 => 8,
        _ => return upper,
    };
    if upper.fragmented || upper.bytes.len() < len {
        return upper;
    }
    let (chain, next, rest, _) = Ipv6ExtensionsSlice::from_slice_lax(IpNumber(next), &upper.bytes[len..]);
    walk(Upper { proto: next.0, fragmented: chain.is_fragmenting_payload(), bytes: rest })
}
