//! Ethernet II (IEEE 802.3) with a stack of VLAN tags (IEEE 802.1Q, 802.1ad).

use super::Packet;

/// VLAN tags that are walked. A frame with more is not read further.
pub const MAX_TAGS: u32 = 8;

const HEADER_LEN: u32 = 14;
const ETHERTYPE_OFFSET: u32 = 12;
const TAG_LEN: u32 = 4;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
const QINQ: u16 = 0x88a8;
/// What some switches put on the outer tag (before 802.1ad).
const QINQ_OLD: u16 = 0x9100;

/// What the frame carries.
#[derive(Clone, Copy)]
pub(super) enum Network {
    V4,
    V6,
    TooManyTags,
    Other,
}

/// The network protocol of a frame and the offset of its header. A frame that ends within its tags carries nothing.
#[inline(always)]
pub(super) fn walk<P: Packet + ?Sized>(packet: &P) -> (Network, u32) {
    let Some(mut ethertype) = packet.read(ETHERTYPE_OFFSET).map(u16::from_be_bytes) else {
        return (Network::Other, HEADER_LEN);
    };
    let mut offset = HEADER_LEN;
    if is_tag(ethertype) {
        let mut tags = packet.stripped_tags();
        for _ in 0..MAX_TAGS {
            if !is_tag(ethertype) {
                break;
            }
            if tags >= MAX_TAGS {
                return (Network::TooManyTags, offset);
            }
            tags += 1;
            // A tag is the two bytes of its control information and the ethertype of what follows.
            let Some(next) = packet.read(offset + 2).map(u16::from_be_bytes) else {
                return (Network::Other, offset);
            };
            ethertype = next;
            offset += TAG_LEN;
        }
        if is_tag(ethertype) {
            return (Network::TooManyTags, offset);
        }
        offset = packet.blur(offset);
    }
    let network = match ethertype {
        IPV4 => Network::V4,
        IPV6 => Network::V6,
        _ => Network::Other,
    };
    (network, offset)
}

/// The network protocol of a packet without link header, from the version in its first byte.
#[inline(always)]
pub(super) fn guess<P: Packet + ?Sized>(packet: &P) -> Network {
    match packet.read::<1>(0) {
        Some([first]) if first >> 4 == 4 => Network::V4,
        Some([first]) if first >> 4 == 6 => Network::V6,
        _ => Network::Other,
    }
}

#[inline(always)]
const fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, VLAN | QINQ | QINQ_OLD)
}
