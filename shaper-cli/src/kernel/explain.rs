//! What the data plane would do with a packet now: its own code, on a copy of the words that the packet would touch.

use std::{cell::OnceCell, net::IpAddr};

use shaper_common::{
    abi::{DEFAULT_RULE, Keying, RuleLimits, RuleState, Settings, feature},
    atomic::{AtomicU64, Atomics as _, Native},
    bucket::{self, Limit},
    key::{Key, Per, Prefix},
    packet::{self, Parsed},
    policy::{self, Decision, Plane, Settings as _},
    rule::{Boundary, Index, Link, Rules},
    table::{self, FlowSet, MoreBuckets, stamp},
    verdict::Reason,
};

use super::{
    attachment::Attachment,
    clock,
    mapping::Mapping,
    rulebook::{self, Book},
    settings::settings,
    table::tag_of,
};
use crate::{
    error::{Error, Result},
    model::{Explanation, Layer, Question},
};

/// The words that a packet may touch: of its flow's set, copied when it is looked at, and of all rules.
struct Copy {
    settings: Settings,
    book: Book,
    flows: Mapping<FlowSet>,
    set: OnceCell<FlowSet>,
    states: Vec<RuleState>,
    config: u64,
    now: u64,
}

pub(super) fn explain(attachment: &Attachment, question: &Question) -> Result<Explanation> {
    let record = attachment.record();
    let states = Mapping::<RuleState>::new(&attachment.maps.states)?;
    let copy = Copy {
        settings: settings(record, attachment.owner.epoch_base),
        book: attachment.book()?,
        flows: Mapping::new(&attachment.maps.flows)?,
        set: OnceCell::new(),
        states: states.all().iter().map(copy_of_state).collect(),
        config: attachment.number(),
        now: clock::now()?,
    };
    let frame = frame(question, record.ethernet);
    let Parsed::Limited(facts) = packet::parse(&frame[..], copy.settings.link()) else {
        return Err(Error::usage("explain", "such a packet is never limited", "ask about another one"));
    };
    let Decision { answer, cost, rule, .. } = policy::judge(&copy, &frame[..]);
    let reason = answer.reason().unwrap_or(Reason::Untracked);

    let limits = copy.book.limits(rule);
    let per = Per::from_u8(limits.per).unwrap_or(Per::Dev);
    let key = Key::of_flow(&facts).part(per, Prefix { v4: limits.prefix_v4, v6: limits.prefix_v6 });
    let tag = tag_of(&key, rule, record, &copy.book.limits).unwrap_or_default();
    let set = &copy.flows.all()[tag as usize & (copy.flows.len() - 1)];
    let way = table::find::<Native>(set, tag);
    let state = states.all().get(rule as usize);
    let buckets = match (way, state) {
        (Some(way), _) => Some(Buckets::of_way(set, way, record.keying)),
        (None, Some(state)) if reason == Reason::Untracked => Some(Buckets::of_untracked(state, rule)),
        _ => None,
    };
    let mut layers = buckets_of_key(&copy, limits, buckets.as_ref());
    if limits.features & feature::TOTAL != 0 {
        layers.extend(state.map(|state| copy.layer(Reason::Total, &limits.total, &state.total_full_at)));
    }
    let default = copy.book.limits(DEFAULT_RULE);
    if default.features & feature::DEVICE_TOTAL != 0 {
        let word = states.all().first().map(|state| &state.device_total_full_at);
        layers.extend(word.map(|word| copy.layer(Reason::DeviceTotal, &default.device_total, word)));
    }
    let (name, per) = attachment.rule_in(rule);
    Ok(Explanation {
        rule: name.to_owned(),
        per,
        key,
        tracked: way.is_some(),
        layers,
        cost_bytes: cost.bytes,
        verdict: answer.verdict(),
        reason,
        marked: answer.is_marked(),
    })
}

/// The bucket words of a key, and the rule whose clocks they are on.
struct Buckets {
    rule: u32,
    rate: u64,
    peak: u64,
    pps: u64,
}

impl Buckets {
    fn of_way(set: &FlowSet, way: usize, keying: Keying) -> Self {
        let state = &set.state[way];
        let rule = if keying == Keying::Single { DEFAULT_RULE } else { stamp::rule(Native::load(&state.rule)) };
        Self::new(rule, &set.full_at[way], &state.more)
    }

    fn of_untracked(state: &RuleState, rule: u32) -> Self {
        Self::new(rule, &state.untracked_full_at, &state.untracked_more)
    }

    fn new(rule: u32, rate: &AtomicU64, MoreBuckets { peak_full_at, pps_full_at }: &MoreBuckets) -> Self {
        Self { rule, rate: Native::load(rate), peak: Native::load(peak_full_at), pps: Native::load(pps_full_at) }
    }
}

/// The limits of a key, with what its buckets hold; `None` for buckets that it does not have yet.
fn buckets_of_key(copy: &Copy, limits: &RuleLimits, buckets: Option<&Buckets>) -> Vec<Layer> {
    let held = buckets.map_or(limits, |buckets| copy.book.limits(buckets.rule));
    let all = [
        (feature::PEAK, Reason::Peak, &limits.peak, &held.peak, buckets.map(|buckets| buckets.peak)),
        (feature::RATE, Reason::Rate, &limits.rate, &held.rate, buckets.map(|buckets| buckets.rate)),
        (feature::PPS, Reason::Pps, &limits.pps, &held.pps, buckets.map(|buckets| buckets.pps)),
    ];
    let mut layers = Vec::new();
    for (bit, reason, limit, held_limit, word) in all {
        if limits.features & bit == 0 {
            continue;
        }
        // A flow takes its debts along to its rule's clocks, if it had such a limit.
        let carried = word.filter(|_| held.features & bit != 0);
        let debt = carried.map_or(0, |word| bucket::debt(word, held_limit.clock.at(copy.now)));
        layers.push(Layer { reason, level: limit.burst.saturating_sub(debt), burst: limit.burst });
    }
    layers
}

impl Copy {
    fn layer(&self, reason: Reason, limit: &Limit, word: &AtomicU64) -> Layer {
        let level = bucket::level(Native::load(word), limit.clock.at(self.now), limit.burst);
        Layer { reason, level, burst: limit.burst }
    }
}

impl Rules for Copy {
    fn index(&self, half: u32) -> Option<&Index> {
        self.book.index(half)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.book.boundary(at)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.book.link(at)
    }
}

impl Plane for Copy {
    type Atomics = Native;
    type Settings = Settings;

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn config(&self) -> u64 {
        self.config
    }

    fn limits(&self, rule: u32, _: u64) -> Option<&RuleLimits> {
        self.book.limits.get(rule as usize)
    }

    fn flows(&self, set: u32) -> Option<&FlowSet> {
        let held = self.flows.all().get(set as usize)?;
        Some(self.set.get_or_init(|| copy_of_set(held)))
    }

    fn state(&self, rule: u32) -> Option<&RuleState> {
        self.states.get(rule as usize)
    }
}

fn copy_of_set(held: &FlowSet) -> FlowSet {
    let copy = FlowSet::default();
    let store = |to: &AtomicU64, from: &AtomicU64| Native::store(to, Native::load(from));
    copy.tags.iter().zip(&held.tags).for_each(|(to, from)| store(to, from));
    copy.full_at.iter().zip(&held.full_at).for_each(|(to, from)| store(to, from));
    for (to, from) in copy.state.iter().zip(&held.state) {
        store(&to.rule, &from.rule);
        store(&to.more.peak_full_at, &from.more.peak_full_at);
        store(&to.more.pps_full_at, &from.more.pps_full_at);
    }
    copy
}

fn copy_of_state(held: &RuleState) -> RuleState {
    let copy = RuleState::default();
    let words = rulebook::words(&copy).into_iter().zip(rulebook::words(held));
    words.for_each(|(to, from)| Native::store(to, Native::load(from)));
    copy
}

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// A frame that the parser reads as the packet that was asked about.
fn frame(question: &Question, ethernet: bool) -> Vec<u8> {
    let &Question { src, dst, proto, sport, dport, bytes } = question;
    let link = if ethernet { ETHERNET } else { 0 };
    let least = link + if src.is_ipv4() { 20 } else { 40 } + 8;
    let len = (bytes as usize).max(least);
    let network = (len - link) as u16;
    let mut frame = Vec::with_capacity(len);
    if ethernet {
        frame.extend([0; 12]);
        frame.extend(if src.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] });
    }
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let [high, low] = network.to_be_bytes();
            // Version and header length, no fragment, time to live.
            frame.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, proto, 0, 0]);
            frame.extend(src.octets());
            frame.extend(dst.octets());
        }
        _ => {
            let v6 = |address: IpAddr| match address {
                IpAddr::V6(v6) => v6,
                IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            };
            let [high, low] = (network - 40).to_be_bytes();
            frame.extend([0x60, 0, 0, 0, high, low, proto, 64]);
            frame.extend(v6(src).octets());
            frame.extend(v6(dst).octets());
        }
    }
    frame.extend(sport.to_be_bytes());
    frame.extend(dport.to_be_bytes());
    frame.resize(len, 0);
    frame
}
