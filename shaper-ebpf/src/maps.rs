//! The maps, and the only place that turns what a lookup returns into a reference.
//!
//! All of them are arrays whose elements live as long as the program: a reference to an element never dangles. The
//! tool may overwrite an element at any time; words that both sides use are atomics, and the rest is written only
//! while no packet reads it (the inactive half of [`RULES`]).

use aya_ebpf::{
    macros::map,
    maps::{Array, PerCpuArray},
};
use shaper_common::{
    abi::{Control, OwnerRecord, RuleCounters, RuleLimits, RuleState},
    place::Seeker,
    rule::{Boundary, Index, Link},
    table::FlowSet,
};

/// Memory-mappable (`BPF_F_MMAPABLE`, Linux 5.5): the kernel then starts the values on a page boundary, so that a set's
/// lines are cache lines, and the tool reads a million flows, or writes a hundred thousand rules, without as many system
/// calls.
const MAPPABLE: u32 = 1 << 10;

#[map]
static FLOWS: Array<FlowSet> = Array::with_max_entries(1, MAPPABLE);
#[map]
static CONTROL: Array<Control> = Array::with_max_entries(1, 0);
#[map]
static RULES: Array<RuleLimits> = Array::with_max_entries(2, MAPPABLE);
#[map]
static STATES: Array<RuleState> = Array::with_max_entries(1, MAPPABLE);
#[map]
static COUNTERS: Array<RuleCounters> = Array::with_max_entries(1, MAPPABLE);
#[map]
static INDEX: Array<Index> = Array::with_max_entries(2, 0);
#[map]
static BOUNDARIES: Array<Boundary> = Array::with_max_entries(1, MAPPABLE);
#[map]
static LINKS: Array<Link> = Array::with_max_entries(1, MAPPABLE);
/// What functions of a program pass to each other, where there is no room on the stack.
#[map]
static SEEKER: PerCpuArray<Seeker> = PerCpuArray::with_max_entries(1, 0);
/// Only for the tool: it is created, checked and pinned with the others.
#[map]
static OWNER: Array<OwnerRecord> = Array::with_max_entries(2, 0);
/// Likewise.
#[map]
static TEXT: Array<u64> = Array::with_max_entries(1, MAPPABLE);

#[inline(always)]
pub(crate) fn flows(set: u32) -> Option<&'static FlowSet> {
    // SAFETY: array elements are never freed while the program exists, and every word of a set is an atomic.
    FLOWS.get_ptr(set).map(|set| unsafe { &*set })
}

#[inline(always)]
pub(crate) fn epoch() -> u64 {
    // SAFETY: array elements are never freed; this is one aligned word, which the tool changes in one step at any time.
    CONTROL.get_ptr(0).map_or(0, |control| unsafe { control.read_volatile() }.epoch)
}

#[inline(always)]
pub(crate) fn limits(element: u32) -> Option<&'static RuleLimits> {
    // SAFETY: array elements are never freed, and the tool waits for all running programs before it writes to a half
    // that was in force.
    RULES.get_ptr(element).map(|limits| unsafe { &*limits })
}

#[inline(always)]
pub(crate) fn index(half: u32) -> Option<&'static Index> {
    // SAFETY: as above.
    INDEX.get_ptr(half).map(|index| unsafe { &*index })
}

#[inline(always)]
pub(crate) fn boundary(at: u32) -> Option<&'static Boundary> {
    // SAFETY: as above.
    BOUNDARIES.get_ptr(at).map(|boundary| unsafe { &*boundary })
}

#[inline(always)]
pub(crate) fn link(at: u32) -> Option<&'static Link> {
    // SAFETY: as above.
    LINKS.get_ptr(at).map(|link| unsafe { &*link })
}

#[inline(always)]
pub(crate) fn state(rule: u32) -> Option<&'static RuleState> {
    // SAFETY: array elements are never freed, and every word of the state is an atomic.
    STATES.get_ptr(rule).map(|state| unsafe { &*state })
}

#[inline(always)]
pub(crate) fn counters(element: u32) -> Option<&'static RuleCounters> {
    // SAFETY: array elements are never freed, and every word of the counters is an atomic.
    COUNTERS.get_ptr(element).map(|counters| unsafe { &*counters })
}

#[inline(always)]
pub(crate) fn seeker() -> Option<&'static mut Seeker> {
    // SAFETY: the element belongs to this CPU, both hooks run with bottom halves disabled, so that no other program
    // interrupts this one, and no function of a program holds the reference while it calls another that takes it.
    SEEKER.get_ptr_mut(0).map(|seeker| unsafe { &mut *seeker })
}
