//! What the limits answer about a packet, as one number: a function of the BPF object returns no more.

use crate::{
    remark::Change,
    verdict::{Reason, Verdict},
};

/// Verdict, reason, and the change to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Answer(u64);

/// Bit of a packet that is dropped; the reason's number follows in the second byte, the change in the upper half.
const DROP: u64 = 1;
const REASON_SHIFT: u32 = 8;
const CHANGE_SHIFT: u32 = 16;

impl Answer {
    /// It passes as it is.
    #[inline(always)]
    pub const fn pass(reason: Reason) -> Self {
        Self((reason as u64) << REASON_SHIFT)
    }

    /// It is dropped.
    #[inline(always)]
    pub const fn drop(reason: Reason) -> Self {
        Self(DROP | (reason as u64) << REASON_SHIFT)
    }

    /// The same with a change.
    #[inline(always)]
    pub const fn with(self, change: Change) -> Self {
        Self(self.0 | change.to_bits() << CHANGE_SHIFT)
    }

    /// The same for another reason.
    #[inline(always)]
    pub(crate) const fn because(self, reason: Reason) -> Self {
        Self(self.0 & !(0xff << REASON_SHIFT) | (reason as u64) << REASON_SHIFT)
    }

    /// It is dropped after all, for the same reason.
    #[inline(always)]
    pub const fn revoked(self) -> Self {
        Self(DROP | self.0 & 0xff << REASON_SHIFT)
    }

    /// What happens to the packet.
    #[inline(always)]
    pub const fn verdict(self) -> Verdict {
        if self.0 & DROP == 0 { Verdict::Pass } else { Verdict::Drop }
    }

    /// Why: the index of the reason's counter. A number, which a verifier sees compared before it is used.
    #[inline(always)]
    #[must_use]
    pub const fn reason_index(self) -> usize {
        (self.0 >> REASON_SHIFT) as usize & 0xff
    }

    /// Why.
    #[must_use]
    pub fn reason(self) -> Option<Reason> {
        Reason::ALL.get(self.reason_index()).copied()
    }

    /// Whether the packet passes with a mark.
    #[inline(always)]
    #[must_use]
    pub const fn is_marked(self) -> bool {
        self.0 & DROP == 0 && self.change().marks()
    }

    /// How it has to be changed.
    #[inline(always)]
    #[must_use]
    pub const fn change(self) -> Change {
        Change::from_bits(self.0 >> CHANGE_SHIFT)
    }

    /// As it crosses from one function of the BPF object to another.
    #[inline(always)]
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The answer with these bits.
    #[inline(always)]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}
