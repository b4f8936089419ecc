//! Every program loads with every combination of settings, and the verifier's effort stays far from its limit.

use aya::programs::SchedClassifier;
use shaper_common::abi::{Keying, Settings, feature};

use crate::{
    object::{self, PROGRAMS},
    rig::{Room, settings},
};

/// Instructions that the verifier may walk for one program; the kernel's limit is a million.
const VERIFIER_EFFORT: u32 = 700_000;

/// All that switch code on or off: with a rate alone every combination of `--per`, `--overflow`, link and account, with
/// each other set of limits every value of these.
fn combinations() -> Vec<Settings> {
    let base = Settings { overhead: -4, mpu: 64, ..settings(2) };
    let mut all = Vec::new();
    for (per, overflow) in (0..5).flat_map(|per| (0..3).map(move |overflow| (per, overflow))) {
        for (link, account) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            all.push(Settings { per, overflow, link, account, ..base });
        }
    }
    for (features, keying) in FEATURES.map(|features| (features, Keying::Single)).into_iter().chain(WITH_RULES) {
        all.extend((0..5).map(|i| Settings {
            features,
            keying: keying as u8,
            shared_counters: i % 2,
            per: i,
            overflow: i % 3,
            link: i % 2,
            account: u8::from(i > 2),
            ..base
        }));
    }
    all
}

/// Where there are rules the tool asks for all that a rule may need, with and without a total of the device.
const WITH_RULES: [(u8, Keying); 4] = [
    (OF_RULES, Keying::Cached),
    (OF_RULES | feature::DEVICE_TOTAL, Keying::Cached),
    (OF_RULES, Keying::ByRule),
    (OF_RULES | feature::DEVICE_TOTAL, Keying::ByRule),
];
const OF_RULES: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;

/// Every limit alone, all together, and actions.
const FEATURES: [u8; 9] = [
    0,
    feature::RATE,
    feature::PPS,
    feature::TOTAL,
    feature::DEVICE_TOTAL,
    feature::RATE | feature::PEAK,
    feature::RATE | feature::ACTION,
    feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::DEVICE_TOTAL | feature::ACTION,
    feature::BLOCK,
];

#[test]
fn every_program_loads_with_every_combination_of_settings() {
    for name in PROGRAMS {
        let mut most = 0;
        for settings in combinations() {
            let object = object::load(name, settings, Room { rules: 8, boundaries: 8, links: 8 });
            let classifier: &SchedClassifier = object.program(name).unwrap().try_into().unwrap();
            most = most.max(classifier.info().unwrap().verified_instruction_count().unwrap());
        }
        println!("{name}: the verifier walks at most {most} instructions");
        assert!(most < VERIFIER_EFFORT, "{name}: the verifier walks {most} instructions");
    }
}
