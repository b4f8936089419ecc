//! The counters of each rule: one for each shard of the processors, and one for what was counted in maps that are gone.

use shaper_common::{
    abi::{RuleCounters, RuleCounts, Settings},
    atomic::{Atomics as _, Native},
    table::Tally,
};

use super::{mapping::Mapping, maps::Maps};
use crate::{error::Result, state::Room};

pub(super) struct Counters {
    all: Mapping<RuleCounters>,
    /// Elements of each rule.
    each: usize,
}

impl Counters {
    /// The counters in maps of this size.
    pub(super) fn new(maps: &Maps, room: &Room) -> Result<Self> {
        Ok(Self { all: Mapping::new(&maps.counters)?, each: Settings::counters_of(room.shard_mask) as usize })
    }

    fn of(&self, slot: u32) -> &[RuleCounters] {
        let from = slot as usize * self.each;
        self.all.all().get(from..from + self.each).unwrap_or_default()
    }

    /// What a rule has counted.
    pub(super) fn sum(&self, slot: u32) -> RuleCounts {
        let mut sum = RuleCounts::default();
        self.of(slot).iter().for_each(|shard| sum.add::<Native>(shard));
        sum
    }

    /// What a rule has counted here and in the maps that these have replaced, whether or not [`Counters::follow`] was done.
    pub(super) fn sum_with(&self, old: &Self, slot: u32) -> RuleCounts {
        let mut sum = old.sum(slot);
        if let [shards @ .., _] = self.of(slot) {
            shards.iter().for_each(|shard| sum.add::<Native>(shard));
        }
        sum
    }

    /// Forgets what a rule has counted that is not in force.
    pub(super) fn clear(&self, slot: u32) {
        self.of(slot).iter().for_each(|shard| store(shard, &RuleCounts::default()));
    }

    /// Makes what the old maps have counted part of this. No program uses the old ones any more. Done twice it is the same.
    pub(super) fn follow(&self, old: &Self) {
        let rules = old.all.len() / old.each;
        for slot in 0..rules as u32 {
            if let [.., base] = self.of(slot) {
                store(base, &old.sum(slot));
            }
        }
    }
}

fn store(shard: &RuleCounters, counts: &RuleCounts) {
    let RuleCounters { reasons, dropped, marked, .. } = shard;
    let tallies = reasons.iter().zip(&counts.reasons).chain([(dropped, &counts.dropped), (marked, &counts.marked)]);
    for (Tally { packets, bytes }, count) in tallies {
        Native::store(packets, count.packets);
        Native::store(bytes, count.bytes);
    }
}
