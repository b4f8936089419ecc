//! The data plane without a kernel: the maps are vectors, the time is set by hand.
//!
//! The same `judge` runs here and in the BPF object, so a test can ask what the object should have done.

use shaper_common::{
    abi::{self, DEFAULT_RULE, RuleCounters, RuleCounts, RuleLimits, RuleState, feature},
    atomic::{AtomicU64, Atomics, Native},
    bucket::{self, Limit},
    key::Key,
    packet::Packet,
    policy::{self, Decision},
    rule::{Boundary, Index, Link, Rules},
    table::{self, FlowSet},
};

use super::rules::{HALF, RuleBook};

/// An attachment.
#[derive(Debug)]
pub struct HostPlane {
    maps: Maps,
    counters: Vec<RuleCounters>,
}

/// What the programs share. Threads may judge packets on it at once.
#[derive(Debug)]
pub struct Maps {
    settings: abi::Settings,
    /// By the lowest bit of a configuration's number.
    rules: [RuleBook; 2],
    flows: Vec<FlowSet>,
    states: Vec<RuleState>,
    now: AtomicU64,
    config: AtomicU64,
}

impl HostPlane {
    /// An attachment with these settings and no limit but this one, with the clock at `now` nanoseconds.
    #[must_use]
    pub fn new(settings: abi::Settings, rate: Limit, now: u64) -> Self {
        let settings = abi::Settings { features: feature::RATE, ..settings };
        Self::with_limits(settings, RuleLimits { rate, ..RuleLimits::default() }, now)
    }

    /// An attachment with these settings, whose features say which of these limits count.
    #[must_use]
    pub fn with_limits(settings: abi::Settings, limits: RuleLimits, now: u64) -> Self {
        Self::with_rules(settings, RuleBook::single(limits), now)
    }

    /// An attachment with these settings and rules.
    #[must_use]
    pub fn with_rules(settings: abi::Settings, rules: RuleBook, now: u64) -> Self {
        let each = rules.limits.len();
        let maps = Maps {
            settings,
            flows: (0..=settings.set_mask).map(|_| FlowSet::default()).collect(),
            states: (0..each).map(|_| RuleState::default()).collect(),
            rules: [0, 1].map(|half| rules.in_half(half)),
            now: AtomicU64::new(now),
            config: AtomicU64::new(settings.epoch_base),
        };
        Self { maps, counters: (0..each).map(|_| RuleCounters::default()).collect() }
    }

    /// Puts other rules in force, as the tool does: under the next number.
    pub fn switch(&mut self, rules: RuleBook) {
        let each = rules.limits.len().max(self.counters.len());
        self.maps.states.resize_with(each, RuleState::default);
        self.counters.resize_with(each, RuleCounters::default);
        let next = self.maps.config_number().wrapping_add(1);
        self.maps.rules[next as usize & 1] = rules.in_half(next as u32 & 1);
        self.maps.flip();
    }

    /// Makes the words and counters of a rule zero, as the tool does for a new one.
    pub fn renew(&mut self, rule: u32) {
        if let Some(state) = self.maps.states.get_mut(rule as usize) {
            *state = RuleState::default();
        }
        if let Some(counters) = self.counters.get_mut(rule as usize) {
            *counters = RuleCounters::default();
        }
    }

    /// Sets the time in nanoseconds.
    pub fn set_now(&self, now: u64) {
        Native::store(&self.maps.now, now);
    }

    /// Lets time pass.
    pub fn advance(&self, nanoseconds: u64) {
        Native::add(&self.maps.now, nanoseconds);
    }

    /// Changes the limit now, as the tool does.
    pub fn change(&mut self, bits_per_second: u64, burst: u64) {
        let half = self.maps.half();
        let rate = &mut self.maps.rules[half].limits[DEFAULT_RULE as usize].rate;
        *rate = rate.changed(bits_per_second, burst, Native::load(&self.maps.now));
    }

    /// Judges `packet` and counts it where the object does.
    pub fn run<P: Packet + ?Sized>(&mut self, packet: &P) -> Outcome {
        let decision = policy::judge(&self.maps, packet);
        decision.count_flow::<Native>();
        self.counters[decision.rule as usize].count::<Native>(&decision, false);
        Outcome::from(&decision)
    }

    /// What all rules have counted.
    #[must_use]
    pub fn counters(&self) -> RuleCounts {
        let mut sum = RuleCounts::default();
        self.counters.iter().for_each(|counters| sum.add::<Native>(counters));
        sum
    }

    /// What a rule has counted.
    #[must_use]
    pub fn counters_of(&self, rule: u32) -> RuleCounts {
        let mut sum = RuleCounts::default();
        sum.add::<Native>(&self.counters[rule as usize]);
        sum
    }

    /// The maps.
    #[must_use]
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Bytes that the key's bucket holds now; the whole burst if the key is not in the table.
    #[must_use]
    pub fn level(&self, key: &Key) -> u64 {
        let Limit { clock, burst } = self.maps.limits()[DEFAULT_RULE as usize].rate;
        let tag = key.tag(&self.maps.settings.secret);
        let set = &self.maps.flows[(tag as u32 & self.maps.settings.set_mask) as usize];
        let v = clock.at(Native::load(&self.maps.now));
        table::find::<Native>(set, tag).map_or(burst, |way| bucket::level(Native::load(&set.full_at[way]), v, burst))
    }

    /// The keys in the table, with the packets that passed and that were dropped since each came in.
    #[must_use]
    pub fn tracked(&self) -> Vec<(Key, u64, u64)> {
        let mut flows = Vec::new();
        for set in &self.maps.flows {
            for way in (0..table::WAYS).filter(|&way| Native::load(&set.tags[way]) != table::EMPTY) {
                let words = std::array::from_fn(|i| Native::load(&set.keys[way].words[i]));
                let key = Key::decode(&words).expect("the data plane writes keys that can be read");
                let state = &set.state[way];
                flows.push((key, Native::load(&state.passed.packets), Native::load(&state.dropped.packets)));
            }
        }
        flows
    }
}

impl Maps {
    /// The constants.
    #[must_use]
    pub const fn settings(&self) -> &abi::Settings {
        &self.settings
    }

    /// The sets of the flow table.
    #[must_use]
    pub fn flows(&self) -> &[FlowSet] {
        &self.flows
    }

    /// The limits of the rules in force.
    #[must_use]
    pub fn limits(&self) -> &[RuleLimits] {
        &self.rules[self.half()].limits
    }

    /// What the packets of each rule share.
    #[must_use]
    pub fn states(&self) -> &[RuleState] {
        &self.states
    }

    /// Puts the other half in force, under the next number.
    pub fn flip(&self) {
        Native::add(&self.config, 1);
    }

    /// The number of the configuration in force.
    #[must_use]
    pub fn config_number(&self) -> u64 {
        Native::load(&self.config)
    }

    fn half(&self) -> usize {
        self.config_number() as usize & 1
    }
}

/// A decision without its borrow of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What happened.
    pub verdict: shaper_common::verdict::Verdict,
    /// Why.
    pub reason: shaper_common::verdict::Reason,
    /// For how much.
    pub cost: shaper_common::cost::Cost,
    /// Whether the flow has a way of the table.
    pub tracked: bool,
    /// Whether it passed with a mark.
    pub marked: bool,
    /// The rule that judged it.
    pub rule: u32,
}

impl From<&Decision<'_>> for Outcome {
    fn from(decision: &Decision<'_>) -> Self {
        let &Decision { answer, cost, flow, rule } = decision;
        Self {
            verdict: answer.verdict(),
            reason: answer.reason().expect("every answer has a reason"),
            cost,
            tracked: flow.is_some(),
            marked: answer.is_marked(),
            rule,
        }
    }
}

impl Rules for Maps {
    fn index(&self, half: u32) -> Option<&Index> {
        self.rules[half as usize].index(half)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.rules[(at / HALF) as usize].boundary(at % HALF)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.rules[(at / HALF) as usize].link(at % HALF)
    }
}

impl policy::Plane for Maps {
    type Atomics = Native;
    type Settings = abi::Settings;

    fn settings(&self) -> &abi::Settings {
        &self.settings
    }

    fn now(&self) -> u64 {
        Native::load(&self.now)
    }

    fn config(&self) -> u64 {
        self.config_number()
    }

    fn limits(&self, rule: u32, config: u64) -> Option<&RuleLimits> {
        self.rules[config as usize & 1].limits.get(rule as usize)
    }

    fn flows(&self, set: u32) -> Option<&FlowSet> {
        self.flows.get(set as usize)
    }

    fn state(&self, rule: u32) -> Option<&RuleState> {
        self.states.get(rule as usize)
    }
}
