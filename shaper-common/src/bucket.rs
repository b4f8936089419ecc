//! The token bucket, kept as one word: the reading its clock will show when the bucket is full again.
//!
//! A packet of `cost` bytes conforms if `max(full_at, V) + cost <= V + burst`; then that sum is the new word. The
//! difference `full_at - V` is the *debt*; what is left of the burst is the *level*. One word changes by one
//! compare-and-swap: no lock, no refill, no remainder to keep. This is the virtual-scheduling form of the generic cell
//! rate algorithm (ITU-T I.371, annex A), counted in bytes instead of time.

use crate::{
    atomic::{AtomicU64, Atomics},
    clock::Clock,
};

/// Largest difference that is a debt. No debt exceeds the largest burst (2^40) by more than the clock skew between
/// CPUs; anything beyond is a word the clock has long passed, even after the clock wrapped.
const MAX_DEBT: u64 = 1 << 42;

/// How often a charge is retried before it takes the way that cannot fail.
const CHARGE_TRIES: u32 = 8;

/// A rate and the burst it allows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// Counts the bytes that the rate would have sent.
    pub clock: Clock,
    /// Depth of the bucket in bytes, 1 ..= 2^40.
    pub burst: u64,
}

impl Limit {
    /// A limit whose buckets are all full at `now` nanoseconds.
    #[must_use]
    pub const fn new(bits_per_second: u64, burst: u64, now: u64) -> Self {
        Self { clock: Clock::new(bits_per_second, now), burst }
    }

    /// The same limit from `now` on with another rate and burst, every bucket's level kept (at most the new burst).
    ///
    /// The clock is set back by what the burst grew, which adds exactly that to every debt: a bucket that held L bytes
    /// still holds L. A bucket that was full stays full only if it has been full for longer than the growth takes.
    #[must_use]
    pub const fn changed(&self, bits_per_second: u64, burst: u64, now: u64) -> Self {
        let mut clock = self.clock.at_rate(bits_per_second, now);
        clock.v0 = clock.v0.wrapping_add(self.burst).wrapping_sub(burst);
        Self { clock, burst }
    }
}

/// Bytes that are missing from a full bucket when its clock reads `v`.
#[inline(always)]
#[must_use]
pub const fn debt(full_at: u64, v: u64) -> u64 {
    let ahead = full_at.wrapping_sub(v);
    if ahead <= MAX_DEBT { ahead } else { 0 }
}

/// Bytes that a bucket of `burst` bytes holds when its clock reads `v`.
#[must_use]
pub const fn level(full_at: u64, v: u64, burst: u64) -> u64 {
    burst.saturating_sub(debt(full_at, v))
}

/// The word after a packet of `cost` bytes, or `None` if the packet does not conform.
#[inline(always)]
#[must_use]
pub const fn offer(full_at: u64, v: u64, burst: u64, cost: u64) -> Option<u64> {
    let owed = debt(full_at, v).wrapping_add(cost);
    if owed <= burst { Some(v.wrapping_add(owed)) } else { None }
}

/// Charges a packet of `cost` bytes to a shared bucket whose clock reads `v`; false if it does not conform.
///
/// A packet that does not conform writes nothing. After [`CHARGE_TRIES`] lost races the word has just been charged by
/// others, so it is ahead of `v`, or behind by no more than their clocks lag, and an unconditional add is the same
/// charge. It is taken back if others used up the room in between, which can only refuse, never admit too much.
#[inline(always)]
#[must_use]
pub fn charge<A: Atomics>(word: &AtomicU64, v: u64, burst: u64, cost: u64) -> bool {
    let held = A::load(word);
    let Some(new) = offer(held, v, burst, cost) else { return false };
    let found = A::compare_exchange(word, held, new);
    found == held || contend::<A>(word, v, burst, cost)
}

/// Empties a bucket that owes more than its burst, as one may whose burst was larger.
#[inline(always)]
pub fn cap<A: Atomics>(word: &AtomicU64, v: u64, burst: u64) {
    let held = A::load(word);
    if debt(held, v) > burst {
        A::compare_exchange(word, held, v.wrapping_add(burst));
    }
}

/// What debts of bytes, and of packets, may exceed twice the burst by before nobody believes them: no clock of another CPU
/// lags by so much, nor do so many charges wait to be taken back.
pub const DOUBT_BYTES: u64 = 1 << 20;
/// See [`DOUBT_BYTES`].
pub const DOUBT_PACKETS: u64 = 1 << 10;

/// Empties a bucket that owes more than it could ever have been charged.
///
/// Where rules have clocks of their own, a CPU that is held up between finding its way and charging it may charge by the
/// clock of a rule to which the way no longer belongs. What it writes means nothing on the present one. It may read as
/// debts that no traffic has made; then the bucket is empty, and fills at its rate from now on.
#[inline(always)]
pub fn heal<A: Atomics>(word: &AtomicU64, v: u64, burst: u64, doubt: u64) {
    let held = A::load(word);
    if debt(held, v) > burst.wrapping_mul(2).wrapping_add(doubt) {
        A::compare_exchange(word, held, v.wrapping_add(burst));
    }
}

/// [`charge`] after a lost race.
#[inline(never)]
fn contend<A: Atomics>(word: &AtomicU64, v: u64, burst: u64, cost: u64) -> bool {
    for _ in 1..CHARGE_TRIES {
        let held = A::load(word);
        let Some(new) = offer(held, v, burst, cost) else { return false };
        if A::compare_exchange(word, held, new) == held {
            return true;
        }
    }
    let held = A::fetch_add(word, cost);
    if offer(held, v, burst, cost).is_some() {
        return true;
    }
    A::add(word, cost.wrapping_neg());
    false
}
