//! The object under test: the committed one, or the file named by `SHAPER_BPF_OBJECT`.

use std::{env, fs, path::PathBuf};

use aya::{Ebpf, EbpfLoader, VerifierLogLevel, programs::SchedClassifier};
use shaper_common::abi::{Settings, map, program};

use crate::rig::{Plain, Room};

/// Both programs.
pub(crate) const PROGRAMS: [&str; 2] = [program::TC_INGRESS, program::TC_EGRESS];

/// The bytes of the object.
pub(crate) fn bytes() -> Vec<u8> {
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../shaper-cli/bpf/shaper.bpf.o");
    let path = env::var_os("SHAPER_BPF_OBJECT").map_or_else(|| PathBuf::from(committed), PathBuf::from);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The object with its maps created and one of its programs loaded.
pub(crate) fn load(name: &str, settings: Settings, room: Room) -> Ebpf {
    let counters = room.rules * Settings::counters_of(settings.shard_mask);
    let settings = Plain(settings);
    let mut object = EbpfLoader::new()
        .verifier_log_level(VerifierLogLevel::STATS)
        .override_global(map::SETTINGS, &settings, true)
        .map_max_entries(map::FLOWS, settings.0.set_mask + 1)
        .map_max_entries(map::RULES, 2 * room.rules)
        .map_max_entries(map::STATES, room.rules)
        .map_max_entries(map::COUNTERS, counters)
        .map_max_entries(map::BOUNDARIES, 2 * room.boundaries)
        .map_max_entries(map::LINKS, 2 * room.links)
        .load(&bytes())
        .unwrap_or_else(|error| panic!("the object does not load (is this run as root?): {error}"));
    let classifier: &mut SchedClassifier = object.program_mut(name).unwrap().try_into().unwrap();
    classifier.load().unwrap_or_else(|error| panic!("{name} with {:?}: {error}", settings.0));
    object
}
