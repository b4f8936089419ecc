//! Which rule a packet meets: the longest prefix that matches, then the rule that names ports, then the one that names a
//! protocol, then the older.
//!
//! The tool lays the prefixes of all rules out as intervals of addresses ([`Boundary`]), sorted by their starts, one
//! table for each side and IP version. An interval leads to a chain of [`Link`]s: the rules of its longest prefix, best
//! first, then those of the next shorter one, and so on. A packet takes the first of the chain whose protocol and ports
//! are its own; where both of its addresses have rules, the better of the two.

use crate::{
    abi::DEFAULT_RULE,
    key::{Family, KEY_WORDS, Key},
    packet::has_ports,
};

/// Most times an interval of a table can be halved: tables have less than `2^MAX_STEPS` boundaries.
pub const MAX_STEPS: u32 = 22;

/// Most links of a chain.
pub const MAX_CHAIN: u32 = 256;

/// In [`Link::next`] and [`Boundary::link`]: there is none.
pub const NO_LINK: u32 = 0;

/// Where the tables of a configuration lie.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// By [`Index::of`]: source and destination addresses, IPv4 and IPv6.
    pub tables: [Table; 4],
}

/// The boundaries of one side and IP version.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Number of the first, whose start is 0.
    pub first: u32,
    /// How many there are; 0 if no rule names such an address.
    pub len: u32,
}

/// Where an interval of addresses starts; it ends where the next one starts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boundary {
    /// The first address as [`number`] makes it.
    pub start: [u64; 2],
    /// The first link of its chain, or [`NO_LINK`].
    pub link: u64,
}

/// A rule in the chain of an interval.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Which of two rules is better: [`rank`].
    pub rank: u64,
    /// The rule.
    pub rule: u32,
    /// The next link, or [`NO_LINK`].
    pub next: u32,
    /// First and last source port.
    pub sport: [u16; 2],
    /// First and last destination port.
    pub dport: [u16; 2],
    /// The protocol, if the kind says so.
    pub proto: u8,
    /// Bits of [`kind`].
    pub kind: u8,
    /// Zero.
    pub reserved: [u8; 6],
}

/// What a rule asks of a packet besides its address.
pub mod kind {
    /// [`super::Link::proto`] counts.
    pub const PROTO: u8 = 1;
    /// Both port ranges must hold.
    pub const PORTS: u8 = 2;
    /// One of the port ranges must hold.
    pub const EITHER_PORT: u8 = 4;
}

/// Which address of a packet a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The source.
    Src = 0,
    /// The destination.
    Dst = 1,
}

/// Where the rules of a configuration are.
pub trait Rules {
    /// The index of a half.
    fn index(&self, half: u32) -> Option<&Index>;
    /// The boundary of this number.
    fn boundary(&self, at: u32) -> Option<&Boundary>;
    /// The link of this number.
    fn link(&self, at: u32) -> Option<&Link>;

    /// [`interval`]; a call of its own in the BPF object.
    #[inline(always)]
    fn interval(&self, table: Table, address: [u64; 2]) -> u32 {
        interval(self, table, address)
    }

    /// [`first_fit`], likewise.
    #[inline(always)]
    fn first_fit(&self, chain: u32, tail: u64) -> u32 {
        first_fit(self, chain, tail)
    }
}

impl Index {
    /// Which of the tables is about this end of packets of this IP version.
    #[inline(always)]
    #[must_use]
    pub const fn of(end: End, v6: bool) -> usize {
        end as usize * 2 + v6 as usize
    }
}

/// An address as a number of two words, the higher first: IPv4 is in the upper half of the first.
#[inline(always)]
#[must_use]
pub const fn number(address: crate::key::Address) -> [u64; 2] {
    [address[0].swap_bytes(), address[1].swap_bytes()]
}

/// The place of a rule among those that match: the higher wins. `age` is 0 for the oldest.
#[must_use]
pub const fn rank(prefix_len: u8, kind: u8, age: u32) -> u64 {
    let ports = kind & (kind::PORTS | kind::EITHER_PORT) != 0;
    let proto = kind & kind::PROTO != 0;
    (prefix_len as u64) << 40 | (ports as u64) << 33 | (proto as u64) << 32 | !age as u64
}

/// The rule for packets with this identity, as [`Key::encode`] makes it of a flow; [`DEFAULT_RULE`] if no other matches.
///
/// Every part of the identity that a rule can ask for must be in it.
#[inline(always)]
#[must_use]
pub fn lookup<R: Rules + ?Sized>(rules: &R, half: u32, words: &[u64; KEY_WORDS]) -> u32 {
    let v6 = match Key::family_of(words) {
        Family::V4 => false,
        Family::V6 => true,
        Family::None => return DEFAULT_RULE,
    };
    let Some(index) = rules.index(half) else { return DEFAULT_RULE };
    let mut best = Link { rule: DEFAULT_RULE, ..Link::default() };
    for (end, address) in [(End::Src, [words[0], words[1]]), (End::Dst, [words[2], words[3]])] {
        let table = index.tables[Index::of(end, v6)];
        if table.len == 0 {
            continue;
        }
        let chain = rules.interval(table, number(address));
        if chain == NO_LINK {
            continue;
        }
        let at = rules.first_fit(chain, words[4]);
        if at != NO_LINK
            && let Some(link) = rules.link(at)
            && link.rank > best.rank
        {
            best = *link;
        }
    }
    best.rule
}

/// The chain of the interval that holds an address: the one with the last boundary that is not behind it. The table has
/// boundaries.
#[inline(always)]
#[must_use]
pub fn interval<R: Rules + ?Sized>(rules: &R, table: Table, address: [u64; 2]) -> u32 {
    let Table { mut first, mut len } = table;
    for _ in 0..MAX_STEPS {
        if len <= 1 {
            break;
        }
        let half = len >> 1;
        let Some(middle) = rules.boundary(first.wrapping_add(half)) else { return NO_LINK };
        // No branch, so that a verifier need not follow two ways at each step.
        let behind = is_less(address, middle.start);
        first = first.wrapping_add(half & (behind as u32).wrapping_sub(1));
        len -= half;
    }
    rules.boundary(first).map_or(NO_LINK, |boundary| boundary.link as u32)
}

/// The first link of a chain that fits ports and protocol, the last word of [`Key::encode`]; or [`NO_LINK`].
#[inline(always)]
#[must_use]
pub fn first_fit<R: Rules + ?Sized>(rules: &R, chain: u32, tail: u64) -> u32 {
    let tail = Tail::new(tail);
    let mut at = chain;
    for _ in 0..MAX_CHAIN {
        if at == NO_LINK {
            break;
        }
        let Some(link) = rules.link(at) else { break };
        if tail.fits(link) {
            return at;
        }
        at = link.next;
    }
    NO_LINK
}

/// 1 if `a < b`, else 0.
#[inline(always)]
const fn is_less(a: [u64; 2], b: [u64; 2]) -> u64 {
    borrow(a[0], b[0]) | !(a[0] ^ b[0] | (a[0] ^ b[0]).wrapping_neg()) >> 63 & borrow(a[1], b[1])
}

/// The borrow of `a - b`: 1 if `a < b` (Warren, "Hacker's Delight", section 2-13).
#[inline(always)]
const fn borrow(a: u64, b: u64) -> u64 {
    (!a & b | !(a ^ b) & a.wrapping_sub(b)) >> 63
}

/// Ports and protocol of a packet.
#[derive(Clone, Copy)]
struct Tail {
    sport: u16,
    dport: u16,
    proto: u8,
}

impl Tail {
    #[inline(always)]
    const fn new(word: u64) -> Self {
        Self { sport: word as u16, dport: (word >> 16) as u16, proto: (word >> 32) as u8 }
    }

    /// Whether a link's protocol and ports are the packet's. A packet of a protocol with ports that shows none, like a
    /// fragment, may have any.
    #[inline(always)]
    fn fits(self, link: &Link) -> bool {
        if link.kind & kind::PROTO != 0 && link.proto != self.proto {
            return false;
        }
        if link.kind & (kind::PORTS | kind::EITHER_PORT) == 0 {
            return true;
        }
        if !has_ports(self.proto) {
            return false;
        }
        if self.sport | self.dport == 0 {
            return true;
        }
        let within = |port: u16, [first, last]: [u16; 2]| first <= port && port <= last;
        let (sport, dport) = (within(self.sport, link.sport), within(self.dport, link.dport));
        if link.kind & kind::EITHER_PORT != 0 { sport || dport } else { sport && dport }
    }
}
