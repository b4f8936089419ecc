//! The BPF atomic instructions (`BPF_ATOMIC`, instruction set v3, Linux 5.12).
//!
//! `core::sync::atomic` has no read-modify-write on this target, hence the assembly, and LLVM selects no instruction for
//! its loads and stores before instruction set v4, hence the volatile accesses: an aligned 64-bit access is atomic on
//! every 64-bit processor that Linux runs BPF on.

use core::arch::asm;

use shaper_common::atomic::{AtomicU64, Atomics};

/// The kernel's atomics.
pub(crate) struct Bpf;

impl Atomics for Bpf {
    #[inline(always)]
    fn load(word: &AtomicU64) -> u64 {
        // SAFETY: a reference's pointer is valid and aligned, and the access is one instruction.
        unsafe { word.as_ptr().read_volatile() }
    }

    #[inline(always)]
    fn store(word: &AtomicU64, value: u64) {
        // SAFETY: as above.
        unsafe { word.as_ptr().write_volatile(value) }
    }

    #[inline(always)]
    fn compare_exchange(word: &AtomicU64, current: u64, new: u64) -> u64 {
        let held;
        // SAFETY: `word` is a live, aligned u64 that is only ever accessed atomically. The instruction takes and
        // returns the compared value in r0, as the operands say, and touches nothing else.
        unsafe {
            asm!(
                "r0 = cmpxchg_64({word} + 0, r0, {new})",
                word = in(reg) word.as_ptr(),
                new = in(reg) new,
                inlateout("r0") current => held,
                options(nostack),
            );
        }
        held
    }

    #[inline(always)]
    fn fetch_add(word: &AtomicU64, n: u64) -> u64 {
        let held;
        // SAFETY: as above; the register that brings `n` takes away what the word held.
        unsafe {
            asm!(
                "{n} = atomic_fetch_add((u64 *)({word} + 0), {n})",
                word = in(reg) word.as_ptr(),
                n = inlateout(reg) n => held,
                options(nostack),
            );
        }
        held
    }

    #[inline(always)]
    fn add(word: &AtomicU64, n: u64) {
        // SAFETY: as above, without a result.
        unsafe {
            asm!(
                "lock *(u64 *)({word} + 0) += {n}",
                word = in(reg) word.as_ptr(),
                n = in(reg) n,
                options(nostack),
            );
        }
    }
}
