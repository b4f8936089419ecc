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

/// In place of an ethertype: there are more tags than are walked.
const TOO_MANY: u32 = 1 << 16;

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
    let Some(ethertype) = packet.read(ETHERTYPE_OFFSET).map(u16::from_be_bytes) else {
        return (Network::Other, HEADER_LEN);
    };
    if !is_tag(ethertype) {
        return (network(ethertype), HEADER_LEN);
    }
    let end = skip_tags(packet);
    let offset = packet.blur(end as u32);
    match (end >> 32) as u32 {
        TOO_MANY => (Network::TooManyTags, offset),
        ethertype => (network(ethertype as u16), offset),
    }
}

/// What is behind the tags: its ethertype, or [`TOO_MANY`], in the upper half, its offset in the lower.
///
/// A function of its own in the BPF object, which returns one number: a walk that ends in many places is then checked,
/// and kept in the processor's caches, apart from what every packet runs through.
#[inline(never)]
fn skip_tags<P: Packet + ?Sized>(packet: &P) -> u64 {
    let mut offset = ETHERTYPE_OFFSET;
    for _ in packet.stripped_tags()..=MAX_TAGS {
        let Some(ethertype) = packet.read(offset).map(u16::from_be_bytes) else { return u64::from(offset) };
        offset += 2;
        if !is_tag(ethertype) {
            return u64::from(ethertype) << 32 | u64::from(offset);
        }
        // What is left of the tag is its control information.
        offset += TAG_LEN - 2;
    }
    // As after the last tag that was walked: the ethertype of the next is read, its control information is not.
    u64::from(TOO_MANY) << 32 | u64::from(offset - 2)
}

#[inline(always)]
const fn network(ethertype: u16) -> Network {
    match ethertype {
        IPV4 => Network::V4,
        IPV6 => Network::V6,
        _ => Network::Other,
    }
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
