//! The flow table against one without bounds: what it forgets is nothing, what it cannot hold it reports.

use std::collections::HashMap;

use proptest::prelude::*;
use shaper_common::{
    atomic::{Atomics, Native},
    bucket::{self, debt},
    key::KEY_WORDS,
    table::{EMPTY, FlowSet, Newcomer, WAYS, claim, find},
};
use tests::model::clocks::OneClock;

use crate::property::{config, regressions};

const BURST: u64 = 10_000;

/// What a flow has had since it came in, as the table counts it: packets passed, bytes passed, packets dropped.
type Counts = [u64; 3];

/// A table of two sets beside a bucket and counters for every flow that was ever seen.
struct Pair {
    sets: [FlowSet; 2],
    /// Bucket words of all flows.
    words: HashMap<u64, u64>,
    /// Counters of the flows in the table.
    counts: HashMap<u64, Counts>,
    v: u64,
    now: u64,
}

impl Pair {
    fn new(v: u64) -> Self {
        Self { sets: Default::default(), words: HashMap::new(), counts: HashMap::new(), v, now: 0 }
    }

    /// Tags of a set in the order of its ways.
    fn tags(&self, set: usize) -> Vec<u64> {
        self.sets[set].tags.iter().map(Native::load).collect()
    }

    /// The bucket word of a flow in the unbounded table: a flow never seen is full.
    fn word(&self, tag: u64) -> u64 {
        self.words.get(&tag).copied().unwrap_or(self.v)
    }

    fn in_debt(&self, tag: u64) -> bool {
        debt(self.word(tag), self.v) > 0
    }

    /// A packet of `bytes` bytes: the way of the data plane through the table, and what must come of it.
    fn packet(&mut self, tag: u64, bytes: u64) -> Result<(), TestCaseError> {
        let index = (tag & 1) as usize;
        let before = self.tags(index);
        let found = find::<Native>(&self.sets[index], tag);
        prop_assert_eq!(found, before.iter().position(|&held| held == tag));
        let way = match found {
            Some(way) => way,
            None => {
                let way = claim::<Native>(
                    &self.sets[index],
                    &Newcomer { tag, key: &key(tag), now: self.now },
                    &OneClock(self.v),
                );
                prop_assert_eq!(way.is_some(), before.iter().any(|&held| held == EMPTY || !self.in_debt(held)));
                let Some(way) = way else {
                    prop_assert_eq!(before, self.tags(index), "a flow that is not taken changes nothing");
                    return Ok(());
                };
                self.taken(index, way, tag, &before)?;
                way
            }
        };
        let set = &self.sets[index];
        let passes = bucket::charge::<Native>(&set.full_at[way], self.v, BURST, bytes);
        let expected = bucket::offer(self.word(tag), self.v, BURST, bytes);
        prop_assert_eq!(passes, expected.is_some(), "flow {}", tag);
        if let Some(word) = expected {
            self.words.insert(tag, word);
        }
        let tally = if passes { &set.state[way].passed } else { &set.state[way].dropped };
        tally.add::<Native>(1, bytes);
        let counts = self.counts.entry(tag).or_default();
        if passes {
            counts[0] += 1;
            counts[1] += bytes;
        } else {
            counts[2] += 1;
        }
        Ok(())
    }

    /// `tag` has taken `way` from the flow that was there `before`.
    fn taken(&mut self, set: usize, way: usize, tag: u64, before: &[u64]) -> Result<(), TestCaseError> {
        let evicted = before[way];
        if evicted == EMPTY {
            prop_assert_eq!(Some(way), before.iter().position(|&held| held == EMPTY), "ways fill in order");
        } else {
            prop_assert!(!before.contains(&EMPTY), "nothing is forgotten while there is room");
            prop_assert!(!self.in_debt(evicted), "a flow in debt was forgotten");
            let full_for = |tag| self.v.wrapping_sub(self.word(tag));
            let longest = before.iter().filter(|&&held| !self.in_debt(held)).map(|&held| full_for(held)).max();
            prop_assert_eq!(Some(full_for(evicted)), longest, "the bucket that was full for longest goes first");
            self.counts.remove(&evicted);
        }
        let mut after = before.to_vec();
        after[way] = tag;
        prop_assert_eq!(self.tags(set), after, "no other way is touched");
        let identity = &self.sets[set].keys[way];
        prop_assert_eq!(Native::load(&identity.since), self.now);
        prop_assert_eq!(identity.words.each_ref().map(Native::load), key(tag));
        self.counts.insert(tag, Counts::default());
        self.words.insert(tag, self.v);
        Ok(())
    }

    /// Every flow that owes something is in the table with that very debt, or was reported; counters are its own.
    fn check(&self) -> Result<(), TestCaseError> {
        for (&tag, &word) in self.words.iter().filter(|&(_, &word)| debt(word, self.v) > 0) {
            let set = &self.sets[(tag & 1) as usize];
            let way = find::<Native>(set, tag);
            prop_assert!(way.is_some(), "flow {} owes {} bytes and is forgotten", tag, debt(word, self.v));
            let held = way.map(|way| Native::load(&set.full_at[way]));
            prop_assert_eq!(held, Some(word), "flow {}", tag);
        }
        for set in &self.sets {
            for (tag, state) in set.tags.iter().map(Native::load).zip(&set.state).filter(|&(tag, _)| tag != EMPTY) {
                let counts = [&state.passed.packets, &state.passed.bytes, &state.dropped.packets].map(Native::load);
                prop_assert_eq!(counts, self.counts[&tag], "counters of flow {}", tag);
            }
        }
        Ok(())
    }
}

/// What people will read about a flow.
fn key(tag: u64) -> [u64; KEY_WORDS] {
    std::array::from_fn(|word| tag * 10 + word as u64)
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Packet {
        tag: u64,
        bytes: u64,
    },
    /// The rate sends so many bytes.
    Pause(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (1..=40_u64, prop_oneof![60..=1500_u64, 4000..=12_000_u64])
            .prop_map(|(tag, bytes)| Event::Packet { tag, bytes }),
        1 => prop_oneof![0..=500_u64, 0..=12_000_u64].prop_map(Event::Pause),
    ]
}

proptest! {
    #![proptest_config(config(regressions!("table"), 150))]

    #[test]
    fn it_forgets_full_buckets_only_and_reports_exactly_what_it_cannot_hold(
        v in prop_oneof![Just(1 << 40), Just(u64::MAX - 5_000), any::<u64>()],
        events in prop::collection::vec(event(), 1..300),
    ) {
        let mut pair = Pair::new(v);
        for event in events {
            match event {
                Event::Packet { tag, bytes } => pair.packet(tag, bytes)?,
                Event::Pause(bytes) => {
                    pair.v = pair.v.wrapping_add(bytes);
                    pair.now += 1;
                }
            }
            pair.check()?;
        }
    }
}

/// A set whose flows, tagged from 1 on, have these bucket words.
fn set_of(words: [u64; WAYS]) -> FlowSet {
    let set = FlowSet::default();
    for (way, word) in words.into_iter().enumerate() {
        Native::store(&set.tags[way], way as u64 + 1);
        Native::store(&set.full_at[way], word);
    }
    set
}

#[test]
fn the_ninth_flow_is_refused_while_eight_owe_a_byte_and_taken_as_soon_as_one_does_not() {
    let v = 1_000_000;
    let set = set_of([v + 1; WAYS]);
    assert_eq!(claim::<Native>(&set, &Newcomer { tag: 99, key: &key(99), now: 0 }, &OneClock(v)), None);
    Native::store(&set.full_at[5], v);
    assert_eq!(claim::<Native>(&set, &Newcomer { tag: 99, key: &key(99), now: 0 }, &OneClock(v)), Some(5));
    assert_eq!(Native::load(&set.full_at[5]), v, "and is full");
}

#[test]
fn the_bucket_that_was_full_for_longest_goes_first() {
    let v = 1_000_000;
    let mut words = [v + 1, v, v - 10, v + 500, v - 30, v - 20, v + 1, 0];
    for expected in [7, 4, 5, 2, 1] {
        let set = set_of(words);
        assert_eq!(
            claim::<Native>(&set, &Newcomer { tag: 99, key: &key(99), now: 0 }, &OneClock(v)),
            Some(expected),
            "{words:?}"
        );
        words[expected] = v + 1;
    }
}

#[test]
fn a_flow_that_another_processor_has_just_taken_in_is_found_and_not_taken_twice() {
    let v = 1_000_000;
    let set = set_of([v + 1; WAYS]);
    assert_eq!(claim::<Native>(&set, &Newcomer { tag: 3, key: &key(3), now: 0 }, &OneClock(v)), Some(2));
    assert_eq!(Native::load(&set.full_at[2]), v + 1, "its debt stays");
}

#[test]
fn a_set_takes_no_more_than_its_kilobyte_and_its_tags_one_cache_line() {
    assert_eq!(size_of::<FlowSet>(), 1024);
    assert_eq!(size_of_val(&FlowSet::default().tags), 64);
    assert_eq!(WAYS, 8);
}

#[test]
fn a_new_flow_inherits_nothing_of_limits_that_were_not_in_force() {
    let set = FlowSet::default();
    let v = 1 << 41;
    let first = claim::<Native>(&set, &Newcomer { tag: 7, key: &key(7), now: 0 }, &OneClock(v)).expect("an empty way");
    for word in [&set.state[first].more.peak_full_at, &set.state[first].more.pps_full_at] {
        Native::store(word, v + 1000);
    }
    for tag in 8..15 {
        let way = claim::<Native>(&set, &Newcomer { tag, key: &key(tag), now: 0 }, &OneClock(v)).expect("an empty way");
        Native::store(&set.full_at[way], v + 1);
    }
    assert_eq!(claim::<Native>(&set, &Newcomer { tag: 99, key: &key(99), now: 0 }, &OneClock(v)), Some(first));
    for word in [&set.state[first].more.peak_full_at, &set.state[first].more.pps_full_at] {
        assert_eq!(Native::load(word), 0);
    }
}
