//! Types that the kernel and the tool may copy as bytes.

use shaper_common::abi::{Control, OwnerRecord, RuleCounters, RuleLimits, Settings};

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
unsafe impl Plain for RuleCounters {}
// SAFETY: as above.
unsafe impl Plain for OwnerRecord {}
// SAFETY: a `repr(C)` struct of u32s.
unsafe impl Plain for MapInfo {}
// SAFETY: as above.
unsafe impl Plain for ProgramInfo {}
// SAFETY: as above.
unsafe impl Plain for LinkInfo {}

/// [`Settings`] as aya takes it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Global(pub(super) Settings);

// SAFETY: a `repr(C)` struct of integers; `shaper_common::abi` asserts its size, the sum of its fields' (the last is
// there to leave no padding).
unsafe impl aya::Pod for Global {}
