//! A loaded program that is measured.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, MapData},
    programs::{SchedClassifier, TestRun as _, TestRunOptions},
};
use shaper_common::{
    abi::{RuleLimits, Settings, map, program},
    siphash::SipKey,
};

use super::case::Case;

/// What the floor does.
pub(super) const FLOOR_READS: &str = "addresses, ports, one array element and the clock";

/// Sets of the flow table: that of the tool's default for 65,536 flows.
const SETS: u32 = 16_384;
/// Packets of one turn.
const REPEAT: u32 = 500_000;

pub(super) struct Subject {
    pub(super) title: &'static str,
    /// Instructions that the verifier walked.
    pub(super) verified: u32,
    name: &'static str,
    object: Ebpf,
}

/// A value that consists of its bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Plain<T>(T);

// SAFETY: used for types of `shaper_common::abi` only, which are `repr(C)` integers without padding.
unsafe impl<T: Copy + 'static> Pod for Plain<T> {}

impl Subject {
    /// A program of the object of yardsticks.
    pub(super) fn yardstick(object: &Path, name: &'static str) -> Result<Self> {
        let title = name.strip_prefix("yardstick_").unwrap_or(name);
        Self::load(title, name, EbpfLoader::new().load(&fs::read(object)?)?)
    }

    /// The ingress program with the limits of a case.
    pub(super) fn shaper(object: &Path, case: &Case) -> Result<Self> {
        let settings = Plain(Settings {
            secret: SipKey { k0: 1, k1: 2 },
            set_mask: SETS - 1,
            prefix_v4: 32,
            prefix_v6: 128,
            features: case.features,
            ..Settings::default()
        });
        let mut object = EbpfLoader::new()
            .override_global(map::SETTINGS, &settings, true)
            .map_max_entries(map::FLOWS, SETS)
            .load(&fs::read(object)?)
            .context("cannot load the object (root?)")?;
        let mut rules: Array<&mut MapData, Plain<RuleLimits>> =
            object.map_mut(map::RULES).context("no map of rules")?.try_into()?;
        rules.set(0, Plain(case.limits(monotonic()?)), 0)?;
        Self::load(case.title, program::TC_INGRESS, object)
    }

    fn load(title: &'static str, name: &'static str, mut object: Ebpf) -> Result<Self> {
        let program = object.program_mut(name).with_context(|| format!("the object has no program {name}"))?;
        let classifier: &mut SchedClassifier = program.try_into()?;
        classifier.load()?;
        let verified = classifier.info()?.verified_instruction_count().unwrap_or_default();
        Ok(Self { title, verified, name, object })
    }

    /// Nanoseconds for a packet of `len` bytes.
    pub(super) fn run(&self, len: usize) -> Result<u32> {
        let frame = frame(len);
        let mut options = TestRunOptions::new();
        options.data_in = Some(&frame);
        options.repeat = REPEAT;
        let program = self.object.program(self.name).context("the program is loaded")?;
        let classifier: &SchedClassifier = program.try_into()?;
        Ok(u32::try_from(classifier.test_run(options)?.duration.as_nanos())?)
    }
}

/// IPv4 and UDP, ECN-capable.
fn frame(len: usize) -> Vec<u8> {
    const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let [high, low] = ((len - ETHERNET.len()) as u16).to_be_bytes();
    let mut frame = ETHERNET.to_vec();
    frame.extend([0x45, 2, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    frame.extend([0x30, 0x39, 0, 53]);
    frame.resize(len, 0);
    frame
}

fn monotonic() -> Result<u64> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.tv_sec())? * 1_000_000_000 + u64::try_from(time.tv_nsec())?)
}
