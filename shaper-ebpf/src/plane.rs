//! The kernel's side of `shaper_common::policy`: where the words are and what time it is.

use aya_ebpf::{bindings::__sk_buff, helpers::bpf_ktime_get_ns};
use shaper_common::{
    abi::{RuleLimits, RuleState},
    answer::Answer,
    cost::Cost,
    packet::Packet,
    place::{self, Seeker, Way},
    policy::{self, Case, Plane},
    remark::TrafficClass,
    rule::{self, Boundary, Index, Link, Rules, Table},
    table::{self, FlowSet, MoreBuckets, Newcomer},
};

use crate::{
    atomic::Bpf,
    context::{Skb, opaque},
    maps,
    settings::Loaded,
};

/// The attachment this program serves, during the way of one packet.
pub(crate) struct Attachment {
    skb: *mut __sk_buff,
}

impl Attachment {
    pub(crate) fn new(packet: &Skb) -> Self {
        Self { skb: packet.context() }
    }
}

impl Rules for Attachment {
    #[inline(always)]
    fn index(&self, half: u32) -> Option<&Index> {
        maps::index(half)
    }

    #[inline(always)]
    fn boundary(&self, at: u32) -> Option<&Boundary> {
        maps::boundary(at)
    }

    #[inline(always)]
    fn link(&self, at: u32) -> Option<&Link> {
        maps::link(at)
    }

    /// A function of its own that the verifier checks by itself, whatever leads there; so is the next.
    #[inline(always)]
    fn interval(&self, table: Table, address: [u64; 2]) -> u32 {
        shaper_interval(u64::from(table.first) | u64::from(table.len) << 32, address[0], address[1]) as u32
    }

    #[inline(always)]
    fn first_fit(&self, chain: u32, tail: u64) -> u32 {
        shaper_first_fit(chain.into(), tail) as u32
    }
}

impl Plane for Attachment {
    type Atomics = Bpf;
    type Settings = Loaded;

    #[inline(always)]
    fn settings(&self) -> &Loaded {
        &Loaded
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        // SAFETY: the helper takes nothing and returns a number.
        unsafe { bpf_ktime_get_ns() }
    }

    #[inline(always)]
    fn config(&self) -> u64 {
        Loaded::epoch_base().wrapping_add(maps::epoch())
    }

    #[inline(always)]
    fn limits(&self, rule: u32, config: u64) -> Option<&RuleLimits> {
        maps::limits(2 * rule + (config as u32 & 1))
    }

    #[inline(always)]
    fn flows(&self, set: u32) -> Option<&FlowSet> {
        maps::flows(set)
    }

    #[inline(always)]
    fn state(&self, rule: u32) -> Option<&RuleState> {
        maps::state(rule)
    }

    /// A function of its own in the object, so that the registers of the common case stay free of it.
    #[inline(always)]
    fn claim(&self, set: &FlowSet, newcomer: &Newcomer<'_>, v: u64, config: u64) -> Option<usize> {
        let way = claim(set, newcomer, v, config);
        // The verifier knows nothing about a callee's result until it is compared.
        (way < table::WAYS as u64).then_some(way as usize)
    }

    /// A function of its own that the verifier checks by itself, whatever leads there; so are those that follow.
    #[inline(always)]
    fn assign(&self, seeker: &mut Seeker) {
        pass(seeker);
        shaper_assign();
        if let Some(passed) = maps::seeker() {
            *seeker = *passed;
        }
    }

    #[inline(always)]
    fn enter(&self, seeker: &Seeker) -> u32 {
        pass(seeker);
        shaper_enter() as u32
    }

    #[inline(always)]
    fn move_in(&self, seeker: &Seeker) -> u32 {
        pass(seeker);
        shaper_move_in() as u32
    }

    #[inline(always)]
    fn full_for(&self, way: &Way<'_>) -> u64 {
        let &Way { stamp, full_at, more, now, config } = way;
        shaper_full_for(stamp, full_at, more, now, config)
    }

    #[inline(always)]
    fn blur(&self, way: usize) -> usize {
        // Both are the same word, so the difference is nothing; the verifier takes it for anything.
        let epoch = maps::epoch() as usize;
        (way ^ epoch ^ opaque(epoch)) % table::WAYS
    }

    #[inline(always)]
    fn hear<P: Packet + ?Sized>(&self, _: &P, case: &Case) -> Answer {
        let Case { set, way, rule, cost, class, now, config } = *case;
        let place = u64::from(set) | u64::from(way) << 32 | class.to_bits() << 40;
        let cost = cost.bytes | cost.packets << PACKETS_SHIFT;
        Answer::from_bits(shaper_hear(self.skb, place, cost, now, u64::from(rule) | config << 32))
    }
}

/// An attachment for what needs no packet.
const NO_PACKET: Attachment = Attachment { skb: core::ptr::null_mut() };

/// Leaves a seeker where the functions below find it: there is no room for it on the stack.
#[inline(always)]
fn pass(seeker: &Seeker) {
    if let Some(passed) = maps::seeker() {
        *passed = *seeker;
    }
}

/// [`place::assign`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_assign() -> u64 {
    if let Some(seeker) = maps::seeker() {
        place::assign(&NO_PACKET, seeker);
    }
    0
}

/// [`place::enter`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_enter() -> u64 {
    maps::seeker().map_or(policy::NO_WAY, |seeker| place::enter(&NO_PACKET, seeker)).into()
}

/// [`place::move_in`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_move_in() -> u64 {
    maps::seeker().map_or(policy::NO_WAY, |seeker| place::move_in(&NO_PACKET, seeker)).into()
}

/// [`rule::interval`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_interval(table: u64, high: u64, low: u64) -> u64 {
    let table = Table { first: table as u32, len: (table >> 32) as u32 };
    rule::interval(&NO_PACKET, table, [high, low]).into()
}

/// [`rule::first_fit`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_first_fit(chain: u64, tail: u64) -> u64 {
    rule::first_fit(&NO_PACKET, chain as u32, tail).into()
}

/// [`place::full_for`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_full_for(stamp: u64, full_at: u64, more: *const MoreBuckets, now: u64, config: u64) -> u64 {
    // SAFETY: the only caller passes a reference into a map.
    let Some(more) = (unsafe { more.as_ref() }) else { return place::IN_DEBT };
    place::full_for(&NO_PACKET, &Way { stamp, full_at, more, now, config })
}

/// Bytes of a packet are less than this power of two, packets less than the rest.
const PACKETS_SHIFT: u32 = 40;

/// [`policy::hear`] with its arguments packed; makes the change that the packet passes with.
///
/// Global for the verifier: checked once, for any arguments, and not again for each way that leads to the call.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_hear(skb: *mut __sk_buff, place: u64, cost: u64, now: u64, rule: u64) -> u64 {
    let packet = Skb::revisit(skb);
    let case = Case {
        set: place as u32,
        way: (place >> 32) as u32 & 0xff,
        rule: rule as u32,
        cost: Cost { bytes: cost & ((1 << PACKETS_SHIFT) - 1), packets: cost >> PACKETS_SHIFT },
        class: TrafficClass::from_bits(place >> 40),
        now,
        config: rule >> 32,
    };
    let answer = policy::hear(&Attachment::new(&packet), &packet, &case);
    if answer.is_marked() && !answer.change().apply(&packet, case.class) {
        // It may only pass with its mark, and there was no memory to write that.
        return answer.revoked().to_bits();
    }
    answer.to_bits()
}

/// The way, or [`table::WAYS`] if there is none.
#[inline(never)]
fn claim(set: &FlowSet, newcomer: &Newcomer<'_>, v: u64, config: u64) -> u64 {
    let clocks = place::SingleClocks { plane: &NO_PACKET, v, now: newcomer.now, config };
    table::claim::<Bpf>(set, newcomer, &clocks).map_or(table::WAYS as u64, |way| way as u64)
}
