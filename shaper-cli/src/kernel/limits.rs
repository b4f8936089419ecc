//! From what was asked for to the clocks and bursts of the data plane.

use shaper_common::{abi::RuleLimits, bucket::Limit, clock::Clock};

use crate::model::{ByteLimit, Limits, PacketLimit};

/// A clock counts bytes of this many bits, or packets that are given to it as so many.
const BITS: u64 = 8;

/// What to put in force `now`, in nanoseconds, where `old` is: every bucket keeps its level.
///
/// A limit that is taken away keeps its clock, for the flow table keeps its words. When it comes back it goes on from
/// there: a new clock would take the words for debts, or for none.
pub(super) fn next(old: &RuleLimits, limits: &Limits, now: u64) -> RuleLimits {
    let bytes = |limit: ByteLimit| (limit.rate.bits_per_second(), limit.burst.get());
    let packets = |limit: PacketLimit| (limit.rate.packets_per_second() * BITS, limit.burst.get());
    RuleLimits {
        rate: follow(&old.rate, limits.rate.map(bytes), now),
        peak: follow(&old.peak, limits.peak.map(bytes), now),
        pps: follow(&old.pps, limits.pps.map(packets), now),
        device_total: follow(&old.device_total, limits.total.map(bytes), now),
        exceed: limits.exceed.into(),
        violate: limits.violate.into(),
    }
}

/// The limit of this many bits per second and this burst, that goes on from the old one.
fn follow(old: &Limit, wanted: Option<(u64, u64)>, now: u64) -> Limit {
    let Some((bits, burst)) = wanted else { return *old };
    if *old == Limit::default() {
        return Limit::new(bits, burst, now);
    }
    let same = |a: &Clock, b: &Clock| (a.mult, a.shift) == (b.mult, b.shift);
    let changed = old.changed(bits, burst, now);
    // What stays the same is not even touched.
    if same(&old.clock, &changed.clock) && old.burst == burst { *old } else { changed }
}

#[cfg(test)]
mod tests {
    use shaper_common::bucket::level;

    use super::*;
    use crate::plan::example;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn every_limit_has_a_clock_of_its_own() {
        let limits = next(&RuleLimits::default(), &example::limits(), 5);
        assert_eq!(limits.rate, Limit::new(100_000_000, 3_125_000, 5));
        assert_eq!(limits.peak, Limit::new(200_000_000, 6_250_000, 5));
        assert_eq!(limits.pps, Limit::new(80_000, 2_500, 5));
        assert_eq!(limits.device_total, Limit::new(1_000_000_000, 31_250_000, 5));
        assert_eq!(limits.exceed, example::limits().exceed.into());
        assert_eq!(limits.pps.clock.at(6 + SECOND) - limits.pps.clock.at(5), 10_000, "packets");
    }

    #[test]
    fn limits_that_were_never_asked_for_are_zero() {
        let pps = Limits { pps: example::limits().pps, ..Limits::default() };
        let limits = next(&RuleLimits::default(), &pps, 5);
        assert_eq!((limits.rate, limits.peak, limits.device_total), Default::default());
        assert_eq!(next(&RuleLimits::default(), &Limits::BLOCK, 5), RuleLimits::default());
    }

    #[test]
    fn what_stays_is_not_touched() {
        let first = next(&RuleLimits::default(), &example::limits(), 5);
        assert_eq!(next(&first, &example::limits(), SECOND), first);
        let more = Limits { total: example::byte_limit(8_000_000, 1 << 20, true), ..example::limits() };
        let second = next(&first, &more, SECOND);
        assert_eq!(RuleLimits { device_total: first.device_total, ..second }, first);
        assert_eq!(second.device_total, first.device_total.changed(8_000_000, 1 << 20, SECOND));
    }

    #[test]
    fn a_limit_that_comes_back_goes_on_where_it_was() {
        let with = Limits { pps: example::packet_limit(10, 100, true), ..example::config().limits };
        let without = Limits { pps: None, ..with.clone() };
        let first = next(&RuleLimits::default(), &with, SECOND);
        // A bucket that owes 90 packets.
        let word = first.pps.clock.at(SECOND) + 90;
        let gone = next(&first, &without, 2 * SECOND);
        assert_eq!(gone.pps, first.pps);
        // Three seconds, and a moment because clocks are never fast.
        let later = 4 * SECOND + 100;
        let back = next(&gone, &with, later);
        assert_eq!(level(word, back.pps.clock.at(later), back.pps.burst), 100 - 90 + 30);
        let other = Limits { pps: example::packet_limit(1_000, 200, true), ..with };
        let back = next(&gone, &other, later);
        assert_eq!(level(word, back.pps.clock.at(later), back.pps.burst), 100 - 90 + 30, "at another rate");
    }
}
