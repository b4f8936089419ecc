//! The intervals of one table: one pass over its sorted prefixes.

use std::{
    cmp::Reverse,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use shaper_common::rule::{Boundary, MAX_STEPS, NO_LINK};

use super::{TooMany, chains::Chains};
use crate::model::Net;

/// A prefix that a rule names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    /// Its first address as one number, as [`shaper_common::rule::number`] makes it: IPv4 in the upper bits.
    start: u128,
    len: u8,
    v6: bool,
    /// The rule's.
    pub(super) age: u32,
}

impl Prefix {
    pub(super) fn new(net: Net, age: u32) -> Self {
        let (start, v6) = match net.address() {
            IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, false),
            IpAddr::V6(v6) => (v6.to_bits(), true),
        };
        Self { start, len: net.len(), v6, age }
    }

    /// That which holds every address of the IP version.
    pub(super) const fn any(age: u32, v6: bool) -> Self {
        Self { start: 0, len: 0, v6, age }
    }

    /// Its last address. IPv4 needs no other way: the bits below its addresses count as part of the prefix.
    fn last(self) -> u128 {
        self.start | u128::MAX.checked_shr(self.len.into()).unwrap_or(0)
    }

    pub(super) fn net(self) -> Net {
        let address = if self.v6 {
            Ipv6Addr::from_bits(self.start).into()
        } else {
            Ipv4Addr::from_bits((self.start >> 96) as u32).into()
        };
        Net::around(address, self.len)
    }

    pub(super) const fn len(self) -> u8 {
        self.len
    }
}

/// A prefix that holds the address the pass has come to.
struct Open {
    last: u128,
    chain: u32,
}

/// The boundaries of a table whose rules name these prefixes; their chains are added to `chains`.
pub(super) fn of(mut prefixes: Vec<Prefix>, chains: &mut Chains<'_>) -> Result<Vec<Boundary>, TooMany> {
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    prefixes.sort_unstable_by_key(|prefix| (prefix.start, prefix.len, Reverse(chains.rank(*prefix))));
    let mut intervals = Intervals::default();
    // No deeper than an address has bits.
    let mut open: Vec<Open> = Vec::new();
    for same in prefixes.chunk_by(|a, b| (a.start, a.len) == (b.start, b.len)) {
        let prefix = same[0];
        intervals.close(&mut open, |last| last < prefix.start);
        let around = open.last().map_or(NO_LINK, |open| open.chain);
        let chain = chains.of(same, around)?;
        intervals.start(prefix.start, chain);
        open.push(Open { last: prefix.last(), chain });
    }
    intervals.close(&mut open, |_| true);
    let boundaries = intervals.0;
    if boundaries.len() >= 1 << MAX_STEPS { Err(TooMany::Intervals(boundaries.len())) } else { Ok(boundaries) }
}

/// Boundaries in the order of their starts, each with another chain than the one before it.
struct Intervals(Vec<Boundary>);

impl Default for Intervals {
    /// One for all addresses, without rules.
    fn default() -> Self {
        Self(vec![Boundary::default()])
    }
}

impl Intervals {
    /// Leaves the innermost prefixes, as long as they end at an address that is `over`.
    fn close(&mut self, open: &mut Vec<Open>, over: impl Fn(u128) -> bool) {
        while let Some(inner) = open.pop_if(|inner| over(inner.last)) {
            // Nothing comes after the last address there is.
            if let Some(next) = inner.last.checked_add(1) {
                self.start(next, open.last().map_or(NO_LINK, |outer| outer.chain));
            }
        }
    }

    /// From `start` on, which is not before any other, addresses have this chain.
    fn start(&mut self, start: u128, chain: u32) {
        let start = [(start >> 64) as u64, start as u64];
        let link = chain.into();
        self.0.pop_if(|last| last.start == start);
        if self.0.last().is_none_or(|last| last.link != link) {
            self.0.push(Boundary { start, link });
        }
    }
}
