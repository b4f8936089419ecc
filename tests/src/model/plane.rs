//! The data plane without a kernel: the maps are vectors, the time is set by hand.
//!
//! The same `judge` runs here and in the BPF object, so a test can ask what the object should have done.

use shaper_common::{
    abi::{self, DEFAULT_RULE, Overflow, RuleCounters, RuleLimits, RuleState, feature},
    atomic::{AtomicU64, Atomics, Native},
    bucket::{self, Limit},
    cost::{Account, Accounting},
    key::{Key, Per, Prefix},
    packet::{Link, Packet},
    policy::{self, Decision},
    siphash::SipKey,
    table::{self, FlowSet},
};

/// Settings as the tool writes them into the object, read as the object reads them.
#[derive(Clone, Copy, Debug)]
pub struct HostSettings(pub abi::Settings);

/// An attachment of one rule.
#[derive(Debug)]
pub struct HostPlane {
    maps: Maps,
    counters: RuleCounters,
}

/// What the programs share. Threads may judge packets on it at once.
#[derive(Debug)]
pub struct Maps {
    settings: HostSettings,
    limits: RuleLimits,
    flows: Vec<FlowSet>,
    state: RuleState,
    now: AtomicU64,
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
        let maps = Maps {
            settings: HostSettings(settings),
            limits,
            flows: (0..=settings.set_mask).map(|_| FlowSet::default()).collect(),
            state: RuleState::default(),
            now: AtomicU64::new(now),
        };
        Self { maps, counters: RuleCounters::default() }
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
        self.maps.limits.rate = self.maps.limits.rate.changed(bits_per_second, burst, Native::load(&self.maps.now));
    }

    /// Judges `packet` and counts it where the object does.
    pub fn run<P: Packet + ?Sized>(&mut self, packet: &P) -> Outcome {
        let decision = policy::judge(&self.maps, packet);
        decision.count_flow::<Native>();
        self.counters.count(&decision);
        Outcome::from(&decision)
    }

    /// What the rule has counted.
    #[must_use]
    pub fn counters(&self) -> &RuleCounters {
        &self.counters
    }

    /// The maps.
    #[must_use]
    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    /// Bytes that the key's bucket holds now; the whole burst if the key is not in the table.
    #[must_use]
    pub fn level(&self, key: &Key) -> u64 {
        let Limit { clock, burst } = self.maps.limits.rate;
        let tag = key.tag(&self.maps.settings.0.secret);
        let set = &self.maps.flows[(tag as u32 & self.maps.settings.0.set_mask) as usize];
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
    /// The sets of the flow table.
    #[must_use]
    pub fn flows(&self) -> &[FlowSet] {
        &self.flows
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
}

impl From<&Decision<'_>> for Outcome {
    fn from(decision: &Decision<'_>) -> Self {
        let &Decision { answer, cost, flow, .. } = decision;
        Self {
            verdict: answer.verdict(),
            reason: answer.reason().expect("every answer has a reason"),
            cost,
            tracked: flow.is_some(),
            marked: answer.is_marked(),
        }
    }
}

impl policy::Settings for HostSettings {
    fn link(&self) -> Link {
        if self.0.link == Link::Ethernet as u8 { Link::Ethernet } else { Link::Bare }
    }

    fn per(&self) -> Per {
        Per::from_u8(self.0.per).expect("a kind of key")
    }

    fn prefix(&self) -> Prefix {
        Prefix { v4: self.0.prefix_v4, v6: self.0.prefix_v6 }
    }

    fn accounting(&self) -> Accounting {
        Accounting {
            account: if self.0.account == Account::L2 as u8 { Account::L2 } else { Account::L3 },
            overhead: self.0.overhead,
            mpu: self.0.mpu,
        }
    }

    fn secret(&self) -> SipKey {
        self.0.secret
    }

    fn set_mask(&self) -> u32 {
        self.0.set_mask
    }

    fn overflow(&self) -> Overflow {
        Overflow::from_u8(self.0.overflow).expect("an overflow policy")
    }

    fn features(&self) -> u8 {
        self.0.features
    }
}

impl policy::Plane for Maps {
    type Atomics = Native;
    type Settings = HostSettings;

    fn settings(&self) -> &HostSettings {
        &self.settings
    }

    fn now(&self) -> u64 {
        Native::load(&self.now)
    }

    fn limits(&self, rule: u32) -> Option<&RuleLimits> {
        (rule == DEFAULT_RULE).then_some(&self.limits)
    }

    fn flows(&self, set: u32) -> Option<&FlowSet> {
        self.flows.get(set as usize)
    }

    fn state(&self, rule: u32) -> Option<&RuleState> {
        (rule == DEFAULT_RULE).then_some(&self.state)
    }
}
