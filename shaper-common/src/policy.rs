//! A packet's way through the limits, the same in the kernel, in the tool and in tests.
//!
//! [`judge`] decides and charges; it counts nothing in the rule's counters, because every packet is counted exactly
//! once, where it leaves.

use crate::{
    abi::{DEFAULT_RULE, Overflow, RuleLimits},
    atomic::{AtomicU64, Atomics},
    bucket,
    cost::{self, Accounting, Cost},
    key::{KEY_WORDS, Key, Per, Prefix},
    packet::{self, Continuation, Facts, Link, Packet},
    siphash::SipKey,
    table::{self, FlowSet, FlowState},
    verdict::{Reason, Verdict},
};

/// What does not change while a program is loaded.
pub trait Settings {
    /// What stands before the IP header.
    fn link(&self) -> Link;
    /// Who shares a bucket.
    fn per(&self) -> Per;
    /// The bits of an address that count, for prefix keys.
    fn prefix(&self) -> Prefix;
    /// Which bytes count.
    fn accounting(&self) -> Accounting;
    /// Secret of the flow table's hash.
    fn secret(&self) -> SipKey;
    /// Number of sets in the flow table, less one.
    fn set_mask(&self) -> u32;
    /// What happens to flows that find no way.
    fn overflow(&self) -> Overflow;
}

/// The maps and the time.
pub trait Plane {
    /// How words are changed.
    type Atomics: Atomics;
    /// The constants.
    type Settings: Settings;

    /// The constants.
    fn settings(&self) -> &Self::Settings;
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn now(&self) -> u64;
    /// The limits of a rule in the configuration in force.
    fn limits(&self, rule: u32) -> Option<&RuleLimits>;
    /// A set of the flow table.
    fn flows(&self, set: u32) -> Option<&FlowSet>;
    /// The shared bucket of a rule's untracked flows.
    fn untracked(&self, rule: u32) -> Option<&AtomicU64>;

    /// Takes a way for a new flow; a call of its own, so that the way of a known flow stays short.
    #[inline(always)]
    fn claim(&self, set: &FlowSet, tag: u64, key: &[u64; KEY_WORDS], v: u64, now: u64) -> Option<usize> {
        table::claim::<Self::Atomics>(set, tag, key, v, now)
    }
}

/// What becomes of a packet, and what has to be counted.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Decision<'a> {
    /// What happens to it.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// What it costs.
    pub cost: Cost,
    /// The rule that judged it.
    pub rule: u32,
    /// The flow it belongs to, if that is tracked.
    pub flow: Option<&'a FlowState>,
}

/// Decides about `packet` and charges it.
#[inline(always)]
pub fn judge<'a, L: Plane, P: Packet + ?Sized>(plane: &'a L, packet: &P) -> Decision<'a> {
    let settings = plane.settings();
    let Some(Identity { tag, key, cost }) = packet::parse_then(packet, settings.link(), &Identify { packet, settings })
    else {
        return Decision {
            verdict: Verdict::Pass,
            reason: Reason::Exempt,
            cost: cost::unlimited(packet),
            rule: DEFAULT_RULE,
            flow: None,
        };
    };
    let rule = DEFAULT_RULE;
    let decide = |verdict, reason, flow| Decision { verdict, reason, cost, rule, flow };

    let (Some(limits), Some(set)) = (plane.limits(rule), plane.flows(tag as u32 & settings.set_mask())) else {
        // The maps are sized for every index that is asked for. If that were ever wrong, nothing may pass unlimited.
        return decide(Verdict::Drop, Reason::Untracked, None);
    };
    let now = plane.now();
    let v = limits.rate.clock.at(now);
    let way = match table::find::<L::Atomics>(set, tag) {
        Some(way) => Some(way),
        None => plane.claim(set, tag, &key, v, now),
    };
    let Some(way) = way else {
        return decide(untracked(plane, rule, v, limits.rate.burst, cost.bytes), Reason::Untracked, None);
    };
    let flow = Some(&set.state[way]);
    if bucket::charge::<L::Atomics>(&set.full_at[way], v, limits.rate.burst, cost.bytes) {
        decide(Verdict::Pass, Reason::Conform, flow)
    } else if cost.bytes > limits.rate.burst {
        decide(Verdict::Drop, Reason::Oversize, flow)
    } else {
        decide(Verdict::Drop, Reason::Rate, flow)
    }
}

/// Who pays, and how much.
struct Identity {
    tag: u64,
    key: [u64; KEY_WORDS],
    cost: Cost,
}

struct Identify<'a, S, P: ?Sized> {
    packet: &'a P,
    settings: &'a S,
}

impl<S: Settings, P: Packet + ?Sized> Continuation for Identify<'_, S, P> {
    type Output = Identity;

    #[inline(always)]
    fn run(&self, facts: &Facts) -> Identity {
        let key = Key::new(facts, self.settings.per(), self.settings.prefix());
        Identity {
            tag: key.tag(&self.settings.secret()),
            key: key.encode(),
            cost: cost::of(self.packet, facts, self.settings.accounting()),
        }
    }
}

#[inline(never)]
fn untracked<L: Plane>(plane: &L, rule: u32, v: u64, burst: u64, bytes: u64) -> Verdict {
    match plane.settings().overflow() {
        Overflow::Open => Verdict::Pass,
        Overflow::Closed => Verdict::Drop,
        Overflow::Shared => match plane.untracked(rule) {
            Some(word) if bucket::charge::<L::Atomics>(word, v, burst, bytes) => Verdict::Pass,
            _ => Verdict::Drop,
        },
    }
}

impl Decision<'_> {
    /// Counts the packet for its flow.
    #[inline(always)]
    pub fn count_flow<A: Atomics>(&self) {
        if let Some(flow) = self.flow {
            let tally = match self.verdict {
                Verdict::Pass => &flow.passed,
                Verdict::Drop => &flow.dropped,
            };
            tally.add::<A>(self.cost.packets, self.cost.bytes);
        }
    }
}

impl crate::abi::RuleCounters {
    /// Counts a packet: once by its reason, and once more if it was dropped.
    #[inline(always)]
    pub fn count(&mut self, decision: &Decision<'_>) {
        let cost = decision.cost;
        self.reasons[decision.reason as usize].add(cost);
        if matches!(decision.verdict, Verdict::Drop) {
            self.dropped.add(cost);
        }
    }
}

impl crate::abi::Count {
    #[inline(always)]
    const fn add(&mut self, cost: Cost) {
        self.packets = self.packets.wrapping_add(cost.packets);
        self.bytes = self.bytes.wrapping_add(cost.bytes);
    }
}
