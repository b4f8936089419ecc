//! The virtual byte clock: how many bytes a rate has sent since it was set.
//!
//! `V(now) = v0 + (now - t0) * rate`, always computed from absolute time, so nothing is rounded twice and no error adds
//! up. The value is a serial number (RFC 1982 in spirit): it wraps, and only differences mean anything.

/// Nanoseconds in eight seconds: a rate in bits per second divided by this is a rate in bytes per nanosecond.
const NS_PER_8_SECONDS: u128 = 8_000_000_000;

/// A clock that counts bytes (or packets) at a fixed rate.
///
/// The rate is held as `mult / 2^shift` units per nanosecond with `mult` normalised to 32 bits and rounded *down*, so
/// the clock is never fast and at most 2^-31 (0.5e-9) of the rate slow.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Time at which the clock read `v0`, in nanoseconds of `CLOCK_MONOTONIC` (`bpf_ktime_get_ns`).
    pub t0: u64,
    /// What the clock read at `t0`.
    pub v0: u64,
    /// Rate numerator, 2^31 ..= 2^32 - 1.
    pub mult: u32,
    /// Rate denominator as a power of two, 25 ..= 61 for 1 Tbit/s ..= 8 bit/s.
    pub shift: u32,
}

impl Clock {
    /// Where a clock starts: far enough from 0 that the growth of a burst (at most 1 TiB) can be taken off, and that a
    /// bucket word that was never written (0) reads as "full long ago".
    pub const ORIGIN: u64 = 1 << 40;

    /// A clock that starts at `t0` nanoseconds and runs at `bits_per_second`.
    ///
    /// # Panics
    ///
    /// If `bits_per_second` is outside 8 ..= 10^12; the units module lets no such rate through.
    #[must_use]
    pub const fn new(bits_per_second: u64, t0: u64) -> Self {
        let (mult, shift) = Self::rate(bits_per_second);
        Self { t0, v0: Self::ORIGIN, mult, shift }
    }

    /// The clock that reads what this one reads at `now` and goes on from there at another rate.
    ///
    /// Every bucket on the clock keeps its level: debts are differences of readings, and the reading does not jump.
    ///
    /// # Panics
    ///
    /// As [`Clock::new`].
    #[must_use]
    pub const fn at_rate(&self, bits_per_second: u64, now: u64) -> Self {
        let (mult, shift) = Self::rate(bits_per_second);
        Self { t0: now, v0: self.at(now), mult, shift }
    }

    /// The clock's reading at `now`. A `now` before `t0` (clocks of two CPUs may differ) reads `v0`.
    ///
    /// The result is the exact product rounded down once: the elapsed time is split into 32-bit halves so that no
    /// product overflows, and where the low half's product is cut, the cut bits could not have carried.
    #[inline(always)]
    #[must_use]
    pub const fn at(&self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.t0);
        let mult = self.mult as u64;
        let high = (elapsed >> 32).wrapping_mul(mult);
        let low = (elapsed & 0xffff_ffff).wrapping_mul(mult);
        let units = if self.shift >= 32 {
            high.wrapping_add(low >> 32) >> (self.shift - 32)
        } else {
            (high << (32 - self.shift)).wrapping_add(low >> self.shift)
        };
        self.v0.wrapping_add(units)
    }

    const fn rate(bits_per_second: u64) -> (u32, u32) {
        assert!(bits_per_second >= 8 && bits_per_second <= 1_000_000_000_000);
        let bits = bits_per_second as u128;
        let mut shift = 25;
        while (bits << shift) / NS_PER_8_SECONDS < 1 << 31 {
            shift += 1;
        }
        (((bits << shift) / NS_PER_8_SECONDS) as u32, shift)
    }
}
