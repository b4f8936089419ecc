//! From what was asked for to the constants of a program.

use std::fs;

use shaper_common::{
    abi::{Keying, Settings, feature},
    packet::Link,
    table::WAYS,
    verdict::Action,
};

use crate::{
    model::{Config, Limits},
    state::Record,
};

/// Ways for each flow that is asked for. When the table holds that many flows it is half full, and fewer than one flow
/// in a hundred finds its eight ways taken.
const SPARE: u64 = 2;

/// Sets of the flow table of `config`, a power of two.
pub(super) fn sets(config: &Config) -> u32 {
    let sets = (u64::from(config.max_flows) * SPARE).div_ceil(WAYS as u64).next_power_of_two();
    u32::try_from(sets).unwrap_or(1 << 31)
}

/// The constants of the program that `record` describes.
pub(super) fn settings(record: &Record, epoch_base: u64) -> Settings {
    let config = &record.config;
    let accounting = config.accounting();
    let shards = u32::from(record.room.shard_mask) + 1;
    Settings {
        epoch_base,
        secret: record.secret,
        set_mask: sets(config) - 1,
        overhead: accounting.overhead,
        mpu: accounting.mpu,
        account: accounting.account as u8,
        per: config.per.kind as u8,
        prefix_v4: config.per.prefix.v4,
        prefix_v6: config.per.prefix.v6,
        link: if record.ethernet { Link::Ethernet } else { Link::Bare } as u8,
        overflow: config.overflow as u8,
        features: all_features(record),
        keying: record.keying as u8,
        shard_mask: record.room.shard_mask,
        shared_counters: u8::from(shards < processors()),
        reserved: 0,
    }
}

/// One more than the highest number a processor may have: numbers may have gaps.
pub(super) fn processors() -> u32 {
    let list = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    // Where that cannot be told, they share one counter.
    highest(&list).and_then(|number| number.checked_add(1)).unwrap_or(u32::MAX >> 1)
}

/// The highest number in a list like `0-3,8-11`.
fn highest(list: &str) -> Option<u32> {
    list.trim().split([',', '-']).map(|number| number.parse().ok()).max()?
}

/// Whether two programs find a packet's bucket under the same tag.
pub(super) fn same_keys(a: &Settings, b: &Settings) -> bool {
    let by_rule = |of: &Settings| of.keying == Keying::ByRule as u8;
    let keys = |of: &Settings| (of.per, of.prefix_v4, of.prefix_v6, of.link, of.secret.k0, of.secret.k1);
    // With keys by rule that of the attachment is in the limits of the rules that have none of their own.
    by_rule(a) == by_rule(b) && keys(a) == keys(b)
}

/// What of the data plane the attachment needs. Where there are rules that is everything but the device's total, so that
/// rules come and go without another program; each rule's own limits say what a packet of it pays for.
fn all_features(record: &Record) -> u8 {
    let of_default = default_features(&record.config.limits);
    match record.keying {
        Keying::Single => of_default,
        _ => ANY_RULE | of_default & feature::DEVICE_TOTAL,
    }
}

/// What rules may need.
const ANY_RULE: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;

/// What the limits of the default rule need: its total is the device's.
pub(super) fn default_features(limits: &Limits) -> u8 {
    features(limits, feature::DEVICE_TOTAL)
}

/// What the limits of a rule need.
pub(super) fn rule_features(limits: &Limits) -> u8 {
    features(limits, feature::TOTAL)
}

/// What of the data plane `limits` need; what is not named here no packet pays for.
fn features(limits: &Limits, of_total: u8) -> u8 {
    let Limits { rate, peak, soft: _, pps, total, exceed, violate, block } = limits;
    [
        (rate.is_some(), feature::RATE),
        (peak.is_some(), feature::PEAK),
        (pps.is_some(), feature::PPS),
        (total.is_some(), of_total),
        ([exceed, violate].iter().any(|action| **action != Action::Drop), feature::ACTION),
        (*block, feature::BLOCK),
    ]
    .into_iter()
    .filter(|(needed, _)| *needed)
    .fold(0, |features, (_, bit)| features | bit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example;

    #[test]
    fn numbers_of_processors_may_have_gaps() {
        for (list, expected) in [("0\n", Some(0)), ("0-3\n", Some(3)), ("0-3,8-11", Some(11)), ("", None)] {
            assert_eq!(highest(list), expected, "{list}");
        }
    }

    #[test]
    fn each_limit_has_its_feature() {
        let all = example::limits();
        assert_eq!(
            default_features(&all),
            feature::RATE | feature::PEAK | feature::PPS | feature::DEVICE_TOTAL | feature::ACTION
        );
        assert_eq!(default_features(&example::config().limits), feature::RATE);
        assert_eq!(default_features(&Limits { pps: all.pps, ..Limits::default() }), feature::PPS);
        let violate = Limits { violate: Action::Pass, exceed: Action::Drop, ..all };
        assert_eq!(default_features(&violate) & feature::ACTION, feature::ACTION);
        assert_eq!(default_features(&Limits::BLOCK), feature::BLOCK);
    }
}
