//! IPv4 (RFC 791).

use super::{Facts, Packet, transport};
use crate::key::Family;

const HEADER_LEN: usize = 20;
/// Version 4 and a header of five to fifteen 32-bit words.
const VERSION_AND_LEN: core::ops::RangeInclusive<u8> = 0x45..=0x4f;
/// More fragments (bit 13) and the fragment offset (bits 0 to 12).
const FRAGMENT_MASK: u16 = 0x3fff;

/// The facts of an IPv4 packet whose header starts at `offset`, or `None` if that is no IPv4 header.
#[inline(always)]
pub(super) fn facts<P: Packet + ?Sized>(packet: &P, offset: u32) -> Option<Facts> {
    let [version_ihl, _, l0, l1, _, _, f0, f1, _, proto, _, _, addresses @ ..] = packet.read::<HEADER_LEN>(offset)?;
    if !VERSION_AND_LEN.contains(&version_ihl) {
        return None;
    }
    let ihl = u32::from(version_ihl & 0xf) * 4;
    let [s0, s1, s2, s3, d0, d1, d2, d3] = addresses;
    let fragment = u16::from_be_bytes([f0, f1]) & FRAGMENT_MASK != 0;
    let total_len = u32::from(u16::from_be_bytes([l0, l1]));
    let (sport, dport) = if fragment { (0, 0) } else { transport::ports(packet, proto, offset + ihl, ihl, total_len) };
    Some(Facts {
        src: [u64::from(u32::from_le_bytes([s0, s1, s2, s3])), 0],
        dst: [u64::from(u32::from_le_bytes([d0, d1, d2, d3])), 0],
        sport,
        dport,
        proto,
        family: Family::V4,
        fragment,
        l2_len: offset,
        l4_offset: offset + ihl,
    })
}
