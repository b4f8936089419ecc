//! Packets that pass a limit with a mark: what changes in them, and how their checksum stays right.

use crate::{
    key::Family,
    packet::{Facts, MAX_OFFSET, Packet},
    verdict::Action,
};

/// ECN field of the traffic class (RFC 3168): the two lowest bits.
const ECN: u8 = 0b11;
/// Not ECN-capable transport.
const NOT_ECT: u8 = 0b00;
/// Congestion experienced.
const CE: u8 = 0b11;

/// Offset of the type of service in an IPv4 header, behind version and length.
const IPV4_TOS: u32 = 1;
/// Offset of the header checksum in an IPv4 header.
const IPV4_CHECKSUM: u32 = 10;

/// Where the traffic class of a packet stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClass {
    family: Family,
    offset: u32,
}

/// What an action does to a packet that passes: a kind, and for a traffic class the old and the new one, for a firewall
/// mark the mark. A number and no enum, since the BPF target's verifier takes no register that was not written, and a
/// variant without fields writes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change(u64);

const TRAFFIC_CLASS: u64 = 1;
const MARK: u64 = 2;
/// Bits of the kind.
const KIND: u64 = 0xff;
const ARGUMENT_SHIFT: u32 = 8;

/// A packet that can be written to.
pub trait Rewrite {
    /// Writes bytes, in the packet, at `offset`; false if that is not possible.
    fn write<const N: usize>(&self, offset: u32, bytes: [u8; N]) -> bool;
    /// Sets the firewall mark; false where there is none.
    fn set_mark(&self, mark: u32) -> bool;
}

impl From<&Facts> for TrafficClass {
    #[inline(always)]
    fn from(facts: &Facts) -> Self {
        Self { family: facts.family, offset: facts.l2_len }
    }
}

impl TrafficClass {
    #[inline(always)]
    fn read<P: Packet + ?Sized>(self, packet: &P) -> Option<u8> {
        match self.family {
            Family::V4 => packet.read::<1>(self.offset + IPV4_TOS).map(|[tos]| tos),
            // Four bits of version, eight of traffic class, twenty of flow label (RFC 8200, section 3).
            Family::V6 => packet.read::<2>(self.offset).map(|[high, low]| high << 4 | low >> 4),
            Family::None => None,
        }
    }

    #[inline(always)]
    fn write<P: Packet + Rewrite + ?Sized>(self, packet: &P, old: u8, new: u8) -> bool {
        match self.family {
            Family::V4 => {
                let at = self.offset + IPV4_CHECKSUM;
                let Some(sum) = packet.read::<2>(at) else { return false };
                let sum = updated_checksum(u16::from_be_bytes(sum), old.into(), new.into());
                packet.write(self.offset + IPV4_TOS, [new]) && packet.write(at, sum.to_be_bytes())
            }
            Family::V6 => {
                let Some([high, low]) = packet.read::<2>(self.offset) else { return false };
                packet.write(self.offset, [high & 0xf0 | new >> 4, new << 4 | low & 0xf])
            }
            Family::None => false,
        }
    }
}

/// The Internet checksum of data in which one 16-bit word has changed (RFC 1624, equation 3).
const fn updated_checksum(sum: u16, old: u16, new: u16) -> u16 {
    let mut total = !sum as u32 + !old as u32 + new as u32;
    total = (total & 0xffff) + (total >> 16);
    total = (total & 0xffff) + (total >> 16);
    !(total as u16)
}

/// What `action` changes in a packet, or `None` if it has to be dropped.
#[inline(always)]
pub fn plan<P: Packet + ?Sized>(packet: &P, class: TrafficClass, action: Action) -> Option<Change> {
    match action {
        Action::Drop => None,
        Action::Pass => Some(Change::NONE),
        Action::Mark(mark) => Some(Change::mark(mark)),
        Action::Dscp(dscp) => class.read(packet).map(|old| Change::class(old, dscp << 2 | old & ECN)),
        Action::Ecn => match class.read(packet)? {
            old if old & ECN == NOT_ECT => None,
            old if old & ECN == CE => Some(Change::NONE),
            old => Some(Change::class(old, old | CE)),
        },
    }
}

impl Change {
    /// Nothing.
    pub const NONE: Self = Self(0);

    #[inline(always)]
    const fn class(old: u8, new: u8) -> Self {
        Self(TRAFFIC_CLASS | (old as u64 | (new as u64) << 8) << ARGUMENT_SHIFT)
    }

    #[inline(always)]
    const fn mark(mark: u32) -> Self {
        Self(MARK | (mark as u64) << ARGUMENT_SHIFT)
    }

    /// Makes the change; false if it could not be made.
    #[inline(always)]
    pub fn apply<P: Packet + Rewrite + ?Sized>(self, packet: &P, at: TrafficClass) -> bool {
        let argument = (self.0 >> ARGUMENT_SHIFT) as u32;
        match self.0 & KIND {
            TRAFFIC_CLASS => {
                let (old, new) = (argument as u8, (argument >> 8) as u8);
                old == new || at.write(packet, old, new)
            }
            MARK => packet.set_mark(argument),
            _ => true,
        }
    }

    /// Whether a packet with this change counts as marked.
    #[inline(always)]
    #[must_use]
    pub const fn marks(self) -> bool {
        self.0 & KIND != 0
    }

    /// At most 48 bits.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The change with these bits.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl TrafficClass {
    /// The place as one number of at most 24 bits.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.family as u64 | (self.offset as u64) << 8
    }

    /// The place with these bits.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        let family = match bits as u8 {
            4 => Family::V4,
            6 => Family::V6,
            _ => Family::None,
        };
        Self { family, offset: (bits >> 8) as u32 & (MAX_OFFSET - 1) }
    }
}
