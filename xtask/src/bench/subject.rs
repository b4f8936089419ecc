//! The programs that are measured, and how.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf, EbpfLoader, Pod,
    maps::{Array, MapData},
    programs::{SchedClassifier, TestRun as _, TestRunOptions},
};
use shaper_common::{
    abi::{RuleLimits, Settings, map, program},
    bucket::Limit,
    siphash::SipKey,
};

/// Sets of the flow table: that of the tool's default for 65,536 flows.
const SETS: u32 = 16_384;
/// Packets of one turn.
const REPEAT: u32 = 1_000_000;
/// High enough that no packet is dropped at any speed.
const BITS_PER_SECOND: u64 = 1_000_000_000_000;
const BURST: u64 = 1 << 40;

/// A program in one of the two objects.
pub(super) struct Subject {
    object: fn(&Subjects) -> &Ebpf,
    name: &'static str,
}

impl Subject {
    /// What the floor does.
    pub(super) const FLOOR_READS: &str = "addresses, ports, one array element and the clock";

    const ALL: [Self; 3] = [
        Self { object: |subjects| &subjects.yardstick, name: "yardstick_empty" },
        Self { object: |subjects| &subjects.yardstick, name: "yardstick_floor" },
        Self { object: |subjects| &subjects.shaper, name: program::TC_INGRESS },
    ];
}

/// What the kernel says of a loaded program.
pub(super) struct Shipped {
    pub(super) name: &'static str,
    pub(super) verified: u32,
    pub(super) jited: u32,
}

/// The loaded objects.
pub(super) struct Subjects {
    shaper: Ebpf,
    yardstick: Ebpf,
}

/// A value that consists of its bytes.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Plain<T>(T);

// SAFETY: used for types of `shaper_common::abi` only, which are `repr(C)` integers without padding.
unsafe impl<T: Copy + 'static> Pod for Plain<T> {}

impl Subjects {
    pub(super) fn load(shaper: &Path, yardstick: &Path) -> Result<Self> {
        let settings = Plain(Settings {
            secret: SipKey { k0: 1, k1: 2 },
            set_mask: SETS - 1,
            prefix_v4: 32,
            prefix_v6: 128,
            ..Settings::default()
        });
        let mut shaper = EbpfLoader::new()
            .override_global(map::SETTINGS, &settings, true)
            .map_max_entries(map::FLOWS, SETS)
            .load(&fs::read(shaper)?)
            .context("cannot load the object (root?)")?;
        let mut rules: Array<&mut MapData, Plain<RuleLimits>> =
            shaper.map_mut(map::RULES).context("no map of rules")?.try_into()?;
        rules.set(0, Plain(RuleLimits { rate: Limit::new(BITS_PER_SECOND, BURST, monotonic()?) }), 0)?;
        let mut yardstick = EbpfLoader::new().load(&fs::read(yardstick)?)?;
        for object in [&mut shaper, &mut yardstick] {
            for (_, program) in object.programs_mut() {
                let classifier: &mut SchedClassifier = program.try_into()?;
                classifier.load()?;
            }
        }
        Ok(Self { shaper, yardstick })
    }

    pub(super) fn shipped(&self) -> Result<Vec<Shipped>> {
        [program::TC_INGRESS, program::TC_EGRESS]
            .into_iter()
            .map(|name| {
                let info = classifier(&self.shaper, name)?.info()?;
                Ok(Shipped {
                    name,
                    verified: info.verified_instruction_count().unwrap_or_default(),
                    jited: info.size_jitted(),
                })
            })
            .collect()
    }

    /// Medians in nanoseconds for frames of `len` bytes.
    pub(super) fn measure(&self, len: usize, rounds: u32) -> Result<[u32; 3]> {
        let frame = frame(len);
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..rounds {
            for (subject, times) in Subject::ALL.iter().zip(&mut times) {
                let mut options = TestRunOptions::new();
                options.data_in = Some(&frame);
                options.repeat = REPEAT;
                let result = classifier((subject.object)(self), subject.name)?.test_run(options)?;
                times.push(u32::try_from(result.duration.as_nanos()).unwrap_or(u32::MAX));
            }
        }
        Ok(times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        }))
    }
}

fn classifier<'a>(object: &'a Ebpf, name: &str) -> Result<&'a SchedClassifier> {
    Ok(object.program(name).with_context(|| format!("the object has no program {name}"))?.try_into()?)
}

/// IPv4 and UDP.
fn frame(len: usize) -> Vec<u8> {
    const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let [high, low] = ((len - ETHERNET.len()) as u16).to_be_bytes();
    let mut frame = ETHERNET.to_vec();
    frame.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 198, 51, 100, 2]);
    frame.extend([0x30, 0x39, 0, 53]);
    frame.resize(len, 0);
    frame
}

fn monotonic() -> Result<u64> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.tv_sec())? * 1_000_000_000 + u64::try_from(time.tv_nsec())?)
}
