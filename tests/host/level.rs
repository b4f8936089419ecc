//! What a bucket holds, and that a change of rate or burst leaves it holding that.

use proptest::prelude::*;
use shaper_common::{
    bucket::{Limit, debt, level, offer},
    clock::Clock,
};
use tests::model::exact;

use crate::property::{bursts, config, magnitudes, rates, regressions, sizes};

/// Debts that are believed: four times the largest burst.
const MOST_DEBT: u64 = 1 << 42;

#[test]
fn a_debt_is_how_far_the_word_is_ahead_of_the_clock() {
    let v = 1_000_000;
    for (word, debt_bytes, level_bytes) in [
        (0, 0, 1000),
        (v - 1, 0, 1000),
        (v, 0, 1000),
        (v + 1, 1, 999),
        (v + 999, 999, 1),
        (v + 1000, 1000, 0),
        // More than the burst, after a clock that ran ahead: nothing is left, and that is all.
        (v + 1001, 1001, 0),
    ] {
        assert_eq!((debt(word, v), level(word, v, 1000)), (debt_bytes, level_bytes), "word {word}");
    }
}

#[test]
fn a_packet_fits_to_the_byte_and_one_that_does_not_leaves_no_trace() {
    let (v, burst) = (1_000_000, 1000);
    assert_eq!(offer(v + 400, v, burst, 600), Some(v + 1000));
    assert_eq!(offer(v + 400, v, burst, 601), None);
    // Time that a full bucket has waited is not saved up.
    assert_eq!(offer(v - 1_000_000, v, burst, 600), Some(v + 600));
    assert_eq!(offer(v - 1_000_000, v, burst, 1001), None);
}

#[test]
fn a_bucket_that_was_never_seen_is_full_under_every_limit_and_after_every_change() {
    for (first, then) in [(1, 1 << 40), (1 << 40, 1), (1 << 40, 1 << 40), (1500, 1 << 40)] {
        let limit = Limit::new(8, first, 0);
        assert_eq!(debt(0, limit.clock.at(0)), 0);
        let changed = limit.changed(8, then, 0);
        assert_eq!(debt(0, changed.clock.at(0)), 0, "burst {first}, then {then}");
        let back = changed.changed(8, first, 0);
        assert_eq!(back.clock, limit.clock, "growing and shrinking again is no change");
    }
}

#[test]
fn a_word_that_the_clock_has_passed_stays_full_for_2_to_the_64_bytes_less_the_largest_debt() {
    let word = 77_u64;
    let after = |bytes: u64| word.wrapping_add(bytes);
    for passed in [0, 1, 1 << 40, 1 << 42, 1 << 63, u64::MAX - MOST_DEBT] {
        assert_eq!(debt(word, after(passed)), 0, "{passed} bytes later");
    }
    // From there on the word looks as if it were ahead. At a terabit per second that is after more than four years of
    // silence, and for half a minute.
    assert_eq!(debt(word, after(u64::MAX - MOST_DEBT + 1)), MOST_DEBT);
    let per_second = 125_000_000_000;
    assert!((u64::MAX - MOST_DEBT) / per_second > 4 * 365 * 86_400 && MOST_DEBT / per_second < 40);
}

#[test]
fn debts_are_right_on_both_sides_of_the_wrap() {
    for v in [u64::MAX - 500, u64::MAX, 0, 500] {
        let full = offer(v.wrapping_sub(3), v, 1000, 600).expect("it fits");
        assert_eq!((debt(full, v), level(full, v, 1000)), (600, 400));
        assert_eq!(level(full, v.wrapping_add(250), 1000), 650);
        assert_eq!(level(full, v.wrapping_add(601), 1000), 1000);
    }
}

#[test]
fn a_smaller_burst_takes_away_only_what_does_not_fit() {
    let limit = Limit::new(1_000_000, 10_000, 0);
    let v = limit.clock.at(0);
    let words = [10_000, 4_000, 0].map(|debt| v + debt);
    let changed = limit.changed(1_000_000, 3_000, 0);
    let levels = words.map(|word| level(word, changed.clock.at(0), changed.burst));
    assert_eq!(levels, [0, 3_000, 3_000]);
}

#[test]
fn a_larger_burst_has_to_be_earned_unless_the_bucket_was_full_for_that_long() {
    let limit = Limit::new(8_000_000, 10_000, 0);
    let now = 5_000_000;
    let v = limit.clock.at(now);
    // Empty; half full; full now; full for 3000 bytes; full for longer than the growth takes.
    let words = [v + 10_000, v + 5_000, v, v - 3_000, 0];
    let changed = limit.changed(8_000_000, 20_000, now);
    let levels = words.map(|word| level(word, changed.clock.at(now), changed.burst));
    assert_eq!(levels, [0, 5_000, 10_000, 13_000, 20_000]);
}

proptest! {
    #![proptest_config(config(regressions!("level"), 600))]

    #[test]
    fn a_change_leaves_every_level_as_it_was_as_far_as_the_new_burst_holds_it(
        rate in (rates(), rates()),
        burst in (bursts(), bursts()),
        now in magnitudes(0..=1 << 50),
        debts in prop::collection::vec(any::<u64>(), 20),
    ) {
        let limit = Limit::new(rate.0, burst.0, 0);
        let changed = limit.changed(rate.1, burst.1, now);
        let [before, after] = [limit, changed].map(|limit| limit.clock.at(now));
        let debts = debts.into_iter().map(|debt| 1 + debt % burst.0);
        for word in debts.map(|debt| before.wrapping_add(debt)) {
            let held = level(word, before, burst.0);
            prop_assert_eq!(level(word, after, burst.1), held.min(burst.1), "word {}", word);
        }
    }

    #[test]
    fn no_sequence_of_packets_pauses_and_changes_gives_or_takes_credit(
        rate in rates(),
        burst in bursts(),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let mut bucket = Tracked::new(rate, burst);
        for event in events {
            bucket.apply(event)?;
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// This many bytes are sent by the rate; or a pause of a second if that takes longer.
    Pause(u64),
    Packet(u64),
    /// A packet of as many bytes as there are.
    Drain,
    Change {
        rate: u64,
        burst: u64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => magnitudes(0..=1 << 24).prop_map(Event::Pause),
        3 => sizes().prop_map(Event::Packet),
        2 => Just(Event::Drain),
        1 => (rates(), bursts()).prop_map(|(rate, burst)| Event::Change { rate, burst }),
    ]
}

/// A bucket beside an exact one.
struct Tracked {
    limit: Limit,
    rate: u64,
    word: u64,
    now: u64,
    /// What the exact bucket lacks, in nanobits; negative if it has been full since that was sent.
    lacks: i128,
    /// Nanobits sent, and changes made, so far.
    sent: u128,
    changes: u128,
}

impl Tracked {
    fn new(rate: u64, burst: u64) -> Self {
        // A word that was never written is as far behind the clock as it can be.
        let lacks = -(exact::bytes(Clock::ORIGIN) as i128);
        Self { limit: Limit::new(rate, burst, 0), rate, word: 0, now: 0, lacks, sent: 0, changes: 0 }
    }

    fn apply(&mut self, event: Event) -> Result<(), TestCaseError> {
        match event {
            Event::Pause(bytes) => {
                let pause = (exact::bytes(bytes) / u128::from(self.rate)).min(1_000_000_000) as u64;
                let sent = exact::sent(self.rate, pause);
                self.now += pause;
                self.sent += sent;
                self.lacks -= sent as i128;
            }
            Event::Packet(bytes) => self.packet(bytes),
            Event::Drain => self.packet(level(self.word, self.v(), self.limit.burst)),
            Event::Change { rate, burst } => {
                self.lacks += exact::bytes(burst) as i128 - exact::bytes(self.limit.burst) as i128;
                self.limit = self.limit.changed(rate, burst, self.now);
                self.rate = rate;
                self.changes += 1;
            }
        }
        self.check()
    }

    fn v(&self) -> u64 {
        self.limit.clock.at(self.now)
    }

    fn packet(&mut self, bytes: u64) {
        if let Some(word) = offer(self.word, self.v(), self.limit.burst, bytes) {
            self.word = word;
            self.lacks = self.lacks.max(0) + exact::bytes(bytes) as i128;
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let lacks = self.lacks.max(0);
        let debt = exact::bytes(debt(self.word, self.v())) as i128;
        // A free byte is one that the exact bucket lacks and this one does not.
        prop_assert!(lacks - debt < exact::BYTE as i128, "{} nanobits are free", lacks - debt);
        // Lost is what the clock is late: a byte, a part of one with every change, and 2^-31 of what was sent.
        let late = (exact::BYTE * (self.changes + 1) + (self.sent >> 31)) as i128;
        prop_assert!(debt - lacks <= late, "{} nanobits are lost", debt - lacks);
        Ok(())
    }
}
