//! Two processors on one way: every interleaving of a claim with another's packet, and real threads.
//!
//! The worst that may happen is one packet charged to the wrong bucket: to another flow's, or to a second way of its own
//! flow that nobody finds again. It is charged and counted all the same: what all flows together got is what the
//! buckets together owe.

use std::{cell::RefCell, collections::HashMap, rc::Rc, thread};

use shaper_common::{
    atomic::{Atomics, Native},
    bucket::{charge, debt},
    table::{FlowSet, Newcomer, WAYS, claim, find},
};
use tests::model::{
    clocks::OneClock,
    interleaving::{self, Scripted},
};

const V: u64 = 1 << 40;
const BURST: u64 = 1 << 20;

/// Tags of the flows that the set holds at first; all full, the first for longest.
const OLD: [u64; WAYS] = [1, 2, 3, 4, 5, 6, 7, 8];
/// Tag of the flow that is taken in, and of another new one.
const NEW: u64 = 100;
const OTHER: u64 = 101;

/// Bytes of each flow.
type Bytes = HashMap<u64, u64>;

fn full_set() -> FlowSet {
    let set = FlowSet::default();
    for (way, tag) in OLD.into_iter().enumerate() {
        Native::store(&set.tags[way], tag);
        Native::store(&set.full_at[way], V - 1000 + way as u64);
        set.state[way].passed.add::<Native>(7, 700);
        set.state[way].dropped.add::<Native>(3, 300);
        Native::store(&set.state[way].marked_packets, 2);
    }
    set
}

/// A set whose flows owe a byte each, but for the first.
fn set_with_room_for_one() -> FlowSet {
    let set = full_set();
    for word in &set.full_at[1..] {
        Native::store(word, V + 1);
    }
    set
}

/// A packet on its way through the table; `None` if it found no way.
fn packet<A: Atomics>(set: &FlowSet, tag: u64, bytes: u64) -> Option<usize> {
    let way =
        find::<A>(set, tag).or_else(|| claim::<A>(set, &Newcomer { tag, key: &[tag; 5], now: 0 }, &OneClock(V)))?;
    assert!(charge::<A>(&set.full_at[way], V, BURST, bytes), "there is room for all");
    set.state[way].passed.add::<A>(1, bytes);
    Some(way)
}

/// Bytes that the flows in the set owe.
fn debts(set: &FlowSet) -> Bytes {
    let mut debts = Bytes::new();
    for (tag, word) in set.tags.iter().zip(&set.full_at) {
        let owed = debt(Native::load(word), V);
        if owed > 0 {
            *debts.entry(Native::load(tag)).or_default() += owed;
        }
    }
    debts
}

/// What has been counted for a flow: packets and bytes that passed, packets dropped and packets marked.
fn counts(set: &FlowSet, tag: u64) -> [u64; 4] {
    let mut counts = [0; 4];
    for (state, _) in set.state.iter().zip(&set.tags).filter(|(_, held)| Native::load(held) == tag) {
        let words = [&state.passed.packets, &state.passed.bytes, &state.dropped.packets, &state.marked_packets];
        for (count, word) in counts.iter_mut().zip(words) {
            *count += Native::load(word);
        }
    }
    counts
}

/// What came of two packets.
struct Finish {
    set: Rc<FlowSet>,
    /// What each flow was admitted.
    got: Bytes,
    /// What each flow owes now and did not before.
    owed: Bytes,
    /// Whether the second packet came in between.
    reached: bool,
}

/// Sends a packet of the new flow to a set, and one of `interloper` before the first one's `step`th atomic operation.
fn interleaved(set: FlowSet, interloper: u64, step: u32) -> Finish {
    let before = debts(&set);
    let set = Rc::new(set);
    let got = Rc::new(RefCell::new(Bytes::new()));
    let script = {
        let (set, got) = (Rc::clone(&set), Rc::clone(&got));
        move |at, _| {
            if at == step && packet::<Native>(&set, interloper, 40).is_some() {
                *got.borrow_mut().entry(interloper).or_default() += 40;
            }
        }
    };
    let (way, steps) = interleaving::run(script, || packet::<Scripted>(&set, NEW, 1500));
    if way.is_some() {
        *got.borrow_mut().entry(NEW).or_default() += 1500;
    }
    let mut owed = debts(&set);
    for (tag, owed) in &mut owed {
        *owed -= before.get(tag).copied().unwrap_or(0);
    }
    Finish { set, got: got.take(), owed, reached: step < steps }
}

#[test]
fn whatever_comes_between_two_steps_of_a_claim_every_byte_that_passed_is_owed() {
    type Start = fn() -> FlowSet;
    let [full, tight, empty]: [Start; 3] = [full_set, set_with_room_for_one, FlowSet::default];
    for (what, set, room) in [("full buckets", full, 2), ("room for one", tight, 1), ("empty", empty, 2)] {
        for interloper in [OLD[0], OLD[1], NEW, OTHER] {
            for step in 0.. {
                let Finish { got, owed, reached, .. } = interleaved(set(), interloper, step);
                if !reached {
                    assert!(step > 20, "a claim has more steps than {step}");
                    break;
                }
                let case = format!("{what}: flow {interloper} before step {step}");
                let flows = if interloper == NEW { 1 } else { 2 };
                assert!(got.len() >= flows.min(room), "{case}: refused, though there was room");
                assert_eq!(owed.values().sum::<u64>(), got.values().sum::<u64>(), "{case}");
                for (tag, bytes) in got {
                    // One packet may have been charged to the wrong bucket.
                    let wrong = owed.get(&tag).copied().unwrap_or(0).abs_diff(bytes);
                    assert!(wrong == 0 || wrong == 40 || wrong == 1500, "{case}: flow {tag} is wrong by {wrong}");
                }
            }
        }
    }
}

#[test]
fn of_two_new_flows_that_want_the_last_way_one_has_it_and_owes_all_that_passed() {
    for step in 0.. {
        let Finish { set, got, owed, reached } = interleaved(set_with_room_for_one(), OTHER, step);
        if !reached {
            break;
        }
        let held: Vec<_> = set.tags.iter().map(Native::load).filter(|tag| [NEW, OTHER].contains(tag)).collect();
        assert_eq!(held.len(), 1, "step {step}");
        // Both passed only if the other took the way before the first, which had it, could charge its packet there.
        assert_eq!(owed.get(&held[0]), Some(&got.values().sum::<u64>()), "step {step}");
        assert!(got.len() == 1 || held == [OTHER], "step {step}");
    }
}

#[test]
fn the_debt_of_a_flow_that_takes_an_empty_way_is_not_lost_to_one_that_saw_it_empty() {
    // Found by the test of all steps: the tag was read before the other flow came and its word after, and swapped away.
    for step in 0.. {
        let Finish { owed, reached, .. } = interleaved(FlowSet::default(), OTHER, step);
        if !reached {
            break;
        }
        assert_eq!(owed, Bytes::from([(OTHER, 40), (NEW, 1500)]), "step {step}");
    }
}

#[test]
fn a_flow_that_two_processors_bring_at_once_has_at_most_one_packet_in_a_way_that_is_not_found() {
    let mut twice = 0;
    for step in 0.. {
        let Finish { set, got, reached, .. } = interleaved(full_set(), NEW, step);
        if !reached {
            break;
        }
        let ways: Vec<_> = (0..WAYS).filter(|&way| Native::load(&set.tags[way]) == NEW).collect();
        assert!(ways.len() <= 2, "step {step}");
        assert_eq!(find::<Native>(&set, NEW), Some(ways[0]), "step {step}");
        let owed = ways.iter().map(|&way| debt(Native::load(&set.full_at[way]), V));
        assert!(owed.clone().all(|owed| owed > 0), "step {step}");
        assert_eq!(owed.sum::<u64>(), got[&NEW], "step {step}");
        twice += ways.len() - 1;
    }
    // Only if the other comes in between the two swaps.
    assert_eq!(twice, 1);
}

#[test]
fn two_packets_of_one_new_flow_count_as_two_from_nothing() {
    for step in 0.. {
        let Finish { set, reached, .. } = interleaved(full_set(), NEW, step);
        if !reached {
            break;
        }
        assert_eq!(counts(&set, NEW), [2, 1540, 0, 0], "step {step}");
    }
}

#[test]
fn a_packet_that_has_found_its_way_and_is_overtaken_is_charged_to_the_flow_that_took_it() {
    let set = full_set();
    let way = find::<Native>(&set, OLD[0]).expect("it is there");
    packet::<Native>(&set, NEW, 1500);
    assert!(charge::<Native>(&set.full_at[way], V, BURST, 40));
    assert_eq!(debts(&set), Bytes::from([(NEW, 1540)]));
}

/// A packet that comes again until its flow has a way: a claim that lost three races in a row gives up.
fn insisting_packet(set: &FlowSet, tag: u64, bytes: u64) {
    while packet::<Native>(set, tag, bytes).is_none() {
        thread::yield_now();
    }
}

#[test]
fn threads_that_bring_the_same_new_flow_charge_and_count_every_packet() {
    const THREADS: u64 = 4;
    const PACKETS: u64 = 200;
    for round in 0..100 {
        let set = full_set();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..PACKETS).for_each(|_| insisting_packet(&set, NEW, 10)));
            }
        });
        let bytes = THREADS * PACKETS * 10;
        assert_eq!(debts(&set), Bytes::from([(NEW, bytes)]), "round {round}");
        assert_eq!(counts(&set, NEW), [THREADS * PACKETS, bytes, 0, 0], "round {round}");
    }
}

#[test]
fn threads_that_bring_eight_flows_to_an_empty_set_all_find_a_way_of_their_own() {
    for round in 0..100 {
        let set = FlowSet::default();
        thread::scope(|scope| {
            for thread in 0..4 {
                let set = &set;
                scope.spawn(move || {
                    for flow in [2 * thread + 1, 2 * thread + 2] {
                        insisting_packet(set, flow, 100 * flow);
                    }
                });
            }
        });
        assert_eq!(debts(&set), (1..=8).map(|flow| (flow, 100 * flow)).collect::<Bytes>(), "round {round}");
    }
}
