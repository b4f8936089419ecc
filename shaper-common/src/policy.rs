//! A packet's way through the limits, the same in the kernel, in the tool and in tests.
//!
//! [`judge`] decides and charges; it counts nothing in the rule's counters, because every packet is counted exactly
//! once, where it leaves.

use crate::{
    abi::{self, DEFAULT_RULE, Keying, Overflow, RuleCounters, RuleCounts, RuleLimits, RuleState, feature},
    answer::Answer,
    atomic::{AtomicU64, Atomics},
    bucket,
    cost::{self, Account, Accounting, Cost},
    key::{KEY_WORDS, Key, Per, Prefix},
    layers::{Buckets, Layers},
    packet::{self, Continuation, Facts, Link, Packet},
    place::{self, Seeker, SingleClocks, Way},
    remark::{self, TrafficClass},
    rule::Rules,
    siphash::SipKey,
    table::{self, FlowSet, FlowState, Newcomer, stamp},
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
    /// Bits of [`feature`]: of all rules together.
    fn features(&self) -> u8;
    /// How rule and bucket are found.
    fn keying(&self) -> Keying;
}

impl Settings for abi::Settings {
    #[inline(always)]
    fn link(&self) -> Link {
        if self.link == Link::Ethernet as u8 { Link::Ethernet } else { Link::Bare }
    }

    #[inline(always)]
    fn per(&self) -> Per {
        Per::from_u8(self.per).unwrap_or(Per::Dev)
    }

    #[inline(always)]
    fn prefix(&self) -> Prefix {
        Prefix { v4: self.prefix_v4, v6: self.prefix_v6 }
    }

    #[inline(always)]
    fn accounting(&self) -> Accounting {
        let account = if self.account == Account::L2 as u8 { Account::L2 } else { Account::L3 };
        Accounting { account, overhead: self.overhead, mpu: self.mpu }
    }

    #[inline(always)]
    fn secret(&self) -> SipKey {
        self.secret
    }

    #[inline(always)]
    fn set_mask(&self) -> u32 {
        self.set_mask
    }

    #[inline(always)]
    fn overflow(&self) -> Overflow {
        Overflow::from_u8(self.overflow).unwrap_or(Overflow::Closed)
    }

    #[inline(always)]
    fn features(&self) -> u8 {
        self.features
    }

    #[inline(always)]
    fn keying(&self) -> Keying {
        Keying::from_u8(self.keying).unwrap_or(Keying::ByRule)
    }
}

/// The maps and the time.
pub trait Plane: Rules {
    /// How words are changed.
    type Atomics: Atomics;
    /// The constants.
    type Settings: Settings;

    /// The constants.
    fn settings(&self) -> &Self::Settings;
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    fn now(&self) -> u64;
    /// The number of the configuration in force. A packet asks once, and is judged by that one to its end.
    fn config(&self) -> u64;
    /// The limits of a rule in the configuration of this number.
    fn limits(&self, rule: u32, config: u64) -> Option<&RuleLimits>;
    /// A set of the flow table.
    fn flows(&self, set: u32) -> Option<&FlowSet>;
    /// The words that all packets of a rule share.
    fn state(&self, rule: u32) -> Option<&RuleState>;

    /// Takes a way for a new flow where there is one rule; a call of its own, so that the way of a known flow stays short.
    #[inline(always)]
    fn claim(&self, set: &FlowSet, newcomer: &Newcomer<'_>, v: u64, config: u64) -> Option<usize>
    where
        Self: Sized,
    {
        table::claim::<Self::Atomics>(set, newcomer, &SingleClocks { plane: self, v, now: newcomer.now, config })
    }

    /// [`place::assign`]; a call of its own, like those that follow.
    #[inline(always)]
    fn assign(&self, seeker: &mut Seeker)
    where
        Self: Sized,
    {
        place::assign(self, seeker);
    }

    /// [`place::enter`].
    #[inline(always)]
    fn enter(&self, seeker: &Seeker) -> u32
    where
        Self: Sized,
    {
        place::enter(self, seeker)
    }

    /// [`place::move_in`].
    #[inline(always)]
    fn move_in(&self, seeker: &Seeker) -> u32
    where
        Self: Sized,
    {
        place::move_in(self, seeker)
    }

    /// [`place::full_for`].
    #[inline(always)]
    fn full_for(&self, way: &Way<'_>) -> u64
    where
        Self: Sized,
    {
        place::full_for(self, way)
    }

    /// See [`table::Clocks::blur`].
    #[inline(always)]
    fn blur(&self, way: usize) -> usize {
        way
    }

    /// [`hear`].
    #[inline(always)]
    fn hear<P: Packet + ?Sized>(&self, packet: &P, case: &Case) -> Answer
    where
        Self: Sized,
    {
        hear(self, packet, case)
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
    let config = plane.config();
    let identify = Identify { packet, plane, config };
    let Some(Identity { tag, key, rule, cost, class }) = packet::parse_then(packet, settings.link(), &identify) else {
        return Decision {
            answer: Answer::pass(Reason::Exempt),
            cost: cost::unlimited(packet),
            rule: DEFAULT_RULE,
            flow: None,
        };
    };
    let (keying, all) = (settings.keying(), settings.features());
    let single = matches!(keying, Keying::Single);
    if single && all & feature::BLOCK != 0 {
        return Decision { answer: Answer::drop(Reason::Blocked), cost, rule, flow: None };
    }

    // The maps are sized for every index that is asked for. If that were ever wrong, nothing may pass unlimited.
    let lost = Decision { answer: Answer::drop(Reason::Untracked), cost, rule, flow: None };
    let Some(set) = plane.flows(tag as u32 & settings.set_mask()) else { return lost };
    let known = table::find::<L::Atomics>(set, tag);
    let now = plane.now();
    // Whose rule the stamp names is certain only if the way is still the flow's behind the load.
    let remembered = match (keying, known) {
        (Keying::Cached, Some(way)) => {
            let held = L::Atomics::load(&set.state[way].rule);
            let is_own = stamp::is_of(held, config) && L::Atomics::load(&set.tags[way]) == tag;
            is_own.then_some(stamp::rule(held))
        }
        _ => None,
    };
    let (rule, way) = match (keying, known, remembered) {
        (_, Some(way), Some(rule)) => (rule, Some(way)),
        (Keying::Single | Keying::ByRule, Some(way), None) => (rule, Some(way)),
        (Keying::Single, None, _) => {
            let Some(limits) = plane.limits(rule, config) else { return lost };
            (rule, plane.claim(set, &Newcomer { tag, key: &key, now }, limits.rate.clock.at(now), config))
        }
        (Keying::Cached | Keying::ByRule, known, _) => {
            let mut seeker = Seeker { words: key, tag, now, config: config as u32, rule };
            if matches!(keying, Keying::Cached) {
                plane.assign(&mut seeker);
            }
            let way = if known.is_some() { plane.move_in(&seeker) } else { plane.enter(&seeker) };
            (seeker.rule, (way < NO_WAY).then_some(way as usize))
        }
    };
    let way = way.map(|way| way % table::WAYS);
    let flow = way.map(|way| &set.state[way]);
    let decide = |answer| Decision { answer, cost, rule, flow };
    let Some(limits) = plane.limits(rule, config) else { return lost };
    let features = features(settings, limits);
    if features & feature::BLOCK != 0 {
        return decide(Answer::drop(Reason::Blocked));
    }
    if features & feature::LIMITS == 0 {
        return decide(Answer::pass(Reason::Conform));
    }
    if features == feature::RATE {
        // The common case, in as few instructions as there are.
        let (v, burst) = (limits.rate.clock.at(now), limits.rate.burst);
        let answer = match (way, settings.overflow()) {
            (Some(way), _) => {
                let word = &set.full_at[way];
                let answer = rate_alone::<L>(word, v, burst, cost);
                if !single && matches!(answer.verdict(), Verdict::Drop) {
                    bucket::heal::<L::Atomics>(word, v, burst, bucket::DOUBT_BYTES);
                }
                answer
            }
            (None, Overflow::Open) => Answer::pass(Reason::Untracked),
            (None, Overflow::Closed) => Answer::drop(Reason::Untracked),
            (None, Overflow::Shared) => match plane.state(rule) {
                Some(state) => rate_alone::<L>(&state.untracked_full_at, v, burst, cost).because(Reason::Untracked),
                None => Answer::drop(Reason::Untracked),
            },
        };
        return decide(answer);
    }
    let way = way.map_or(NO_WAY, |way| way as u32);
    let case = Case { set: tag as u32 & settings.set_mask(), way, rule, cost, class, now, config };
    decide(plane.hear(packet, &case))
}

/// What of the limits of a rule counts.
#[inline(always)]
fn features<S: Settings>(settings: &S, limits: &RuleLimits) -> u8 {
    let all = settings.features();
    if matches!(settings.keying(), Keying::Single) { all } else { limits.features | all & feature::DEVICE_TOTAL }
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
    /// Its rule.
    pub rule: u32,
    /// What it costs.
    pub cost: Cost,
    /// Where its traffic class stands.
    pub class: TrafficClass,
    /// The time in nanoseconds.
    pub now: u64,
    /// [`Plane::config`]; the lowest bit of it is enough.
    pub config: u64,
}

/// Judges a packet by all limits there are. Looks at all of them before it charges any, so that a packet that is dropped
/// writes to no bucket.
#[inline(always)]
pub fn hear<L: Plane, P: Packet + ?Sized>(plane: &L, packet: &P, case: &Case) -> Answer {
    let &Case { set, way, rule, cost, class, now, config } = case;
    let lost = Answer::drop(Reason::Untracked);
    let (Some(limits), Some(state), Some(set)) = (plane.limits(rule, config), plane.state(rule), plane.flows(set))
    else {
        return lost;
    };
    // Those that no rule has are none: said once more, for a verifier.
    let features = plane.settings().features() & features(plane.settings(), limits);
    let (mut device, mut device_total) = (&limits.device_total, &state.device_total_full_at);
    if !matches!(plane.settings().keying(), Keying::Single) && features & feature::DEVICE_TOTAL != 0 {
        let (Some(limits), Some(state)) = (plane.limits(DEFAULT_RULE, config), plane.state(DEFAULT_RULE)) else {
            return lost;
        };
        (device, device_total) = (&limits.device_total, &state.device_total_full_at);
    }
    let total = &state.total_full_at;
    if way < NO_WAY {
        let way = way as usize % table::WAYS;
        let buckets = Buckets { rate: &set.full_at[way], more: &set.state[way].more, total, device_total };
        let layers = Layers::new(&buckets, limits, device, features, now, cost);
        return weigh::<L::Atomics, P>(&layers, packet, class, limits);
    }
    let buckets = Buckets { rate: &state.untracked_full_at, more: &state.untracked_more, total, device_total };
    let features = match plane.settings().overflow() {
        Overflow::Shared => features,
        Overflow::Open => features & (feature::TOTAL | feature::DEVICE_TOTAL),
        Overflow::Closed => return lost,
    };
    let layers = Layers::new(&buckets, limits, device, features, now, cost);
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
        reason = layers.charge::<A>();
        if matches!(reason, Reason::Conform) {
            return Answer::pass(Reason::Conform);
        }
        if matches!(reason, Reason::Total | Reason::DeviceTotal) {
            return Answer::drop(reason);
        }
        // Another CPU has used up what was there a moment ago: the packet has another colour now.
    } else {
        layers.heal::<A>();
    }
    let action = if matches!(reason, Reason::Peak) { limits.violate } else { limits.exceed };
    let Some(change) = remark::plan(packet, class, action.action()) else { return Answer::drop(reason) };
    match layers.charge_excess::<A>(reason) {
        Reason::Conform => Answer::pass(reason).with(change),
        refused => Answer::drop(refused),
    }
}

/// Who pays, and how much.
struct Identity {
    tag: u64,
    key: [u64; KEY_WORDS],
    rule: u32,
    cost: Cost,
    class: TrafficClass,
}

struct Identify<'a, L, P: ?Sized> {
    packet: &'a P,
    plane: &'a L,
    config: u64,
}

impl<L: Plane, P: Packet + ?Sized> Continuation for Identify<'_, L, P> {
    type Output = Identity;

    #[inline(always)]
    fn run(&self, facts: &Facts) -> Identity {
        let settings = self.plane.settings();
        let (tag, key, rule) = if matches!(settings.keying(), Keying::ByRule) {
            let words = Key::of_flow(facts).encode();
            let mut seeker = Seeker { words, tag: 0, now: 0, config: self.config as u32, rule: 0 };
            self.plane.assign(&mut seeker);
            (seeker.tag, seeker.words, seeker.rule)
        } else {
            let key = Key::new(facts, settings.per(), settings.prefix());
            (key.tag(&settings.secret()), key.encode(), DEFAULT_RULE)
        };
        let cost = cost::of(self.packet, facts, settings.accounting());
        Identity { tag, key, rule, cost, class: facts.into() }
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

impl RuleCounters {
    /// Counts a packet: once by its reason, and once more if it was dropped or marked. Nobody else may count here, unless
    /// they are `shared`.
    #[inline(always)]
    pub fn count<A: Atomics>(&self, decision: &Decision<'_>, shared: bool) {
        let Decision { answer, cost, .. } = *decision;
        if let Some(reason) = self.reasons.get(answer.reason_index()) {
            reason.count::<A>(cost, shared);
        }
        if matches!(answer.verdict(), Verdict::Drop) {
            self.dropped.count::<A>(cost, shared);
        }
        if answer.is_marked() {
            self.marked.count::<A>(cost, shared);
        }
    }
}

impl RuleCounts {
    /// Adds what one shard has counted.
    pub fn add<A: Atomics>(&mut self, shard: &RuleCounters) {
        let RuleCounters { reasons, dropped, marked, .. } = shard;
        let parts = self.reasons.iter_mut().zip(reasons);
        for (sum, tally) in parts.chain([(&mut self.dropped, dropped), (&mut self.marked, marked)]) {
            sum.packets = sum.packets.wrapping_add(A::load(&tally.packets));
            sum.bytes = sum.bytes.wrapping_add(A::load(&tally.bytes));
        }
    }
}

impl table::Tally {
    #[inline(always)]
    fn count<A: Atomics>(&self, cost: Cost, shared: bool) {
        if shared {
            self.add::<A>(cost.packets, cost.bytes);
        } else {
            A::store(&self.packets, A::load(&self.packets).wrapping_add(cost.packets));
            A::store(&self.bytes, A::load(&self.bytes).wrapping_add(cost.bytes));
        }
    }
}
