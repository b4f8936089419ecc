//! The kernel's side of `shaper_common::policy`: where the words are and what time it is.

use aya_ebpf::{bindings::__sk_buff, helpers::bpf_ktime_get_ns};
use shaper_common::{
    abi::{RuleLimits, RuleState},
    answer::Answer,
    cost::Cost,
    packet::Packet,
    place::{self, Place, Seeker},
    policy::{self, Case, Plane},
    remark::TrafficClass,
    rule::{Boundary, Index, Link, Rules},
    table::{self, FlowSet, Newcomer},
};

use crate::{atomic::Bpf, context::Skb, maps, settings::Loaded};

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

    /// A function of its own that the verifier checks by itself, whatever leads there; so are the next two.
    #[inline(always)]
    fn assign(&self, seeker: &mut Seeker) {
        shaper_assign(seeker);
    }

    #[inline(always)]
    fn admit(&self, seeker: &Seeker) -> Place {
        let place = shaper_admit(seeker);
        Place { way: place as u32 & 0xff, rule: (place >> 32) as u32 }
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

/// [`place::assign`].
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_assign(seeker: &mut Seeker) -> u64 {
    place::assign(&NO_PACKET, seeker);
    0
}

/// [`place::admit`]: the way, and the rule in the upper half.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn shaper_admit(seeker: &Seeker) -> u64 {
    let Place { way, rule } = place::admit(&NO_PACKET, seeker);
    u64::from(way) | u64::from(rule) << 32
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
