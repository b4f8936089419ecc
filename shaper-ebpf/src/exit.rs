//! The one way out: every packet is counted here, once, and only here becomes a return code.

use aya_ebpf::{
    bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC},
    helpers::bpf_get_smp_processor_id,
};
use shaper_common::{abi::Settings, policy::Decision, verdict::Verdict};

use crate::{atomic::Bpf, maps, settings::Loaded};

/// Counts the packet and returns the TC code: a packet that passes goes on to the next program on the hook
/// (`TCX_NEXT`, which is `TC_ACT_UNSPEC`).
#[inline(always)]
pub(crate) fn tc(decision: &Decision<'_>) -> i32 {
    count(decision);
    match decision.answer.verdict() {
        Verdict::Pass => TC_ACT_UNSPEC,
        Verdict::Drop => TC_ACT_SHOT,
    }
}

#[inline(always)]
fn count(decision: &Decision<'_>) {
    decision.count_flow::<Bpf>();
    let mask = Loaded::shard_mask();
    // SAFETY: the helper takes nothing and returns a number.
    let processor = unsafe { bpf_get_smp_processor_id() };
    let element = decision.rule * Settings::counters_of(mask) + (processor & u32::from(mask));
    if let Some(counters) = maps::counters(element) {
        // Where each processor has counters of its own, nothing interrupts this between two uses: both hooks run with
        // bottom halves disabled.
        counters.count::<Bpf>(decision, Loaded::shared_counters());
    }
}
