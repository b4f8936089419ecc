//! From rules to what the data plane reads: the intervals and chains in which [`shaper_common::rule::lookup`] finds the
//! rule of a packet.
//!
//! The prefixes of a table are sorted, outer ones before those they hold. One pass over them knows at each address
//! which prefixes hold it, as a stack, and starts an interval wherever the innermost of them changes. A prefix's chain
//! ends in the chain of the prefix around it, which is already made then: chains that end alike share links.

mod chains;
mod decides;
mod intervals;
mod too_many;

use shaper_common::rule::{Boundary, End, Index, Link, NO_LINK, Table};

use self::{chains::Chains, intervals::Prefix};
use crate::model::{Direction, Rule, Side};

pub use self::{decides::key_decides, too_many::TooMany};

/// A rule and the number by which the data plane knows it.
#[derive(Clone, Copy, Debug)]
pub struct Slotted<'a> {
    /// Any but that of the default rule.
    pub slot: u32,
    /// The rule.
    pub rule: &'a Rule,
}

/// The rules of a configuration as the data plane reads them, not yet at a place.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The first boundary of all has the number 0.
    tables: [Table; 4],
    boundaries: Vec<Boundary>,
    /// The first link has the number 1, so that [`NO_LINK`] is none of them.
    links: Vec<Link>,
}

/// The same at the place where the data plane finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Where the tables are.
    pub index: Index,
    /// The boundaries, in the order of their numbers.
    pub boundaries: Vec<Boundary>,
    /// The links, likewise.
    pub links: Vec<Link>,
}

/// Lays out `rules`, the oldest first, for packets of this direction.
///
/// # Errors
///
/// If the data plane would not look at all rules that an address can meet, or at all addresses.
pub fn compile(rules: &[Slotted<'_>], direction: Direction) -> Result<Compiled, TooMany> {
    let mut prefixes: [Vec<Prefix>; 4] = Default::default();
    for (age, rule) in rules.iter().enumerate() {
        let matches = &rule.rule.matches;
        let end = end_of(matches.side, direction);
        if matches.nets.is_empty() {
            for v6 in [false, true] {
                prefixes[Index::of(end, v6)].push(Prefix::any(age as u32, v6));
            }
        }
        for net in &matches.nets {
            prefixes[Index::of(end, net.address().is_ipv6())].push(Prefix::new(*net, age as u32));
        }
    }
    let mut chains = Chains::new(rules);
    let mut tables = [Table::default(); 4];
    let mut boundaries = Vec::new();
    for (table, prefixes) in tables.iter_mut().zip(prefixes) {
        let of_table = intervals::of(prefixes, &mut chains)?;
        *table = Table { first: boundaries.len() as u32, len: of_table.len() as u32 };
        boundaries.extend(of_table);
    }
    Ok(Compiled { tables, boundaries, links: chains.into_links() })
}

impl Compiled {
    /// How many boundaries there are.
    #[must_use]
    pub const fn boundaries(&self) -> usize {
        self.boundaries.len()
    }

    /// How many links there are.
    #[must_use]
    pub const fn links(&self) -> usize {
        self.links.len()
    }

    /// With the numbers that boundaries and links have if the first ones are these.
    ///
    /// # Panics
    ///
    /// If `first_link` is [`NO_LINK`].
    #[must_use]
    pub fn place(self, first_boundary: u32, first_link: u32) -> Placed {
        assert_ne!(first_link, NO_LINK, "the number that ends a chain is nobody's");
        let Self { mut tables, mut boundaries, mut links } = self;
        let shifted = |link: u32| if link == NO_LINK { NO_LINK } else { link + (first_link - 1) };
        for table in &mut tables {
            table.first += first_boundary;
        }
        for boundary in &mut boundaries {
            boundary.link = shifted(boundary.link as u32).into();
        }
        for link in &mut links {
            link.next = shifted(link.next);
        }
        Placed { index: Index { tables }, boundaries, links }
    }
}

/// Which address of a packet is at this side.
const fn end_of(side: Side, direction: Direction) -> End {
    match (side, direction) {
        (Side::Remote, Direction::Ingress) | (Side::Local, Direction::Egress) => End::Src,
        (Side::Remote, Direction::Egress) | (Side::Local, Direction::Ingress) => End::Dst,
    }
}
