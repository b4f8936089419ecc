//! The one way out: every packet is counted here, once, and only here becomes a return code.

use aya_ebpf::bindings::{TC_ACT_SHOT, TC_ACT_UNSPEC};
use shaper_common::{policy::Decision, verdict::Verdict};

use crate::{atomic::Bpf, maps};

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
    if let Some(counters) = maps::counters(decision.rule) {
        counters.count(decision);
    }
}
