//! The other half of the promise: a sender that always has a packet waiting gets the rate.

use shaper_common::bucket::{self, Limit};
use tests::model::exact;

use crate::property::ROUND_AND_ODD_RATES;

/// What each run sends, so that the last nanosecond of 125 bytes is less than 0.1 % of it.
const BYTES: u64 = 200_000;
/// And the least number of packets.
const PACKETS: u64 = 100;

/// The first nanosecond from `now` on at which a packet of `size` bytes conforms, if the burst is not less.
fn conforming(rate: u64, limit: &Limit, word: u64, now: u64, size: u64) -> u64 {
    let conforms = |now| bucket::offer(word, limit.clock.at(now), limit.burst, size).is_some();
    let enough = exact::bytes(size + 2) / u128::from(rate) + 1;
    let (mut early, mut late) = (now, now + enough as u64);
    assert!(conforms(late), "an empty bucket holds a packet as soon as the rate has sent one");
    while early < late {
        let middle = early.midpoint(late);
        if conforms(middle) {
            late = middle;
        } else {
            early = middle + 1;
        }
    }
    late
}

/// What a sender of packets of `size` bytes misses of the rate, and what that was, in nanobits.
fn backlogged(rate: u64, size: u64, burst: u64) -> (u128, u128) {
    let start = 1_000_000_007;
    let limit = Limit::new(rate, burst, start);
    // An empty bucket, so that nothing but the rate is measured.
    let mut word = limit.clock.at(start) + burst;
    let mut now = start;
    let mut got = 0;
    for _ in 0..PACKETS.max(BYTES / size) {
        now = conforming(rate, &limit, word, now, size);
        word = bucket::offer(word, limit.clock.at(now), burst, size).expect("it conforms now");
        got += size;
    }
    let earned = exact::sent(rate, now - start);
    (earned.saturating_sub(exact::bytes(got)), earned)
}

#[test]
fn a_backlogged_sender_gets_the_rate_at_every_rate_size_and_burst() {
    for &rate in ROUND_AND_ODD_RATES {
        let nanosecond = exact::sent(rate, 1);
        // What is earned within the nanosecond in which a packet goes must fit beside it.
        let beside = nanosecond.div_ceil(exact::BYTE) as u64;
        for size in [60, 64, 1514, 9014, 65_535] {
            for burst in [size + beside, 3 * size + beside, 1 << 40] {
                let (missing, earned) = backlogged(rate, size, burst);
                let run = format!("{rate} bit/s, {size} bytes, burst {burst}: {missing} of {earned} nanobits missing");
                assert!(missing * 1000 <= earned, "{run}");
                // That was the promise. What holds is that only the last nanosecond and the clock's own error, a byte
                // and 2^-31, are missing, however long it goes on.
                assert!(missing <= nanosecond + exact::BYTE + (earned >> 31), "{run}");
            }
        }
    }
}

#[test]
fn a_burst_of_one_packet_is_enough_for_the_rate_while_a_packet_takes_a_thousand_nanoseconds() {
    for &rate in ROUND_AND_ODD_RATES {
        for size in [60, 1514, 65_535].into_iter().filter(|&size| exact::bytes(size) >= exact::sent(rate, 1000)) {
            let (missing, earned) = backlogged(rate, size, size);
            assert!(missing * 1000 <= earned + earned / 100, "{rate} bit/s, {size} bytes: {missing} of {earned}");
        }
    }
}
