//! A packet's way through the limits, the same in the kernel, in the tool and in tests.
//!
//! [`judge`] decides and charges; it counts nothing in the rule's counters, because every packet is counted exactly
//! once, where it leaves.

use crate::{
    abi::{DEFAULT_RULE, Overflow, RuleLimits, RuleState, feature},
    answer::Answer,
    atomic::{AtomicU64, Atomics},
    bucket,
    cost::{self, Accounting, Cost},
    key::{KEY_WORDS, Key, Per, Prefix},
    layers::{Buckets, Layers},
    packet::{self, Continuation, Facts, Link, Packet},
    remark::{self, TrafficClass},
    siphash::SipKey,
    table::{self, FlowSet, FlowState, MoreBuckets},
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
    /// Bits of [`feature`].
    fn features(&self) -> u8;
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
    /// The words that all packets of a rule share.
    fn state(&self, rule: u32) -> Option<&RuleState>;

    /// Takes a way for a new flow; a call of its own, so that the way of a known flow stays short.
    #[inline(always)]
    fn claim(&self, set: &FlowSet, tag: u64, key: &[u64; KEY_WORDS], v: u64, now: u64) -> Option<usize> {
        table::claim::<Self::Atomics>(set, tag, key, v, now, |more| self.are_full(more, now))
    }

    /// Judges a packet by several limits; a call of its own, like [`Plane::claim`].
    #[inline(always)]
    fn hear<P: Packet + ?Sized>(&self, packet: &P, case: &Case) -> Answer
    where
        Self: Sized,
    {
        hear(self, packet, case)
    }

    /// Whether the other buckets of a way are full, as far as there are such limits.
    #[inline(always)]
    fn are_full(&self, more: &MoreBuckets, now: u64) -> bool {
        let features = self.settings().features();
        if features & (feature::PEAK | feature::PPS) == 0 {
            return true;
        }
        let Some(limits) = self.limits(DEFAULT_RULE) else { return false };
        let owes = |bit, word, limit: &bucket::Limit| {
            features & bit != 0 && bucket::debt(Self::Atomics::load(word), limit.clock.at(now)) != 0
        };
        !owes(feature::PEAK, &more.peak_full_at, &limits.peak) && !owes(feature::PPS, &more.pps_full_at, &limits.pps)
    }
}

/// What becomes of a packet, and what has to be counted.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Decision<'a> {
    /// What happens to it, why, and how it was changed.
    pub answer: Answer,
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
    let identify = Identify { packet, settings };
    let Some(Identity { tag, key, cost, class }) = packet::parse_then(packet, settings.link(), &identify) else {
        return Decision {
            answer: Answer::pass(Reason::Exempt),
            cost: cost::unlimited(packet),
            rule: DEFAULT_RULE,
            flow: None,
        };
    };
    let rule = DEFAULT_RULE;
    let decide = |answer, flow| Decision { answer, cost, rule, flow };
    let features = settings.features();
    if features & feature::BLOCK != 0 {
        return decide(Answer::drop(Reason::Blocked), None);
    }

    let (Some(limits), Some(set)) = (plane.limits(rule), plane.flows(tag as u32 & settings.set_mask())) else {
        // The maps are sized for every index that is asked for. If that were ever wrong, nothing may pass unlimited.
        return decide(Answer::drop(Reason::Untracked), None);
    };
    let now = plane.now();
    let v = limits.rate.clock.at(now);
    let way = match table::find::<L::Atomics>(set, tag) {
        Some(way) => Some(way),
        None => plane.claim(set, tag, &key, v, now),
    };
    let flow = way.map(|way| &set.state[way]);
    if features == feature::RATE {
        // The common case, in as few instructions as there are.
        let burst = limits.rate.burst;
        let answer = match (way, settings.overflow()) {
            (Some(way), _) => rate_alone::<L>(&set.full_at[way], v, burst, cost),
            (None, Overflow::Open) => Answer::pass(Reason::Untracked),
            (None, Overflow::Closed) => Answer::drop(Reason::Untracked),
            (None, Overflow::Shared) => match plane.state(rule) {
                Some(state) => rate_alone::<L>(&state.untracked_full_at, v, burst, cost).because(Reason::Untracked),
                None => Answer::drop(Reason::Untracked),
            },
        };
        return decide(answer, flow);
    }
    let way = way.map_or(NO_WAY, |way| way as u32);
    let case = Case { set: tag as u32 & settings.set_mask(), way, cost, class, now };
    decide(plane.hear(packet, &case), flow)
}

#[inline(always)]
fn rate_alone<L: Plane>(word: &AtomicU64, v: u64, burst: u64, cost: Cost) -> Answer {
    if bucket::charge::<L::Atomics>(word, v, burst, cost.bytes) {
        Answer::pass(Reason::Conform)
    } else if cost.bytes > burst {
        Answer::drop(Reason::Oversize)
    } else {
        Answer::drop(Reason::Rate)
    }
}

/// In [`Case::way`]: the flow found none.
pub const NO_WAY: u32 = table::WAYS as u32;

/// A packet that several limits have to judge.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The set of its flow.
    pub set: u32,
    /// The way of its flow, or [`NO_WAY`].
    pub way: u32,
    /// What it costs.
    pub cost: Cost,
    /// Where its traffic class stands.
    pub class: TrafficClass,
    /// The time in nanoseconds.
    pub now: u64,
}

/// Judges a packet by all limits there are. Looks at all of them before it charges any, so that a packet that is dropped
/// writes to no bucket.
#[inline(always)]
pub fn hear<L: Plane, P: Packet + ?Sized>(plane: &L, packet: &P, case: &Case) -> Answer {
    let &Case { set, way, cost, class, now } = case;
    let features = plane.settings().features();
    let (Some(limits), Some(state), Some(set)) =
        (plane.limits(DEFAULT_RULE), plane.state(DEFAULT_RULE), plane.flows(set))
    else {
        return Answer::drop(Reason::Untracked);
    };
    let total = &state.device_total_full_at;
    if way < NO_WAY {
        let way = way as usize % table::WAYS;
        let buckets = Buckets { rate: &set.full_at[way], more: &set.state[way].more, total };
        return weigh::<L::Atomics, P>(&Layers::new(&buckets, limits, features, now, cost), packet, class, limits);
    }
    let buckets = Buckets { rate: &state.untracked_full_at, more: &state.untracked_more, total };
    let features = match plane.settings().overflow() {
        Overflow::Shared => features,
        Overflow::Open => features & feature::DEVICE_TOTAL,
        Overflow::Closed => return Answer::drop(Reason::Untracked),
    };
    let layers = Layers::new(&buckets, limits, features, now, cost);
    weigh::<L::Atomics, P>(&layers, packet, class, limits).because(Reason::Untracked)
}

#[inline(always)]
fn weigh<A: Atomics, P: Packet + ?Sized>(
    layers: &Layers<'_>,
    packet: &P,
    class: TrafficClass,
    limits: &RuleLimits,
) -> Answer {
    if layers.is_oversize() {
        return Answer::drop(Reason::Oversize);
    }
    let mut reason = layers.meter::<A>();
    if matches!(reason, Reason::Conform) {
        match layers.charge::<A>() {
            Ok(()) => return Answer::pass(Reason::Conform),
            Err(Reason::DeviceTotal) => return Answer::drop(Reason::DeviceTotal),
            // Another CPU has used up what was there a moment ago: the packet has another colour now.
            Err(refused) => reason = refused,
        }
    }
    let action = if matches!(reason, Reason::Peak) { limits.violate } else { limits.exceed };
    let Some(change) = remark::plan(packet, class, action.action()) else { return Answer::drop(reason) };
    match layers.charge_excess::<A>(reason) {
        Ok(()) => Answer::pass(reason).with(change),
        Err(reason) => Answer::drop(reason),
    }
}

/// Who pays, and how much.
struct Identity {
    tag: u64,
    key: [u64; KEY_WORDS],
    cost: Cost,
    class: TrafficClass,
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
            class: facts.into(),
        }
    }
}

impl Decision<'_> {
    /// Counts the packet for its flow.
    #[inline(always)]
    pub fn count_flow<A: Atomics>(&self) {
        if let Some(flow) = self.flow {
            let tally = match self.answer.verdict() {
                Verdict::Pass => &flow.passed,
                Verdict::Drop => &flow.dropped,
            };
            tally.add::<A>(self.cost.packets, self.cost.bytes);
            if self.answer.is_marked() {
                A::add(&flow.marked_packets, self.cost.packets);
            }
        }
    }
}

impl crate::abi::RuleCounters {
    /// Counts a packet: once by its reason, and once more if it was dropped or marked.
    #[inline(always)]
    pub fn count(&mut self, decision: &Decision<'_>) {
        let Decision { answer, cost, .. } = *decision;
        if let Some(reason) = self.reasons.get_mut(answer.reason_index()) {
            reason.add(cost);
        }
        if matches!(answer.verdict(), Verdict::Drop) {
            self.dropped.add(cost);
        }
        if answer.is_marked() {
            self.marked.add(cost);
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
