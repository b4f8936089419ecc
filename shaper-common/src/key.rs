//! Who shares a bucket: the part of a packet's addresses that identifies its flow.

use crate::{packet::Facts, siphash::SipKey};

/// IP version of a key. IPv4-mapped IPv6 addresses are IPv6.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// No readable address: a frame with more VLAN tags than are walked, or with a broken IP header.
    #[default]
    None = 0,
    /// IPv4; the address is the first word.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

/// An address: sixteen bytes in the order of the packet, as two little-endian words. IPv4 has the first four, and zeros
/// after them.
pub type Address = [u64; 2];

/// Which part of a packet's identity gets its own bucket.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Addresses, protocol and ports.
    Flow = 0,
    /// Source address or prefix.
    Src = 1,
    /// Destination address or prefix.
    Dst = 2,
    /// Source and destination address.
    Pair = 3,
    /// Everything on the device.
    Dev = 4,
}

impl Per {
    /// The kind with this number, as stored in the program's settings.
    #[must_use]
    pub const fn from_u8(n: u8) -> Option<Self> {
        Some(match n {
            0 => Self::Flow,
            1 => Self::Src,
            2 => Self::Dst,
            3 => Self::Pair,
            4 => Self::Dev,
            _ => return None,
        })
    }
}

/// Bits of an address that count, for `src/N` and `dst/N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// 0 ..= 32.
    pub v4: u8,
    /// 0 ..= 128.
    pub v6: u8,
}

/// The identity of a bucket. Parts that do not count are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Source address, or the prefix of it that counts.
    pub src: Address,
    /// Destination address, or the prefix of it that counts.
    pub dst: Address,
    /// Source port in host byte order; 0 for protocols without ports and for fragments.
    pub sport: u16,
    /// Destination port, likewise.
    pub dport: u16,
    /// IP protocol number.
    pub proto: u8,
    /// IP version.
    pub family: Family,
}

/// Bytes of ports and protocol.
const TAIL: usize = 5;

/// Words of an encoded key.
pub const KEY_WORDS: usize = 5;

impl Key {
    /// The key under which a packet is charged.
    #[inline(always)]
    #[must_use]
    pub fn new(facts: &Facts, per: Per, prefix: Prefix) -> Self {
        Self::of_flow(facts).part(per, prefix)
    }

    /// All of a packet's identity.
    #[inline(always)]
    #[must_use]
    pub fn of_flow(facts: &Facts) -> Self {
        let &Facts { src, dst, sport, dport, proto, family, .. } = facts;
        Self { src, dst, sport, dport, proto, family }
    }

    /// The part of a flow's key that counts.
    #[inline(always)]
    #[must_use]
    pub fn part(self, per: Per, prefix: Prefix) -> Self {
        let Self { src, dst, family, .. } = self;
        match per {
            Per::Flow => self,
            Per::Src => Self { src: masked(src, family, prefix), family, ..Self::default() },
            Per::Dst => Self { dst: masked(dst, family, prefix), family, ..Self::default() },
            Per::Pair => Self { src, dst, family, ..Self::default() },
            Per::Dev => Self::default(),
        }
    }

    /// The key's place in the flow table: a keyed hash that is never 0, which marks an empty way.
    ///
    /// What is hashed are the bytes of the addresses, the ports and the protocol: 13 for IPv4, 37 for IPv6, the last
    /// five where there is no address. SipHash covers the length, so that the three cannot be confused.
    #[inline(always)]
    #[must_use]
    pub fn tag(&self, secret: &SipKey) -> u64 {
        let tail = self.ports_and_protocol();
        let hash = match self.family {
            Family::V4 => secret.hash::<1, TAIL>(&[self.src[0] | self.dst[0] << 32], tail),
            Family::V6 => secret.hash::<4, TAIL>(&[self.src[0], self.src[1], self.dst[0], self.dst[1]], tail),
            Family::None => secret.hash::<0, TAIL>(&[], tail),
        };
        if hash == 0 { 1 } else { hash }
    }

    /// The key's place where each rule has buckets of its own: [`Key::tag`] of the key and the rule's number.
    ///
    /// An attachment uses the one or the other, so the two need not be told apart.
    #[inline(always)]
    #[must_use]
    pub fn tag_under(&self, rule_id: u32, secret: &SipKey) -> u64 {
        let tail = self.ports_and_protocol();
        let rule = u64::from(rule_id);
        let hash = match self.family {
            Family::V4 => secret.hash::<2, TAIL>(&[rule, self.src[0] | self.dst[0] << 32], tail),
            Family::V6 => secret.hash::<5, TAIL>(&[rule, self.src[0], self.src[1], self.dst[0], self.dst[1]], tail),
            Family::None => secret.hash::<1, TAIL>(&[rule], tail),
        };
        if hash == 0 { 1 } else { hash }
    }

    #[inline(always)]
    const fn ports_and_protocol(&self) -> u64 {
        self.sport as u64 | (self.dport as u64) << 16 | (self.proto as u64) << 32
    }

    /// The key as it is stored beside its bucket, for people to read.
    #[inline(always)]
    #[must_use]
    pub const fn encode(&self) -> [u64; KEY_WORDS] {
        [self.src[0], self.src[1], self.dst[0], self.dst[1], self.ports_and_protocol() | (self.family as u64) << 40]
    }

    /// The IP version of an encoded key.
    #[inline(always)]
    #[must_use]
    pub const fn family_of(words: &[u64; KEY_WORDS]) -> Family {
        match (words[KEY_WORDS - 1] >> 40) as u8 {
            4 => Family::V4,
            6 => Family::V6,
            _ => Family::None,
        }
    }

    /// Reads a stored key back; `None` if the words were never written by [`Key::encode`].
    #[must_use]
    pub const fn decode(words: &[u64; KEY_WORDS]) -> Option<Self> {
        let [s0, s1, d0, d1, rest] = *words;
        let family = match rest >> 40 {
            0 => Family::None,
            4 => Family::V4,
            6 => Family::V6,
            _ => return None,
        };
        Some(Self {
            src: [s0, s1],
            dst: [d0, d1],
            sport: rest as u16,
            dport: (rest >> 16) as u16,
            proto: (rest >> 32) as u8,
            family,
        })
    }
}

/// The leading bits of an address, the rest zero.
#[inline(always)]
fn masked(address: Address, family: Family, prefix: Prefix) -> Address {
    match family {
        Family::V4 => [address[0] & leading(prefix.v4).swap_bytes(), 0],
        _ => [
            address[0] & leading(prefix.v6).swap_bytes(),
            address[1] & leading(prefix.v6.saturating_sub(64)).swap_bytes(),
        ],
    }
}

/// A word whose first `bits` bits, 64 at most, are ones.
#[inline(always)]
const fn leading(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { !(u64::MAX >> bits) }
}
