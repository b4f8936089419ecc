//! Two processors that take a way for the first packet of one flow at the same instant leave it to the flow.

use std::{sync::Barrier, thread};

use shaper_common::{
    atomic::{Atomics, Native},
    bucket::debt,
    table::{Clocks, EMPTY, FlowSet, MoreBuckets, Newcomer, claim, stamp},
};

const V: u64 = 1 << 41;
const TAG: u64 = 77;
/// Sets, each of which is raced for once.
const RACES: usize = 200_000;

struct Stamped(u64);

impl Clocks for Stamped {
    fn full_for(&self, stamp: u64, full_at: u64, _: &MoreBuckets) -> Option<u64> {
        (!stamp::is_moving(stamp) && debt(full_at, V) == 0).then(|| V.wrapping_sub(full_at))
    }

    fn full(&self) -> u64 {
        V
    }

    fn stamp(&self) -> Option<u64> {
        Some(self.0)
    }
}

#[test]
fn no_way_stays_moving_when_two_take_it_for_one_flow() {
    let sets: Vec<FlowSet> = (0..RACES).map(|_| FlowSet::default()).collect();
    let start = Barrier::new(2);
    let racer = |rule: u32| {
        start.wait();
        for set in &sets {
            let newcomer = Newcomer { tag: TAG, key: &[1; 5], now: 1 };
            // Who waits too long goes without.
            let _way = claim::<Native>(set, &newcomer, &Stamped(stamp::of(rule, 1)));
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| racer(1));
        scope.spawn(|| racer(2));
    });
    for (n, set) in sets.iter().enumerate() {
        let held: Vec<_> = set.tags.iter().map(Native::load).take_while(|&tag| tag != EMPTY).collect();
        assert!(!held.is_empty() && held.iter().all(|&tag| tag == TAG), "set {n}: {held:?}");
        for state in &set.state {
            assert!(!stamp::is_moving(Native::load(&state.rule)), "set {n}");
        }
    }
}
