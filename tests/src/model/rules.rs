//! Rules as the tool lays them out for the data plane.

use shaper_common::{
    abi::RuleLimits,
    rule::{Boundary, Index, Link, NO_LINK, Rules},
};

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
