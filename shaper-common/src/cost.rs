//! What a packet costs: bytes by the chosen account, and the number of packets it is on the wire.

use crate::packet::{self, Facts, Packet};

/// Bytes of a VLAN tag.
const TAG_LEN: u32 = 4;

/// Which bytes count.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    /// The frame with its link header and VLAN tags, without frame check sequence.
    L2 = 0,
    /// The frame without its link header.
    L3 = 1,
}

/// How bytes are counted. `wire` is L2 with 24 bytes of overhead (preamble, check sequence, gap) and 84 at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accounting {
    /// Where counting starts.
    pub account: Account,
    /// Bytes added for each packet on the wire; may be negative, as in `tc stab`.
    pub overhead: i32,
    /// Least bytes a packet on the wire counts, overhead included.
    pub mpu: u32,
}

/// What a packet costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes.
    pub bytes: u64,
    /// Packets: 1, or the number of segments.
    pub packets: u64,
}

/// The cost of a packet with these facts.
///
/// A GSO packet costs what its segments will cost, or have cost before GRO joined them: each has its own headers, and
/// each its own overhead and minimum.
#[inline(always)]
pub fn of<P: Packet + ?Sized>(packet: &P, facts: &Facts, accounting: Accounting) -> Cost {
    let offload = packet.offload();
    let tags = packet.stripped_tags() * TAG_LEN;
    let uncounted = if matches!(accounting.account, Account::L3) { facts.l2_len + tags } else { 0 };
    let len = packet.len() + tags - uncounted.min(packet.len() + tags);
    if offload.segment_size == 0 {
        return Cost { bytes: u64::from(accounting.one(len)), packets: 1 };
    }
    let header = match offload.segment_header {
        0 => packet::header_len(packet, facts),
        known => known,
    };
    let header = header + tags - uncounted.min(header + tags);
    accounting.segments(len, header, offload.segment_size)
}

/// The cost of a frame that is not charged to anybody, for its counter.
#[inline(always)]
pub fn unlimited<P: Packet + ?Sized>(packet: &P) -> Cost {
    Cost { bytes: u64::from(packet.len() + packet.stripped_tags() * TAG_LEN), packets: 1 }
}

impl Accounting {
    /// Bytes that one packet of `len` bytes counts: at least one, as in tc, so that no overhead makes packets free.
    #[inline(always)]
    #[must_use]
    pub const fn one(&self, len: u32) -> u32 {
        let adjusted = len.saturating_add_signed(self.overhead);
        let least = if self.mpu == 0 { 1 } else { self.mpu };
        if adjusted < least { least } else { adjusted }
    }

    /// The cost of `len` bytes that are one `header` and payload to be cut into segments of `segment_size`.
    #[must_use]
    pub const fn segments(&self, len: u32, header: u32, segment_size: u32) -> Cost {
        let payload = len.saturating_sub(header);
        if payload <= segment_size {
            return Cost { bytes: self.one(len) as u64, packets: 1 };
        }
        let full = (payload - 1) / segment_size;
        let last = payload - full * segment_size;
        let bytes = full as u64 * self.one(header + segment_size) as u64 + self.one(header + last) as u64;
        Cost { bytes, packets: full as u64 + 1 }
    }
}
