//! Exact rate arithmetic: everything is a whole number of nanobits (1e-9 bit).
//!
//! Bits per second times nanoseconds *are* nanobits, so that nothing is ever divided and nothing rounded.

/// Nanobits in a byte.
pub const BYTE: u128 = 8_000_000_000;

/// Lowest and highest rate, in bits per second.
pub const RATES: std::ops::RangeInclusive<u64> = 8..=1_000_000_000_000;

/// What a rate sends in `elapsed` nanoseconds, in nanobits.
#[must_use]
pub fn sent(bits_per_second: u64, elapsed: u64) -> u128 {
    u128::from(bits_per_second) * u128::from(elapsed)
}

/// Bytes as nanobits.
#[must_use]
pub fn bytes(n: u64) -> u128 {
    u128::from(n) * BYTE
}

/// The number whose low 64 bits a wrapping clock shows, given a number it cannot exceed and is less than 2^63 below.
///
/// # Panics
///
/// If the clock shows more than it can.
#[must_use]
pub fn unwrapped(shown: u64, at_most: u128) -> u128 {
    let behind = (at_most as u64).wrapping_sub(shown);
    assert!(behind < 1 << 63, "the clock is {} ahead of {at_most}", behind.wrapping_neg());
    at_most - u128::from(behind)
}
