//! IPv6 and its extension headers (RFC 8200).

use super::{Facts, Packet, proto, transport};
use crate::key::{Address, Family};

/// Extension headers that are walked. A packet with more keeps the number of the ninth as its protocol.
pub const MAX_EXTENSION_HEADERS: usize = 8;

const HEADER_LEN: u32 = 40;
/// Offset of the payload length; next header and hop limit follow it.
const PAYLOAD_LEN: u32 = 4;
const FRAGMENT_HEADER_LEN: u32 = 8;
/// Fragment offset (bits 3 to 15) and more fragments (bit 0); bits 1 and 2 are reserved.
const FRAGMENT_MASK: u16 = 0xfff9;
/// Neighbour discovery is only believed with the hop limit that no router can forward (RFC 4861, section 7.1).
const LINK_LOCAL_HOP_LIMIT: u8 = 255;
/// Router solicitation, router and neighbour advertisement, neighbour solicitation, redirect (RFC 4861).
const DISCOVERY: core::ops::RangeInclusive<u8> = 133..=137;
/// Bytes of the shortest of these, a router solicitation without options (RFC 4861, section 6.1.1).
const SHORTEST_DISCOVERY: u16 = 8;

/// The facts of an IPv6 packet whose header starts at `offset`, or `None` if that is no IPv6 header.
#[inline(always)]
pub(super) fn facts<P: Packet + ?Sized>(packet: &P, offset: u32) -> Option<Facts> {
    let [version, _, _, _, l0, l1, next, _, addresses @ ..] = packet.read::<{ HEADER_LEN as usize }>(offset)?;
    if version >> 4 != 6 {
        return None;
    }
    let first = offset + HEADER_LEN;
    let chain = if is_extension(next) {
        Chain::unpack(walk(packet, next, first), packet)
    } else {
        Chain { proto: next, offset: first, end: End::Upper }
    };
    let (sport, dport) = match chain.end {
        End::Upper => {
            let payload_len = u32::from(u16::from_be_bytes([l0, l1]));
            transport::ports(packet, chain.proto, chain.offset, chain.offset - first, payload_len)
        }
        End::Fragment | End::Stopped => (0, 0),
    };
    let [src, dst] = split(&addresses);
    Some(Facts {
        src,
        dst,
        sport,
        dport,
        proto: chain.proto,
        family: Family::V6,
        fragment: matches!(chain.end, End::Fragment),
        l2_len: offset,
        l4_offset: chain.offset,
    })
}

/// Where a chain of extension headers ended.
struct Chain {
    proto: u8,
    offset: u32,
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    /// At the header of the upper layer.
    Upper = 0,
    /// At a fragment header that is not atomic.
    Fragment = 1,
    /// At the end of the packet or after the last header that is walked.
    Stopped = 2,
}

impl Chain {
    /// The chain as one number.
    const fn pack(proto: u8, offset: u32, end: End) -> u64 {
        (proto as u64) | (end as u64) << 8 | (offset as u64) << 32
    }

    #[inline(always)]
    fn unpack<P: Packet + ?Sized>(packed: u64, packet: &P) -> Self {
        let end = match (packed >> 8) as u8 {
            0 => End::Upper,
            1 => End::Fragment,
            _ => End::Stopped,
        };
        Self { proto: packed as u8, offset: packet.blur((packed >> 32) as u32), end }
    }
}

/// Where the chain of extension headers ends that starts with `first` at `start`, packed.
///
/// A function of its own in the BPF object, like the walk over VLAN tags.
#[inline(never)]
fn walk<P: Packet + ?Sized>(packet: &P, first: u8, start: u32) -> u64 {
    let mut next = first;
    let mut offset = packet.blur(start);
    for _ in 0..MAX_EXTENSION_HEADERS {
        let Some([following, len, b2, b3]) = packet.read::<4>(offset) else {
            return Chain::pack(next, offset, End::Stopped);
        };
        let header_len = match next {
            proto::FRAGMENT => {
                if u16::from_be_bytes([b2, b3]) & FRAGMENT_MASK != 0 {
                    return Chain::pack(following, offset + FRAGMENT_HEADER_LEN, End::Fragment);
                }
                FRAGMENT_HEADER_LEN
            }
            // Four-byte units less two (RFC 4302, section 2.2) against eight-byte units less one.
            proto::AH => (u32::from(len) + 2) * 4,
            _ => (u32::from(len) + 1) * 8,
        };
        next = following;
        offset = packet.blur(offset + header_len);
        if !is_extension(next) {
            return Chain::pack(next, offset, End::Upper);
        }
    }
    Chain::pack(next, offset, End::Stopped)
}

#[inline(always)]
const fn is_extension(next: u8) -> bool {
    matches!(
        next,
        proto::HOP_BY_HOP | proto::ROUTING | proto::FRAGMENT | proto::AH | proto::DESTINATION | proto::MOBILITY
    )
}

/// Whether the IPv6 packet at `offset` is neighbour or router discovery.
#[inline(always)]
pub(super) fn is_exempt<P: Packet + ?Sized>(packet: &P, offset: u32) -> bool {
    let Some([l0, l1, next, hop_limit]) = packet.read::<4>(offset + PAYLOAD_LEN) else { return false };
    (next, hop_limit) == (proto::ICMPV6, LINK_LOCAL_HOP_LIMIT)
        && u16::from_be_bytes([l0, l1]) >= SHORTEST_DISCOVERY
        && packet.read::<1>(offset + HEADER_LEN).is_some_and(|[kind]| DISCOVERY.contains(&kind))
}

/// Source and destination address.
#[inline(always)]
fn split(bytes: &[u8; 32]) -> [Address; 2] {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |i: usize| u64::from_le_bytes(words[i]);
    [[word(0), word(1)], [word(2), word(3)]]
}
