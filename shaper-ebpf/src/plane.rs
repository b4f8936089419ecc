//! The kernel's side of `shaper_common::policy`: where the words are and what time it is.

use aya_ebpf::helpers::bpf_ktime_get_ns;
use shaper_common::{
    abi::RuleLimits,
    atomic::AtomicU64,
    key::KEY_WORDS,
    policy::Plane,
    table::{self, FlowSet},
};

use crate::{atomic::Bpf, maps, settings::Loaded};

/// The attachment this program serves.
pub(crate) struct Attachment;

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
    fn limits(&self, rule: u32) -> Option<&RuleLimits> {
        let half = Loaded::epoch_base().wrapping_add(maps::epoch()) & 1;
        maps::limits(2 * rule + half as u32)
    }

    #[inline(always)]
    fn flows(&self, set: u32) -> Option<&FlowSet> {
        maps::flows(set)
    }

    #[inline(always)]
    fn untracked(&self, rule: u32) -> Option<&AtomicU64> {
        maps::untracked(rule)
    }

    /// A function of its own in the object, so that the registers of the common case stay free of it.
    #[inline(always)]
    fn claim(&self, set: &FlowSet, tag: u64, key: &[u64; KEY_WORDS], v: u64, now: u64) -> Option<usize> {
        let way = claim(set, tag, key, v, now);
        // The verifier knows nothing about a callee's result until it is compared.
        (way < table::WAYS as u64).then_some(way as usize)
    }
}

/// The way, or [`table::WAYS`] if there is none.
#[inline(never)]
fn claim(set: &FlowSet, tag: u64, key: &[u64; KEY_WORDS], v: u64, now: u64) -> u64 {
    table::claim::<Bpf>(set, tag, key, v, now).map_or(table::WAYS as u64, |way| way as u64)
}
