//! A loaded program beside its twin on the host: both see every packet, and must agree about it and in all they keep.

use aya::{
    Ebpf, Pod,
    maps::{Array, MapData},
    programs::{SchedClassifier, TestRun, TestRunOptions},
};
use shaper_common::{
    abi::{Count, RuleCounts, RuleLimits, RuleState, Settings, feature, map, program},
    atomic::{Atomics, Native},
    bucket::{self, Limit},
    clock::Clock,
    key::Key,
    rule::{Boundary, Index, Link},
    siphash::SipKey,
    table::{FlowSet, MoreBuckets, WAYS, stamp},
    verdict::{Reason, Verdict},
};
use tests::model::{
    packet::HostPacket,
    plane::{HostPlane, Outcome},
    rules::RuleBook,
};

use crate::{object, skb::Skb};

/// A value that consists of its bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Plain<T>(pub(crate) T);

// SAFETY: used for the types of `shaper_common::abi` only, which are `repr(C)` integers without padding.
unsafe impl<T: Copy + 'static> Pod for Plain<T> {}

/// Words of what the packets of a rule share.
const STATE_WORDS: usize = size_of::<RuleState>() / 8;
/// Words of a set of the flow table.
const SET_WORDS: usize = size_of::<FlowSet>() / 8;
/// What `TC_ACT_UNSPEC` and `TC_ACT_SHOT` look like as results.
const UNSPEC: u32 = u32::MAX;
const SHOT: u32 = 2;

/// The two.
pub(crate) struct Rig {
    object: Ebpf,
    program: &'static str,
    twin: HostPlane,
    settings: Settings,
    /// Number of the configuration in force, and the most rules there can be.
    config: u64,
    room: Room,
    started: u64,
    packets: u64,
}

/// How many rules, boundaries and links a rig has room for in each half.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) rules: u32,
    pub(crate) boundaries: u32,
    pub(crate) links: u32,
}

impl Room {
    /// Enough for a book, and for another one twice as large.
    pub(crate) fn twice(book: &RuleBook) -> Self {
        let twice = |n: usize| 2 * n as u32 + 1;
        Self {
            rules: twice(book.limits.len()),
            boundaries: twice(book.boundaries.len()),
            links: twice(book.links.len()),
        }
    }
}

/// Settings as the tool gives them when nothing is asked for, with a table of `sets` sets.
pub(crate) fn settings(sets: u32) -> Settings {
    assert!(sets.is_power_of_two());
    Settings {
        secret: SipKey { k0: 0x0123_4567_89ab_cdef, k1: 0xfedc_ba98_7654_3210 },
        set_mask: sets - 1,
        prefix_v4: 32,
        prefix_v6: 128,
        features: feature::RATE,
        ..Settings::default()
    }
}

/// A limit that does not refill while a test runs: one byte a second.
pub(crate) fn standing(burst: u64) -> Limit {
    Limit::new(8, burst, now())
}

/// A limit whose clock stands still at `ORIGIN + ahead`: not even a slow test earns a packet, and both sides have the same
/// words.
pub(crate) fn still(ahead: u64, burst: u64) -> Limit {
    Limit { clock: Clock { t0: 0, v0: Clock::ORIGIN + ahead, mult: 0, shift: 61 }, burst }
}

/// The data plane's clock.
pub(crate) fn now() -> u64 {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    u64::try_from(time.tv_sec()).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec()).unwrap()
}

impl Rig {
    /// The program at ingress, with no limit but this one.
    pub(crate) fn ingress(settings: Settings, rate: Limit) -> Self {
        Self::new(program::TC_INGRESS, settings, RuleLimits { rate, ..RuleLimits::default() })
    }

    /// The program at egress, with no limit but this one.
    pub(crate) fn egress(settings: Settings, rate: Limit) -> Self {
        Self::new(program::TC_EGRESS, settings, RuleLimits { rate, ..RuleLimits::default() })
    }

    /// A program with those of the limits that the settings' features name.
    pub(crate) fn new(program: &'static str, settings: Settings, limits: RuleLimits) -> Self {
        Self::with_rules(program, settings, &RuleBook::single(limits))
    }

    /// A program with these rules.
    pub(crate) fn with_rules(program: &'static str, settings: Settings, book: &RuleBook) -> Self {
        Self::with_room(program, settings, book, Room::twice(book))
    }

    /// A program with these rules and room for others.
    pub(crate) fn with_room(program: &'static str, settings: Settings, book: &RuleBook, room: Room) -> Self {
        let object = object::load(program, settings, room);
        let started = now();
        let twin = HostPlane::with_rules(settings, book.clone(), started);
        let config = settings.epoch_base;
        let mut rig = Self { object, program, twin, settings, config, room, started, packets: 0 };
        rig.publish(book);
        rig
    }

    /// Puts other rules in force.
    pub(crate) fn switch(&mut self, book: &RuleBook) {
        self.config += 1;
        self.publish(book);
        let mut control: Array<&mut MapData, u64> = self.object.map_mut(map::CONTROL).unwrap().try_into().unwrap();
        control.set(0, self.config - self.settings.epoch_base, 0).unwrap();
        self.twin.switch(book.clone());
    }

    /// Makes the words and counters of a rule zero, as the tool does for a new one.
    pub(crate) fn renew(&mut self, rule: u32) {
        self.array(map::STATES).set(rule, Plain([0_u64; STATE_WORDS]), 0).unwrap();
        let shards = Settings::counters_of(self.settings.shard_mask);
        for shard in 0..shards {
            let zero = Counters { counts: RuleCounts::default() };
            self.array(map::COUNTERS).set(rule * shards + shard, Plain(zero), 0).unwrap();
        }
        self.twin.renew(rule);
    }

    /// What the kernel's flows that are stamped with a rule owe on the clock of this limit of it, which stands still:
    /// bytes of their `rate`.
    pub(crate) fn debts(&self, limit: &Limit, rule: u32) -> Vec<u64> {
        let flows: Array<&MapData, Plain<[u64; SET_WORDS]>> = self.object.map(map::FLOWS).unwrap().try_into().unwrap();
        let mut debts = Vec::new();
        for set in 0..=self.settings.set_mask {
            let Plain(set) = flows.get(&set, 0).unwrap();
            let of_rule = |way: &usize| set[*way] != 0 && stamp::rule(set[STATES + 8 * way]) == rule;
            debts.extend((0..WAYS).filter(of_rule).map(|way| bucket::debt(set[FULL_AT + way], limit.clock.v0)));
        }
        debts
    }

    /// What the kernel's packets of a rule owe to its total, whose clock stands still.
    pub(crate) fn total_debt(&self, rule: u32) -> u64 {
        let states: Array<&MapData, Plain<[u64; STATE_WORDS]>> =
            self.object.map(map::STATES).unwrap().try_into().unwrap();
        let Plain(words) = states.get(&rule, 0).unwrap();
        bucket::debt(words[3], self.twin.maps().limits()[rule as usize].total.clock.v0)
    }

    /// Writes the half that the configuration's number says.
    fn publish(&mut self, book: &RuleBook) {
        let half = self.config as u32 & 1;
        for (rule, limits) in (0..).zip(&book.limits) {
            self.array::<RuleLimits>(map::RULES).set(2 * rule + half, Plain(*limits), 0).unwrap();
        }
        let (boundaries, links) = (half * self.room.boundaries, half * self.room.links);
        for (at, boundary) in (boundaries..).zip(&book.boundaries) {
            let link = if boundary.link == 0 { 0 } else { boundary.link + u64::from(links) };
            self.array(map::BOUNDARIES).set(at, Plain(Boundary { link, ..*boundary }), 0).unwrap();
        }
        for (at, link) in (links..).zip(&book.links) {
            let next = if link.next == 0 { 0 } else { link.next + links };
            self.array(map::LINKS).set(at, Plain(Link { next, ..*link }), 0).unwrap();
        }
        let mut index = book.index;
        index.tables.iter_mut().for_each(|table| table.first += boundaries);
        self.array::<Index>(map::INDEX).set(half, Plain(index), 0).unwrap();
    }

    fn array<T: Copy + 'static>(&mut self, name: &str) -> Array<&mut MapData, Plain<T>> {
        self.object.map_mut(name).unwrap().try_into().unwrap()
    }

    /// Sends a packet to both, asserts that they agree, and says what they agree on.
    pub(crate) fn run(&mut self, skb: &Skb) -> Outcome {
        let expected = self.twin.run(&HostPacket {
            bytes: skb.bytes.clone(),
            offload: skb.offload(self.program == program::TC_EGRESS),
            ..HostPacket::default()
        });
        let before = self.counters_of(expected.rule);
        let (verdict, _) = self.kernel(skb);
        let after = self.counters_of(expected.rule);
        self.packets += 1;
        let whole = || format!("packet {} {skb:02x?}\nof {} with {:?}", self.packets, self.program, self.settings);
        assert_eq!(verdict, expected.verdict, "verdict on {}", whole());
        let mut counted = before;
        add(&mut counted.reasons[expected.reason as usize], &expected);
        if expected.verdict == Verdict::Drop {
            add(&mut counted.dropped, &expected);
        }
        if expected.marked {
            add(&mut counted.marked, &expected);
        }
        assert_eq!(after, counted, "counters, expecting {expected:?}, after {}", whole());
        expected
    }

    /// Sends `frame` without offload.
    pub(crate) fn frame(&mut self, frame: &[u8]) -> (Verdict, Reason) {
        let outcome = self.run(&Skb::plain(frame));
        (outcome.verdict, outcome.reason)
    }

    /// What the kernel alone says, and the packet as it leaves.
    pub(crate) fn kernel(&self, skb: &Skb) -> (Verdict, Skb) {
        let classifier: &SchedClassifier = self.object.program(self.program).unwrap().try_into().unwrap();
        let mut options = TestRunOptions::new();
        options.data_in = Some(&skb.bytes);
        let context = skb.context();
        options.ctx_in = Some(&context);
        let mut bytes = vec![0; skb.bytes.len()];
        options.data_out = Some(&mut bytes);
        let mut context = context;
        options.ctx_out = Some(&mut context);
        let result =
            classifier.test_run(options).unwrap_or_else(|error| panic!("BPF_PROG_TEST_RUN of {skb:02x?}: {error:?}"));
        let verdict = match result.return_value {
            UNSPEC => Verdict::Pass,
            SHOT => Verdict::Drop,
            other => panic!("the program returned {other}"),
        };
        (verdict, Skb { bytes, mark: Skb::mark_of(&context), ..skb.clone() })
    }

    /// The kernel's counters, of all rules and processors together.
    pub(crate) fn counters(&self) -> RuleCounts {
        let mut sum = RuleCounts::default();
        for rule in 0..self.twin.maps().limits().len() as u32 {
            merge_all(&mut sum, &self.counters_of(rule));
        }
        sum
    }

    /// The kernel's counters of a rule, all processors together.
    pub(crate) fn counters_of(&self, rule: u32) -> RuleCounts {
        let counters: Array<&MapData, Plain<Counters>> = self.object.map(map::COUNTERS).unwrap().try_into().unwrap();
        let shards = Settings::counters_of(self.settings.shard_mask);
        let mut sum = RuleCounts::default();
        for shard in 0..shards {
            let Plain(Counters { counts, .. }) = counters.get(&(rule * shards + shard), 0).unwrap();
            merge_all(&mut sum, &counts);
        }
        sum
    }

    /// The flows of the host's table with the packets that passed and that were dropped.
    pub(crate) fn flows(&self) -> Vec<(Key, u64, u64)> {
        self.twin.tracked()
    }

    /// Asserts that both tables hold the same flows in the same ways with the same counters, and debts that differ by
    /// no more than the bytes that the clocks have counted meanwhile.
    pub(crate) fn assert_same_tables(&self) {
        let flows: Array<&MapData, Plain<[u64; SET_WORDS]>> = self.object.map(map::FLOWS).unwrap().try_into().unwrap();
        let slack = self.slack();
        for (index, set) in (0..=self.settings.set_mask).zip(self.twin.maps().flows()) {
            let Plain(kernel) = flows.get(&index, 0).unwrap();
            let host = words(set);
            for word in 0..SET_WORDS {
                let same = match word {
                    word if is_bucket(word) => kernel[word].wrapping_sub(host[word]) <= slack,
                    word if is_since(word) => (kernel[word] == 0) == (host[word] == 0),
                    _ => kernel[word] == host[word],
                };
                assert!(same, "set {index}, word {word}: {:#x} in the kernel, {:#x} here", kernel[word], host[word]);
            }
            for way in 0..WAYS {
                assert!(!stamp::is_moving(kernel[STATES + 8 * way]), "set {index}, way {way} is being moved");
            }
        }
    }

    /// The same of all that rules keep: the words that their packets share, and the counters.
    pub(crate) fn assert_same(&self) {
        self.assert_same_tables();
        let states: Array<&MapData, Plain<[u64; STATE_WORDS]>> =
            self.object.map(map::STATES).unwrap().try_into().unwrap();
        let slack = self.slack();
        for (rule, state) in (0..).zip(self.twin.maps().states()) {
            let Plain(kernel) = states.get(&rule, 0).unwrap();
            let MoreBuckets { peak_full_at, pps_full_at } = &state.untracked_more;
            let RuleState { untracked_full_at, total_full_at, device_total_full_at, .. } = state;
            let host = [untracked_full_at, peak_full_at, pps_full_at, total_full_at, device_total_full_at];
            for (word, (kernel, host)) in kernel.into_iter().zip(host.map(Native::load)).enumerate() {
                let same = kernel.wrapping_sub(host) <= slack;
                assert!(same, "rule {rule}, word {word}: {kernel:#x} in the kernel, {host:#x} here");
            }
            assert_eq!(self.counters_of(rule), self.twin.counters_of(rule), "counters of rule {rule}");
        }
    }

    /// By how much the words of the kernel, whose clocks go on, may be ahead of the host's; 0 if all clocks stand still.
    fn slack(&self) -> u64 {
        let (started, now) = (self.started, now());
        let counted = |limit: &Limit| match limit.clock.mult {
            0 => 0,
            _ => limit.clock.at(now).wrapping_sub(limit.clock.at(started)) + 1,
        };
        let limits = self.twin.maps().limits();
        let counted = |of: &RuleLimits| {
            [of.rate, of.peak, of.pps, of.total, of.device_total].iter().map(counted).max().unwrap_or_default()
        };
        limits.iter().map(counted).max().unwrap_or_default()
    }
}

/// An element of the map of counters.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Counters {
    counts: RuleCounts,
}

/// Where in a set the bucket words start, the states, and the keys.
const FULL_AT: usize = WAYS;
const STATES: usize = 2 * WAYS;
const KEYS: usize = STATES + 8 * WAYS;
/// Words of a way's key, the time it was taken last.
const KEY_WORDS: usize = 6;

/// Whether a word is on a clock: the buckets, and the two last words of a state.
fn is_bucket(word: usize) -> bool {
    (FULL_AT..STATES).contains(&word) || ((STATES..KEYS).contains(&word) && (word - STATES) % 8 >= 6)
}

fn is_since(word: usize) -> bool {
    word >= KEYS && (word - KEYS) % KEY_WORDS == KEY_WORDS - 1
}

/// A set in the order of its memory.
fn words(set: &FlowSet) -> Vec<u64> {
    let state = set.state.iter().flat_map(|state| {
        [
            &state.rule,
            &state.passed.packets,
            &state.passed.bytes,
            &state.dropped.packets,
            &state.dropped.bytes,
            &state.marked_packets,
            &state.more.peak_full_at,
            &state.more.pps_full_at,
        ]
    });
    let keys = set.keys.iter().flat_map(|key| key.words.iter().chain([&key.since]));
    let words: Vec<u64> = set.tags.iter().chain(&set.full_at).chain(state).chain(keys).map(Native::load).collect();
    assert_eq!(words.len(), SET_WORDS);
    words
}

fn add(count: &mut Count, outcome: &Outcome) {
    merge(count, Count { packets: outcome.cost.packets, bytes: outcome.cost.bytes });
}

fn merge_all(sum: &mut RuleCounts, more: &RuleCounts) {
    for (sum, more) in sum.reasons.iter_mut().zip(more.reasons) {
        merge(sum, more);
    }
    merge(&mut sum.dropped, more.dropped);
    merge(&mut sum.marked, more.marked);
}

fn merge(sum: &mut Count, more: Count) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}
