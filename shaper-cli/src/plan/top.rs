//! The order of flows.

use std::cmp::Reverse;

use crate::{args::Sort, model::Flow};

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

#[cfg(test)]
mod tests {
    use shaper_common::{abi::Count, key::Key};

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
}
