//! Types that the kernel and the tool may copy as bytes.

use shaper_common::{
    abi::{Control, OwnerRecord, RuleCounters, RuleLimits, RuleState, Settings},
    rule::{Boundary, Index, Link},
    table::FlowSet,
};

use super::sys::{LinkInfo, MapInfo, ProgramInfo};

/// Plain integers, without padding: any bytes are a valid value.
///
/// # Safety
///
/// The implementor is `repr(C)`, has no padding and is valid for every bit pattern.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: a `repr(C)` struct of one u64.
unsafe impl Plain for Control {}
// SAFETY: a `repr(C)` struct of integers; `shaper_common::abi` asserts its size, the sum of its fields'.
unsafe impl Plain for RuleLimits {}
// SAFETY: as above.
unsafe impl Plain for OwnerRecord {}
// SAFETY: as above.
unsafe impl Plain for Index {}
// SAFETY: as above.
unsafe impl Plain for Boundary {}
// SAFETY: as above.
unsafe impl Plain for Link {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: a `repr(C)` struct of u32s.
unsafe impl Plain for MapInfo {}
// SAFETY: as above.
unsafe impl Plain for ProgramInfo {}
// SAFETY: as above.
unsafe impl Plain for LinkInfo {}

/// Atomic words, without padding: any bytes are a valid value, and others may change them at any time.
///
/// # Safety
///
/// The implementor is `repr(C)`, has no padding and consists of atomic integers.
pub(super) unsafe trait Shared {}

// SAFETY: a `repr(C)` struct of atomics; `shaper_common::abi` asserts its size, the sum of its fields'.
unsafe impl Shared for FlowSet {}
// SAFETY: as above.
unsafe impl Shared for RuleState {}
// SAFETY: as above.
unsafe impl Shared for RuleCounters {}

/// [`Settings`] as aya takes it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Global(pub(super) Settings);

// SAFETY: a `repr(C)` struct of integers; `shaper_common::abi` asserts its size, the sum of its fields' (the last is
// there to leave no padding).
unsafe impl aya::Pod for Global {}
