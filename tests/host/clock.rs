//! The clock against exact arithmetic: never fast, slow by less than a byte and 2^-31 of what was sent.

use proptest::prelude::*;
use shaper_common::clock::Clock;
use tests::model::exact;

use crate::property::{ROUND_AND_ODD_RATES, config, magnitudes, rates, regressions};

/// The clock's reading as an unbounded number of bytes since `t0`, checked against what the rate sent until then.
fn checked_reading(clock: &Clock, bits_per_second: u64, elapsed: u64) -> u128 {
    let sent = exact::sent(bits_per_second, elapsed);
    let shown = clock.at(clock.t0 + elapsed).wrapping_sub(clock.v0);
    let reading = exact::unwrapped(shown, sent / exact::BYTE);
    let late = sent - reading * exact::BYTE;
    // Less than a byte and the 2^31st part of what was sent, which is under 1e-9 of it.
    assert!(
        late < exact::BYTE || (late - exact::BYTE) << 31 < sent,
        "{bits_per_second} bit/s after {elapsed} ns: {late} nanobits late"
    );
    reading
}

#[test]
fn every_round_and_odd_rate_is_exact_at_the_edges_of_the_split_multiplication() {
    let edges = (0..63).map(|bit| 1_u64 << bit).flat_map(|n| [n - 1, n, n + 1]).chain([i64::MAX as u64]);
    for &rate in ROUND_AND_ODD_RATES {
        let clock = Clock::new(rate, 0);
        for elapsed in edges.clone() {
            checked_reading(&clock, rate, elapsed);
        }
    }
}

#[test]
fn a_byte_at_the_lowest_rate_takes_a_second_and_at_the_highest_there_are_125_in_a_nanosecond() {
    let second = 1_000_000_000;
    let slow = Clock::new(8, 0);
    assert_eq!([0, second - 1, second + 1].map(|now| slow.at(now) - Clock::ORIGIN), [0, 0, 1]);
    let fast = Clock::new(1_000_000_000_000, 0);
    assert_eq!([0, 1, second].map(|now| fast.at(now) - Clock::ORIGIN), [0, 125, 125 * second]);
}

#[test]
fn the_multiplier_always_has_32_bits() {
    for &rate in ROUND_AND_ODD_RATES {
        let Clock { mult, shift, .. } = Clock::new(rate, 0);
        assert!(mult >= 1 << 31, "{rate}: {mult}");
        assert!((25..=61).contains(&shift), "{rate}: {shift}");
    }
}

#[test]
fn a_time_before_the_start_reads_the_start() {
    for rate in [8, 1_000_000_000_000] {
        let clock = Clock::new(rate, 5_000);
        assert_eq!([0, 1, 4_999, 5_000].map(|now| clock.at(now)), [Clock::ORIGIN; 4]);
    }
}

#[test]
#[should_panic(expected = "bits_per_second >= 8")]
fn seven_bits_per_second_is_no_rate() {
    let _never = Clock::new(7, 0);
}

#[test]
#[should_panic(expected = "bits_per_second <= 1_000_000_000_000")]
fn more_than_a_terabit_per_second_is_no_rate() {
    let _never = Clock::new(1_000_000_000_001, 0);
}

proptest! {
    #![proptest_config(config(regressions!("clock"), 4000))]

    #[test]
    fn it_is_never_fast_and_slow_by_less_than_a_byte_and_a_billionth(
        rate in rates(),
        elapsed in magnitudes(0..=i64::MAX as u64),
        t0 in magnitudes(0..=i64::MAX as u64),
    ) {
        checked_reading(&Clock::new(rate, t0), rate, elapsed);
    }

    #[test]
    fn it_never_goes_back_and_never_jumps(
        rate in rates(),
        elapsed in magnitudes(0..=(1 << 62)),
        step in magnitudes(0..=(1 << 62)),
    ) {
        let clock = Clock::new(rate, 0);
        let [before, after] = [elapsed, elapsed + step].map(|elapsed| checked_reading(&clock, rate, elapsed));
        prop_assert!(before <= after);
        let most = exact::sent(rate, step).div_ceil(exact::BYTE);
        prop_assert!(after - before <= most, "{} bytes in {step} ns", after - before);
    }

    #[test]
    fn only_differences_matter_so_that_the_wrap_at_2_to_the_64_is_nothing(
        rate in rates(),
        elapsed in magnitudes(0..=i64::MAX as u64),
        v0 in any::<u64>(),
    ) {
        let clock = Clock::new(rate, 0);
        let shifted = Clock { v0, ..clock };
        prop_assert_eq!(shifted.at(elapsed).wrapping_sub(v0), clock.at(elapsed).wrapping_sub(Clock::ORIGIN));
    }

    #[test]
    fn a_change_of_rate_goes_on_from_the_same_reading(
        rate in rates(),
        changes in prop::collection::vec((rates(), magnitudes(0..=(1 << 55))), 1..8),
    ) {
        let mut clock = Clock::new(rate, 0);
        let mut now = 0;
        let mut current = rate;
        let mut sent = 0;
        for (made, (rate, elapsed)) in changes.into_iter().enumerate() {
            now += elapsed;
            sent += exact::sent(current, elapsed);
            let changed = clock.at_rate(rate, now);
            prop_assert_eq!(changed.at(now), clock.at(now));
            prop_assert_eq!(changed, Clock { t0: now, v0: clock.at(now), ..Clock::new(rate, 0) });
            (clock, current) = (changed, rate);
            // Each change drops the part of a byte that was under way.
            let reading = exact::unwrapped(clock.at(now).wrapping_sub(Clock::ORIGIN), sent / exact::BYTE);
            let late = sent - reading * exact::BYTE;
            let parts = exact::BYTE * (made as u128 + 1);
            prop_assert!(late < parts || (late - parts) << 31 < sent, "{late} nanobits late");
        }
    }
}
