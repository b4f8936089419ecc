//! What is asked of the shipped program.

use shaper_common::{
    abi::{Keying, RuleLimits, Settings, feature},
    bucket::Limit,
    key::Per,
    verdict::Action,
};

/// A set of limits.
pub(super) struct Case {
    pub(super) title: &'static str,
    pub(super) features: u8,
    /// Whether the packet exceeds the rate, so that the action is taken.
    exceeds: bool,
    exceed: Action,
    pub(super) keying: Keying,
    /// Rules besides the default, each for a /24; the packet meets one in the middle.
    pub(super) rules: u32,
    per: Per,
}

/// High enough that no packet is dropped at any speed.
const BITS_PER_SECOND: u64 = 1_000_000_000_000;
const BURST: u64 = 1 << 40;

impl Case {
    const fn within(title: &'static str, features: u8) -> Self {
        let (keying, rules, per) = (Keying::Single, 0, Per::Flow);
        Self { title, features, exceeds: false, exceed: Action::Drop, keying, rules, per }
    }

    const fn above(title: &'static str, exceed: Action) -> Self {
        let action = if matches!(exceed, Action::Drop) { 0 } else { feature::ACTION };
        Self { exceeds: true, exceed, ..Self::within(title, feature::RATE | action) }
    }

    const fn per(self, per: Per) -> Self {
        Self { per, ..self }
    }

    const fn among(self, rules: u32, keying: Keying) -> Self {
        Self { rules, keying, ..self }
    }

    /// The program's constants but for its table.
    pub(super) fn settings(&self) -> Settings {
        // As the tool asks for them where there are rules.
        const ANY: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;
        let features = if matches!(self.keying, Keying::Single) { self.features } else { self.features | ANY };
        Settings { features, keying: self.keying as u8, per: self.per as u8, ..Settings::default() }
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
            total: never,
            device_total: never,
            exceed: self.exceed.into(),
            violate: Action::Drop.into(),
            features: self.features & !feature::DEVICE_TOTAL,
            per: self.per as u8,
            prefix_v4: 32,
            prefix_v6: 128,
            ..RuleLimits::default()
        }
    }
}

const RATE: u8 = feature::RATE;

/// What is measured.
pub(super) const CASES: [Case; 18] = [
    Case::within("rate", RATE),
    Case::within("rate, per src", RATE).per(Per::Src),
    Case::within("rate, total", RATE | feature::DEVICE_TOTAL),
    Case::within("rate, pps", RATE | feature::PPS),
    Case::within("rate, peak", RATE | feature::PEAK),
    Case::within("rate, peak, pps, total", RATE | feature::PEAK | feature::PPS | feature::DEVICE_TOTAL),
    Case::above("above the rate: drop", Action::Drop),
    Case::above("above the rate: pass", Action::Pass),
    Case::above("above the rate: dscp it has", Action::Dscp(8)),
    Case::within("block", feature::BLOCK),
    Case::within("1 rule: rate", RATE).among(1, Keying::Cached),
    Case::within("1,000 rules: rate", RATE).among(1_000, Keying::Cached),
    Case::within("100,000 rules: rate", RATE).among(100_000, Keying::Cached),
    Case::within("100,000: rate, rule's total", RATE | feature::TOTAL).among(100_000, Keying::Cached),
    Case::within("1 rule per src", RATE).per(Per::Src).among(1, Keying::ByRule),
    Case::within("1,000 rules per src", RATE).per(Per::Src).among(1_000, Keying::ByRule),
    Case::within("100,000 rules per src", RATE).per(Per::Src).among(100_000, Keying::ByRule),
    Case::within("100,000: per src, both totals", RATE | feature::TOTAL | feature::DEVICE_TOTAL)
        .per(Per::Src)
        .among(100_000, Keying::ByRule),
];
