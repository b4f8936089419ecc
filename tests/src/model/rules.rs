//! Rules as the tool lays them out for the data plane.

use shaper_cli::{
    compile::{Placed, Slotted, compile},
    model::{Direction, Limits, Match, Rule},
};
use shaper_common::{
    abi::RuleLimits,
    rule::{Boundary, Index, Link, NO_LINK, Rules},
};

/// The numbers of boundaries and links in the second half of the maps begin here.
pub const HALF: u32 = 1 << 30;

/// A rule and what it comes to.
#[derive(Clone, Debug)]
pub struct Ruled {
    /// Its place, 1 or more.
    pub slot: u32,
    /// Which packets.
    pub matches: Match,
    /// What limits them.
    pub limits: RuleLimits,
}

/// The rules of one configuration, in both halves alike.
#[derive(Clone, Debug, Default)]
pub struct RuleBook {
    /// By rule; the first is the default.
    pub limits: Vec<RuleLimits>,
    /// Where the tables are.
    pub index: Index,
    /// The boundaries.
    pub boundaries: Vec<Boundary>,
    /// The links; the first is used by nobody.
    pub links: Vec<Link>,
}

impl RuleBook {
    /// One rule for everything.
    #[must_use]
    pub fn single(limits: RuleLimits) -> Self {
        Self { limits: vec![limits], links: vec![Link::default()], ..Self::default() }
    }

    /// These rules, the oldest first, for packets of this direction, and the default.
    ///
    /// # Panics
    ///
    /// If they are too many.
    #[must_use]
    pub fn new(default: RuleLimits, rules: &[Ruled], direction: Direction) -> Self {
        Self::single(default).followed_by(default, rules, direction)
    }

    /// Other rules after these, whose limits stay where no new one takes the place, as the tool leaves them.
    ///
    /// # Panics
    ///
    /// If they are too many.
    #[must_use]
    pub fn followed_by(&self, default: RuleLimits, rules: &[Ruled], direction: Direction) -> Self {
        let named = |matches: &Match| Rule {
            name: String::new(),
            matches: matches.clone(),
            per: None,
            limits: Limits::default(),
        };
        let of_tool: Vec<Rule> = rules.iter().map(|rule| named(&rule.matches)).collect();
        let slotted: Vec<Slotted<'_>> =
            rules.iter().zip(&of_tool).map(|(ruled, rule)| Slotted { slot: ruled.slot, rule }).collect();
        let compiled = compile(&slotted, direction).expect("tests have few rules");
        let Placed { index, boundaries, links } = compiled.place(0, 1);
        let mut limits = self.limits.clone();
        let slots = rules.iter().map(|rule| rule.slot as usize + 1).max().unwrap_or(1);
        limits.resize(limits.len().max(slots), RuleLimits::default());
        limits[0] = default;
        for rule in rules {
            limits[rule.slot as usize] = rule.limits;
        }
        Self { limits, index, boundaries, links: [vec![Link::default()], links].concat() }
    }

    /// With the numbers that boundaries and links have in this half of [`super::plane::Maps`].
    #[must_use]
    pub fn in_half(&self, half: u32) -> Self {
        let shifted = |link: u32| if link == NO_LINK { NO_LINK } else { link + half * HALF };
        let mut book = self.clone();
        book.index.tables.iter_mut().for_each(|table| table.first += half * HALF);
        book.boundaries.iter_mut().for_each(|boundary| boundary.link = shifted(boundary.link as u32).into());
        book.links.iter_mut().for_each(|link| link.next = shifted(link.next));
        book
    }
}

impl Rules for RuleBook {
    fn index(&self, _: u32) -> Option<&Index> {
        Some(&self.index)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.boundaries.get(at as usize)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        assert_ne!(at, NO_LINK, "nobody looks at the link that is none");
        self.links.get(at as usize)
    }
}
