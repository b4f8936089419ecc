//! From what was asked for to the clocks and bursts of the data plane.

use shaper_common::{abi::RuleLimits, bucket::Limit, clock::Clock};

use super::settings::{default_features, rule_features};
use crate::{
    model::{ByteLimit, Limits, PacketLimit, Per},
    state::{Record, Slot},
};

/// A clock counts bytes of this many bits, or packets that are given to it as so many.
const BITS: u64 = 8;

/// The limits of all rules that `record` asks for, by slot, to be put in force `now`, where `old` is.
///
/// What becomes of a slot whose rule goes away: nothing. Flows are on its clocks until they come again.
pub(super) fn next_all(old: &[RuleLimits], record: &Record, now: u64) -> Vec<RuleLimits> {
    let config = &record.config;
    let highest = record.slots.iter().map(|slot| slot.slot as usize).max().unwrap_or(0);
    let mut all = old.to_vec();
    all.resize(old.len().max(highest + 1), RuleLimits::default());
    // The default's total is the device's.
    let old = RuleLimits { total: all[0].device_total, ..all[0] };
    let of_default = next(&old, &config.limits, now);
    all[0] = RuleLimits {
        total: all[0].total,
        device_total: of_default.total,
        features: default_features(&config.limits),
        ..keyed(of_default, config.per)
    };
    for (rule, Slot { slot, id }) in config.rules.iter().zip(&record.slots) {
        let here = &mut all[*slot as usize];
        let limits = if here.id == *id { next(here, &rule.limits, now) } else { begin(here, &rule.limits, now) };
        let features = rule_features(&rule.limits);
        *here = RuleLimits { id: *id, features, ..keyed(limits, rule.per.unwrap_or(config.per)) };
    }
    all
}

const fn keyed(limits: RuleLimits, per: Per) -> RuleLimits {
    RuleLimits { per: per.kind as u8, prefix_v4: per.prefix.v4, prefix_v6: per.prefix.v6, ..limits }
}

/// What to put in force `now`, in nanoseconds, where `old` is: every bucket keeps its level.
///
/// A limit that is taken away keeps its clock, for the flow table keeps its words. When it comes back it goes on from
/// there: a new clock would take the words for debts, or for none.
fn next(old: &RuleLimits, limits: &Limits, now: u64) -> RuleLimits {
    change(old, limits, |old, bits, burst| follow(old, bits, burst, now))
}

/// What to put in force where another rule was: the clocks go on, so that flows that were on them keep their debts until
/// they move to the clocks of their new rules.
fn begin(old: &RuleLimits, limits: &Limits, now: u64) -> RuleLimits {
    change(old, limits, |old, bits, burst| {
        if *old == Limit::default() {
            Limit::new(bits, burst, now)
        } else {
            Limit { clock: old.clock.at_rate(bits, now), burst }
        }
    })
}

fn change(old: &RuleLimits, limits: &Limits, limit: impl Fn(&Limit, u64, u64) -> Limit) -> RuleLimits {
    let bytes = |limit: ByteLimit| (limit.rate.bits_per_second(), limit.burst.get());
    let packets = |limit: PacketLimit| (limit.rate.packets_per_second() * BITS, limit.burst.get());
    let wanted = |old: &Limit, wanted: Option<(u64, u64)>| wanted.map_or(*old, |(bits, burst)| limit(old, bits, burst));
    RuleLimits {
        rate: wanted(&old.rate, limits.rate.map(bytes)),
        peak: wanted(&old.peak, limits.peak.map(bytes)),
        pps: wanted(&old.pps, limits.pps.map(packets)),
        total: wanted(&old.total, limits.total.map(bytes)),
        exceed: limits.exceed.into(),
        violate: limits.violate.into(),
        ..*old
    }
}

/// The limit of this many bits per second and this burst, that goes on from the old one.
fn follow(old: &Limit, bits: u64, burst: u64, now: u64) -> Limit {
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
        assert_eq!(limits.total, Limit::new(1_000_000_000, 31_250_000, 5));
        assert_eq!(limits.exceed, example::limits().exceed.into());
        assert_eq!(limits.pps.clock.at(6 + SECOND) - limits.pps.clock.at(5), 10_000, "packets");
    }

    #[test]
    fn limits_that_were_never_asked_for_are_zero() {
        let pps = Limits { pps: example::limits().pps, ..Limits::default() };
        let limits = next(&RuleLimits::default(), &pps, 5);
        assert_eq!((limits.rate, limits.peak, limits.total), Default::default());
        assert_eq!(next(&RuleLimits::default(), &Limits::BLOCK, 5), RuleLimits::default());
    }

    #[test]
    fn what_stays_is_not_touched() {
        let first = next(&RuleLimits::default(), &example::limits(), 5);
        assert_eq!(next(&first, &example::limits(), SECOND), first);
        let more = Limits { total: example::byte_limit(8_000_000, 1 << 20, true), ..example::limits() };
        let second = next(&first, &more, SECOND);
        assert_eq!(RuleLimits { total: first.total, ..second }, first);
        assert_eq!(second.total, first.total.changed(8_000_000, 1 << 20, SECOND));
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
