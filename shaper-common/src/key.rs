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

/// An address as it stands in the packet: network byte order in memory, IPv4 in the first word and zeros after it.
pub type Address = [u32; 4];

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

/// Words of an encoded key.
pub const KEY_WORDS: usize = 5;

impl Key {
    /// The key under which a packet is charged.
    #[inline(always)]
    #[must_use]
    pub fn new(facts: &Facts, per: Per, prefix: Prefix) -> Self {
        let whole = Self {
            src: facts.src,
            dst: facts.dst,
            sport: facts.sport,
            dport: facts.dport,
            proto: facts.proto,
            family: facts.family,
        };
        let family = whole.family;
        match per {
            Per::Flow => whole,
            Per::Src => Self { src: masked(whole.src, family, prefix), family, ..Self::default() },
            Per::Dst => Self { dst: masked(whole.dst, family, prefix), family, ..Self::default() },
            Per::Pair => Self { src: whole.src, dst: whole.dst, family, ..Self::default() },
            Per::Dev => Self::default(),
        }
    }

    /// The key's place in the flow table: a keyed hash that is never 0, which marks an empty way.
    ///
    /// IPv4 keys are hashed as two words; the hash covers its own length, so they cannot meet the five-word ones by
    /// construction.
    #[inline(always)]
    #[must_use]
    pub fn tag(&self, secret: &SipKey) -> u64 {
        let words = self.encode();
        let hash = if matches!(self.family, Family::V6) {
            secret.hash(&words)
        } else {
            secret.hash(&[pack(self.src[0], self.dst[0]), words[4]])
        };
        if hash == 0 { 1 } else { hash }
    }

    /// The key as it is stored beside its bucket, for people to read.
    #[inline(always)]
    #[must_use]
    pub const fn encode(&self) -> [u64; KEY_WORDS] {
        [
            pack(self.src[0], self.src[1]),
            pack(self.src[2], self.src[3]),
            pack(self.dst[0], self.dst[1]),
            pack(self.dst[2], self.dst[3]),
            self.sport as u64 | (self.dport as u64) << 16 | (self.proto as u64) << 32 | (self.family as u64) << 40,
        ]
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
            src: [s0 as u32, (s0 >> 32) as u32, s1 as u32, (s1 >> 32) as u32],
            dst: [d0 as u32, (d0 >> 32) as u32, d1 as u32, (d1 >> 32) as u32],
            sport: rest as u16,
            dport: (rest >> 16) as u16,
            proto: (rest >> 32) as u8,
            family,
        })
    }
}

const fn pack(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The leading bits of an address, the rest zero.
#[inline(always)]
fn masked(address: Address, family: Family, prefix: Prefix) -> Address {
    let bits = if matches!(family, Family::V4) { prefix.v4 } else { prefix.v6 };
    [
        address[0] & word_mask(bits, 0),
        address[1] & word_mask(bits, 32),
        address[2] & word_mask(bits, 64),
        address[3] & word_mask(bits, 96),
    ]
}

/// Mask, in network byte order, of the 32 bits that start at bit `start` of an address whose first `bits` bits count.
#[inline(always)]
const fn word_mask(bits: u8, start: u8) -> u32 {
    let bits = bits.saturating_sub(start);
    if bits >= 32 {
        u32::MAX
    } else {
        (!(u32::MAX >> bits)).to_be()
    }
}
