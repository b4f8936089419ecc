//! A loaded program beside its twin on the host: both see every packet, and must agree about it and in all they keep.

use aya::{
    Ebpf, Pod,
    maps::{Array, MapData, PerCpuArray},
    programs::{SchedClassifier, TestRun, TestRunOptions},
};
use shaper_common::{
    abi::{self, Count, RuleCounters, RuleLimits, Settings, feature, map, program},
    atomic::{Atomics, Native},
    bucket::Limit,
    key::Key,
    siphash::SipKey,
    table::{FlowSet, WAYS},
    verdict::{Reason, Verdict},
};
use tests::model::{
    packet::HostPacket,
    plane::{HostPlane, Outcome},
};

use crate::{object, skb::Skb};

/// A value that consists of its bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Plain<T>(pub(crate) T);

// SAFETY: used for the types of `shaper_common::abi` only, which are `repr(C)` integers without padding.
unsafe impl<T: Copy + 'static> Pod for Plain<T> {}

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
    limits: RuleLimits,
    settings: Settings,
    packets: u64,
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
        let mut object = object::load(program, settings);
        let mut rules: Array<&mut MapData, Plain<RuleLimits>> = object.map_mut(map::RULES).unwrap().try_into().unwrap();
        rules.set(0, Plain(limits), 0).unwrap();
        Self { object, program, twin: HostPlane::with_limits(settings, limits, now()), limits, settings, packets: 0 }
    }

    /// Sends a packet to both, asserts that they agree, and says what they agree on.
    pub(crate) fn run(&mut self, skb: &Skb) -> Outcome {
        let expected = self.twin.run(&HostPacket {
            bytes: skb.bytes.clone(),
            offload: skb.offload(self.program == program::TC_EGRESS),
            ..HostPacket::default()
        });
        let before = self.counters();
        let (verdict, _) = self.kernel(skb);
        let after = self.counters();
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

    /// The kernel's counters, all processors together.
    pub(crate) fn counters(&self) -> RuleCounters {
        let counters: PerCpuArray<&MapData, Plain<RuleCounters>> =
            self.object.map(map::COUNTERS).unwrap().try_into().unwrap();
        let values = counters.get(&abi::DEFAULT_RULE, 0).unwrap();
        values.iter().fold(RuleCounters::default(), |mut sum, Plain(cpu)| {
            for (sum, cpu) in sum.reasons.iter_mut().zip(cpu.reasons) {
                merge(sum, cpu);
            }
            merge(&mut sum.dropped, cpu.dropped);
            merge(&mut sum.marked, cpu.marked);
            sum
        })
    }

    /// The flows of the host's table with the packets that passed and that were dropped.
    pub(crate) fn flows(&self) -> Vec<(Key, u64, u64)> {
        self.twin.tracked()
    }

    /// Asserts that both tables hold the same flows in the same ways with the same counters, and debts that differ by
    /// no more than the bytes that the clock counted meanwhile.
    pub(crate) fn assert_same_tables(&self) {
        let flows: Array<&MapData, Plain<[u64; SET_WORDS]>> = self.object.map(map::FLOWS).unwrap().try_into().unwrap();
        let slack = self.limits.rate.clock.at(now()).wrapping_sub(self.limits.rate.clock.v0) + 1;
        for (index, set) in (0..=self.settings.set_mask).zip(self.twin.maps().flows()) {
            let Plain(kernel) = flows.get(&index, 0).unwrap();
            let host = words(set);
            for word in 0..SET_WORDS {
                let same = match word {
                    word if is_bucket(word) => {
                        kernel[word].wrapping_sub(host[word]) <= slack || kernel[word] == host[word]
                    }
                    word if is_since(word) => (kernel[word] == 0) == (host[word] == 0),
                    _ => kernel[word] == host[word],
                };
                assert!(same, "set {index}, word {word}: {:#x} in the kernel, {:#x} here", kernel[word], host[word]);
            }
        }
    }
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

fn merge(sum: &mut Count, more: Count) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
}
