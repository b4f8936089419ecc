//! What is asked of the shipped program.

use shaper_common::{
    abi::{RuleLimits, feature},
    bucket::Limit,
    verdict::Action,
};

/// A set of limits.
pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) features: u8,
    /// Whether the packet exceeds the rate, so that the action is taken.
    exceeds: bool,
    exceed: Action,
}

/// High enough that no packet is dropped at any speed.
const BITS_PER_SECOND: u64 = 1_000_000_000_000;
const BURST: u64 = 1 << 40;

impl Case {
    const fn within(title: &'static str, features: u8) -> Self {
        Self { title, features, exceeds: false, exceed: Action::Drop }
    }

    const fn above(title: &'static str, exceed: Action) -> Self {
        let action = if matches!(exceed, Action::Drop) { 0 } else { feature::ACTION };
        Self { title, features: feature::RATE | action, exceeds: true, exceed }
    }

    /// Limits as of `now`.
    pub(super) fn limits(&self, now: u64) -> RuleLimits {
        let never = Limit::new(BITS_PER_SECOND, BURST, now);
        // Holds one packet of the longest and does not refill.
        let always = Limit::new(8, 1500, now);
        RuleLimits {
            rate: if self.exceeds { always } else { never },
            peak: never,
            pps: never,
            device_total: never,
            exceed: self.exceed.into(),
            violate: Action::Drop.into(),
            ..RuleLimits::default()
        }
    }
}

/// What is measured.
pub(super) const CASES: [Case; 9] = [
    Case::within("rate", feature::RATE),
    Case::within("rate, total", feature::RATE | feature::DEVICE_TOTAL),
    Case::within("rate, pps", feature::RATE | feature::PPS),
    Case::within("rate, peak", feature::RATE | feature::PEAK),
    Case::within("rate, peak, pps, total", feature::RATE | feature::PEAK | feature::PPS | feature::DEVICE_TOTAL),
    Case::above("above the rate: drop", Action::Drop),
    Case::above("above the rate: pass", Action::Pass),
    Case::above("above the rate: dscp it has", Action::Dscp(8)),
    Case::within("block", feature::BLOCK),
];
