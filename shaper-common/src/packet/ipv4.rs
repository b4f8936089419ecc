//! IPv4 (RFC 791).

use super::{Facts, Packet, transport};
use crate::key::Family;

const HEADER_LEN: usize = 20;
/// More fragments (bit 13) and the fragment offset (bits 0 to 12).
const FRAGMENT_MASK: u16 = 0x3fff;

/// The facts of an IPv4 packet whose header starts at `offset`.
#[inline(always)]
pub(super) fn facts<P: Packet + ?Sized>(packet: &P, offset: u32) -> Facts {
    let Some(header) = packet.read::<HEADER_LEN>(offset) else {
        return Facts::unreadable(offset);
    };
    let [version_ihl, _, l0, l1, _, _, f0, f1, _, proto, _, _, addresses @ ..] = header;
    let ihl = u32::from(version_ihl & 0xf) * 4;
    if version_ihl >> 4 != 4 || ihl < HEADER_LEN as u32 {
        return Facts::unreadable(offset);
    }
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    let fragment = u16::from_be_bytes([f0, f1]) & FRAGMENT_MASK != 0;
    let total_len = u32::from(u16::from_be_bytes([l0, l1]));
    let (sport, dport) = if fragment {
        (0, 0)
    } else {
        transport::ports(packet, proto, offset + ihl, ihl, total_len)
    };
    Facts {
        src: [u32::from_ne_bytes([s0, s1, s2, s3]), 0, 0, 0],
        dst: [u32::from_ne_bytes([d0, d1, d2, d3]), 0, 0, 0],
        sport,
        dport,
        proto,
        family: Family::V4,
        fragment,
        l2_len: offset,
        l4_offset: offset + ihl,
    }
}
