//! How large the maps are that grow with the rules.

use serde::{Deserialize, Serialize};

/// Elements for each half of a map, or for both where there are no halves. What is there once is not made smaller: a map
/// that is replaced costs more than one that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Room {
    /// Rules, the default included.
    pub(crate) rules: u32,
    /// Boundaries of address intervals.
    pub(crate) boundaries: u32,
    /// Links of chains.
    pub(crate) links: u32,
    /// Words of text.
    pub(crate) text: u32,
    /// Counters that the processors share for each rule, less one.
    pub(crate) shard_mask: u16,
}

/// Bytes that the counters of all rules may take.
const COUNTERS_BUDGET: u64 = 64 << 20;
/// Bytes of one counter, [`shaper_common::abi::RuleCounters`].
const COUNTER: u64 = size_of::<shaper_common::abi::RuleCounters>() as u64;

impl Room {
    /// For the default rule alone, on a machine with so many processors.
    pub(crate) fn least(processors: u32) -> Self {
        Self { rules: 1, boundaries: 1, links: 1, text: 1, shard_mask: shards(1, processors) - 1 }
    }

    /// Room for what is needed: as it is if that is enough, else with a quarter to spare.
    pub(crate) fn grown(&self, needed: &Self, processors: u32) -> Self {
        let grow = |now: u32, needed: u32| if needed <= now { now } else { needed + needed / 4 };
        let rules = grow(self.rules, needed.rules);
        let shard_mask = if rules == self.rules { self.shard_mask } else { shards(rules, processors) - 1 };
        Self {
            rules,
            boundaries: grow(self.boundaries, needed.boundaries),
            links: grow(self.links, needed.links),
            text: grow(self.text, needed.text),
            shard_mask,
        }
    }
}

/// Counters for each rule: one for each processor if that is not too much memory. A power of two.
fn shards(rules: u32, processors: u32) -> u16 {
    let each = (COUNTERS_BUDGET / (COUNTER * u64::from(rules))).saturating_sub(1).clamp(1, 1 << 10);
    let wanted = u64::from(processors.next_power_of_two());
    let affordable = 1 << each.ilog2();
    wanted.min(affordable) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_do_not_cost_gigabytes() {
        for (rules, processors, expected) in [
            (1, 1, 1),
            (1, 6, 8),
            (1, 128, 128),
            (1000, 128, 128),
            (2500, 128, 64),
            (125_000, 128, 1),
            (1_250_000, 2, 1),
        ] {
            assert_eq!(shards(rules, processors), expected, "{rules} rules on {processors} processors");
            let bytes = u64::from(rules) * COUNTER * u64::from(expected + 1);
            assert!(bytes <= COUNTERS_BUDGET || expected == 1, "{bytes}");
        }
    }

    #[test]
    fn room_grows_and_never_shrinks() {
        let least = Room::least(2);
        let more = least.grown(&Room { rules: 101, boundaries: 200, ..least }, 2);
        assert_eq!((more.rules, more.boundaries, more.links), (126, 250, 1));
        assert_eq!(more.grown(&least, 2), more);
    }
}
