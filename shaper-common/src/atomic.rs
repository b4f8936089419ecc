//! The atomic operations the data plane needs, as an argument.
//!
//! On the BPF target `core::sync::atomic` has no read-modify-write, and LLVM selects no instruction for its loads, so
//! the eBPF crate brings its own instructions and everybody else uses [`Native`].

pub use core::sync::atomic::AtomicU64;
#[cfg(target_has_atomic = "64")]
use core::sync::atomic::Ordering;

/// Operations on a shared word. Loads and stores are relaxed; what reads and writes at once is sequentially consistent
/// where it returns a value (BPF: `Documentation/bpf/standardization/instruction-set.rst`, atomic operations).
pub trait Atomics {
    /// What the word holds.
    fn load(word: &AtomicU64) -> u64;
    /// Writes `value`.
    fn store(word: &AtomicU64, value: u64);
    /// Writes `new` if the word holds `current`; returns what the word held.
    fn compare_exchange(word: &AtomicU64, current: u64, new: u64) -> u64;
    /// Adds `n`, wrapping; returns what the word held.
    fn fetch_add(word: &AtomicU64, n: u64) -> u64;
    /// Adds `n`, wrapping, where nobody needs the old value.
    fn add(word: &AtomicU64, n: u64);
}

/// The processor's own atomics, for the tool and for tests.
#[cfg(target_has_atomic = "64")]
#[derive(Clone, Copy, Debug)]
pub struct Native;

#[cfg(target_has_atomic = "64")]
impl Atomics for Native {
    fn load(word: &AtomicU64) -> u64 {
        word.load(Ordering::Relaxed)
    }

    fn store(word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Relaxed);
    }

    fn compare_exchange(word: &AtomicU64, current: u64, new: u64) -> u64 {
        match word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(held) | Err(held) => held,
        }
    }

    fn fetch_add(word: &AtomicU64, n: u64) -> u64 {
        word.fetch_add(n, Ordering::SeqCst)
    }

    fn add(word: &AtomicU64, n: u64) {
        word.fetch_add(n, Ordering::SeqCst);
    }
}
