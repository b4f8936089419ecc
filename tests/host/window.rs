//! The promise of a token bucket: no window of time holds more than `burst + rate * window`, and less than one byte more.
//!
//! Why less than a byte: an admitted packet moves the bucket's word forward by at least its cost, and never beyond
//! `V(now) + burst`. From the first packet of a window, read at `a`, to the last, read at `b`, the word moves from
//! `V(a)` or more to `V(b) + burst` or less, so they are at most `burst + V(b) - V(a)`. The clock is a product rounded
//! down, and the difference of two numbers that are rounded down is less than one above the true difference. Nothing
//! better holds for whole bytes: the last test comes within a nanobit of it.

use proptest::prelude::*;
use shaper_common::{
    bucket::{self, Limit},
    clock::Clock,
};
use tests::model::{admitted::Admitted, exact};

use crate::property::{bursts, config, magnitudes, rates, regressions, sizes};

/// Nanoseconds by which the clock of one processor may lag behind another's.
const MOST_LAG: u64 = 100_000;

/// How long a sender waits, and what it then sends.
#[derive(Clone, Copy, Debug)]
struct Step {
    wait: Wait,
    size: Size,
    /// Nanoseconds by which the clock of the processor that takes the packet lags.
    lag: u64,
}

#[derive(Clone, Copy, Debug)]
enum Wait {
    Not,
    Nanoseconds(u64),
    /// Until the rate has sent so many bytes.
    Bytes(u64),
    /// Until an empty bucket is full.
    Burst,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Bytes(u64),
    /// All that the bucket holds, to the byte; one byte if it is empty.
    Level,
    /// One byte more than the bucket holds.
    LevelAndOne,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![
        4 => Just(Wait::Not),
        2 => magnitudes(0..=1 << 45).prop_map(Wait::Nanoseconds),
        4 => magnitudes(0..=1 << 17).prop_map(Wait::Bytes),
        1 => Just(Wait::Burst),
    ];
    let size = prop_oneof![6 => sizes().prop_map(Size::Bytes), 1 => Just(Size::Level), 1 => Just(Size::LevelAndOne)];
    let lag = prop_oneof![Just(0), 0..=MOST_LAG];
    prop::collection::vec((wait, size, lag).prop_map(|(wait, size, lag)| Step { wait, size, lag }), 1..most)
}

impl Wait {
    fn nanoseconds(self, rate: u64, burst: u64) -> u64 {
        let send = |bytes| (exact::bytes(bytes) / u128::from(rate)) as u64;
        match self {
            Self::Not => 0,
            Self::Nanoseconds(n) => n,
            // A terabyte takes 35,000 years at the lowest rate: waits are cut where 64-bit time would end.
            Self::Bytes(bytes) => send(bytes).min(1 << 56),
            Self::Burst => send(burst).min(1 << 56),
        }
    }
}

/// A bucket and what it let through.
struct Sender {
    limit: Limit,
    word: u64,
}

impl Sender {
    /// A full bucket on a clock that started at `t0` and shows `v0`, which may be about to wrap.
    fn new(rate: u64, burst: u64, t0: u64, v0: u64) -> Self {
        let clock = Clock { v0, ..Clock::new(rate, t0) };
        Self { limit: Limit { clock, burst }, word: v0 }
    }

    /// Offers a packet when the clock is read at `now`; its bytes if it was admitted.
    fn send(&mut self, now: u64, size: Size) -> Option<u64> {
        let v = self.limit.clock.at(now);
        let level = bucket::level(self.word, v, self.limit.burst);
        let bytes = match size {
            Size::Bytes(bytes) => bytes,
            Size::Level => level.max(1),
            Size::LevelAndOne => level + 1,
        };
        let new = bucket::offer(self.word, v, self.limit.burst, bytes);
        assert_eq!(new.is_some(), bytes <= level, "the level says what fits");
        self.word = new?;
        Some(bytes)
    }
}

proptest! {
    #![proptest_config(config(regressions!("window"), 400))]

    #[test]
    fn no_window_holds_a_byte_more_than_burst_and_rate(
        rate in rates(),
        burst in bursts(),
        start in magnitudes(0..=1 << 62),
        v0 in any::<u64>(),
        steps in steps(80),
    ) {
        let mut sender = Sender::new(rate, burst, start, v0);
        let mut admitted = Admitted::default();
        let mut elapsed = 0;
        for Step { wait, size, .. } in steps {
            elapsed += wait.nanoseconds(rate, burst);
            if let Some(bytes) = sender.send(start + elapsed, size) {
                admitted.push(elapsed, bytes);
            }
        }
        let excess = admitted.excess(rate, burst);
        prop_assert!(excess < exact::BYTE as i128, "{excess} nanobits too much");
    }

    #[test]
    fn clocks_that_disagree_between_processors_add_at_most_their_difference(
        rate in rates(),
        burst in bursts(),
        steps in steps(80),
    ) {
        let start = 1 << 40;
        let mut sender = Sender::new(rate, burst, start, Clock::ORIGIN);
        let mut by_reading = Admitted::default();
        let mut by_time = Admitted::default();
        let mut elapsed = MOST_LAG;
        for Step { wait, size, lag } in steps {
            elapsed += wait.nanoseconds(rate, burst);
            let reading = elapsed - lag;
            if let Some(bytes) = sender.send(start + reading, size) {
                by_reading.push(reading, bytes);
                by_time.push(elapsed, bytes);
            }
        }
        // By the clocks that were read nothing is added at all.
        let excess = by_reading.excess(rate, burst);
        prop_assert!(excess < exact::BYTE as i128, "{excess} nanobits too much");
        let excess = by_time.excess(rate, burst);
        let allowed = exact::BYTE + exact::sent(rate, MOST_LAG);
        prop_assert!(excess < allowed as i128, "{excess} nanobits too much");
    }
}

#[test]
fn a_byte_less_a_nanobit_is_the_tight_bound() {
    let (rate, burst) = (8, 1000);
    let mut sender = Sender::new(rate, burst, 0, Clock::ORIGIN);
    // The nanosecond in which the hundredth byte is earned.
    let (mut before, mut tick) = (0, 200_000_000_000_u64);
    while tick - before > 1 {
        let middle = before.midpoint(tick);
        let earned = sender.limit.clock.at(middle) - Clock::ORIGIN;
        *(if earned < 100 { &mut before } else { &mut tick }) = middle;
    }
    let mut admitted = Admitted::default();
    for (time, size) in [(before, Size::Bytes(burst)), (tick, Size::Bytes(1))] {
        admitted.push(time, sender.send(time, size).expect("it fits"));
    }
    assert_eq!(admitted.excess(rate, burst), exact::BYTE as i128 - i128::from(rate));
}
