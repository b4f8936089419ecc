//! The order of flows and of rules.

use std::cmp::Reverse;

use crate::{
    args::Sort,
    model::{Flow, RuleStats, rule},
};

/// Sorts flows, the equal ones by what they passed and then by key so that the order is always the same, and keeps the
/// first `most`.
pub fn top(flows: &mut Vec<Flow>, sort: Sort, most: Option<usize>) {
    flows.sort_unstable_by_key(|flow| {
        let first = match sort {
            Sort::Dropped => u64::MAX - flow.dropped.bytes,
            Sort::Passed => u64::MAX - flow.passed.bytes,
            // Without a rate there is no level, for any of them.
            Sort::Level => flow.level_bytes.unwrap_or(u64::MAX),
        };
        (first, Reverse(flow.passed.bytes), flow.key.encode())
    });
    flows.truncate(most.unwrap_or(usize::MAX));
}

/// Keeps of the rules of an attachment the `most` that saw most bytes, the busiest first, and before them the default.
/// If there are no more than that, they stay as they are.
pub fn busiest(stats: &mut Vec<RuleStats>, most: usize) {
    let is_default = |stats: &RuleStats| stats.rule == rule::DEFAULT;
    let others = stats.iter().filter(|stats| !is_default(stats)).count();
    if others <= most {
        return;
    }
    let bytes =
        |stats: &RuleStats| stats.counters.reasons.iter().fold(0_u64, |sum, count| sum.saturating_add(count.bytes));
    // The sort is stable: of equals, the older comes first.
    stats.sort_by_key(|stats| (!is_default(stats), Reverse(bytes(stats))));
    stats.truncate(stats.len() - others + most);
}

#[cfg(test)]
mod tests {
    use shaper_common::{
        abi::{Count, RuleCounts},
        key::Key,
        verdict::Reason,
    };

    use super::*;
    use crate::model::{Direction, Per};

    fn flow(sport: u16, dropped: u64, passed: u64, level: u64) -> Flow {
        Flow {
            dev: "eth0".to_owned(),
            direction: Direction::Ingress,
            rule: "default".to_owned(),
            per: Per::FLOW,
            key: Key { sport, ..Key::default() },
            passed: Count { packets: 1, bytes: passed },
            dropped: Count { packets: 1, bytes: dropped },
            marked_packets: 0,
            level_bytes: Some(level),
        }
    }

    #[test]
    fn flows_are_sorted_and_cut() {
        let flows = [flow(1, 10, 0, 30), flow(2, 0, 20, 10), flow(3, 0, 30, 20), flow(4, 0, 20, 10)];
        for (sort, most, order) in [
            (Sort::Dropped, None, [1, 3, 2, 4].as_slice()),
            (Sort::Passed, None, &[3, 2, 4, 1]),
            (Sort::Level, None, &[2, 4, 3, 1]),
            (Sort::Level, Some(2), &[2, 4]),
            (Sort::Level, Some(9), &[2, 4, 3, 1]),
        ] {
            let mut flows = flows.to_vec();
            top(&mut flows, sort, most);
            assert_eq!(flows.iter().map(|flow| flow.key.sport).collect::<Vec<_>>(), order, "{sort:?}");
        }
    }

    #[test]
    fn the_busiest_rules_are_kept() {
        let stats = |rule: &str, bytes| {
            let mut counters = RuleCounts::default();
            counters.reasons[Reason::Rate as usize] = Count { packets: 1, bytes };
            RuleStats { dev: "eth0".to_owned(), direction: Direction::Ingress, rule: rule.to_owned(), counters }
        };
        let all = [stats("default", 0), stats("a", 1), stats("b", 9), stats("c", 9), stats("d", 5)];
        for (most, names) in
            [(4, ["default", "a", "b", "c", "d"].as_slice()), (3, &["default", "b", "c", "d"]), (1, &["default", "b"])]
        {
            let mut kept = all.to_vec();
            busiest(&mut kept, most);
            assert_eq!(kept.iter().map(|stats| stats.rule.as_str()).collect::<Vec<_>>(), names);
        }
    }
}
