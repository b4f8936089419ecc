//! Every program loads with every combination of settings, and the verifier's effort stays far from its limit.

use aya::programs::SchedClassifier;
use shaper_common::{abi::Settings, packet::Link};

use crate::{
    object::{self, PROGRAMS},
    rig::settings,
};

/// Instructions that the verifier may walk for one program; the kernel's limit is a million.
const VERIFIER_EFFORT: u32 = 200_000;

/// Per `--per`, `--overflow`, link and account: all that switch code on or off.
fn combinations() -> impl Iterator<Item = Settings> {
    let links = [Link::Ethernet as u8, Link::Bare as u8];
    (0..5).flat_map(move |per| {
        (0..3).flat_map(move |overflow| {
            links.into_iter().flat_map(move |link| {
                (0..2).map(move |account| Settings {
                    per,
                    overflow,
                    link,
                    account,
                    overhead: -4,
                    mpu: 64,
                    ..settings(2)
                })
            })
        })
    })
}

#[test]
fn every_program_loads_with_every_combination_of_settings() {
    for name in PROGRAMS {
        let mut most = 0;
        for settings in combinations() {
            let object = object::load(name, settings);
            let classifier: &SchedClassifier = object.program(name).unwrap().try_into().unwrap();
            most = most.max(classifier.info().unwrap().verified_instruction_count().unwrap());
        }
        println!("{name}: the verifier walks at most {most} instructions");
        assert!(most < VERIFIER_EFFORT, "{name}: the verifier walks {most} instructions");
    }
}
