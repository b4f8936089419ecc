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
    rule::{Boundary, End, Index, Link, NO_LINK, Table, rank},
    siphash::SipKey,
};

use super::case::Case;

/// What the floor does.
pub(super) const FLOOR_READS: &str = "addresses, ports, one array element and the clock";

/// Sets of the flow table: that of the tool's default for 65,536 flows.
const SETS: u32 = 16_384;
/// Flows whose first packets are measured.
const FLOWS: u16 = 5_000;
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
            ..case.settings()
        });
        let mut object = EbpfLoader::new()
            .override_global(map::SETTINGS, &settings, true)
            .map_max_entries(map::FLOWS, SETS)
            .map_max_entries(map::RULES, 2 * (case.rules + 1))
            .map_max_entries(map::STATES, case.rules + 1)
            .map_max_entries(map::COUNTERS, (case.rules + 1) * Settings::counters_of(0))
            .map_max_entries(map::BOUNDARIES, case.rules + 2)
            .map_max_entries(map::LINKS, case.rules + 1)
            .load(&fs::read(object)?)
            .context("cannot load the object (root?)")?;
        let limits = case.limits(monotonic()?);
        let mut rules: Array<&mut MapData, Plain<RuleLimits>> = array(&mut object, map::RULES)?;
        for rule in 0..=case.rules {
            let limits = RuleLimits { id: rule, ..limits };
            // The device's total is that of the default rule.
            rules.set(2 * rule, Plain(limits), 0)?;
        }
        lay_out(&mut object, case.rules)?;
        Self::load(case.title, program::TC_INGRESS, object)
    }

    fn load(title: &'static str, name: &'static str, mut object: Ebpf) -> Result<Self> {
        let program = object.program_mut(name).with_context(|| format!("the object has no program {name}"))?;
        let classifier: &mut SchedClassifier = program.try_into()?;
        classifier.load()?;
        let verified = classifier.info()?.verified_instruction_count().unwrap_or_default();
        Ok(Self { title, verified, name, object })
    }

    /// Nanoseconds for the first packet of a flow, and for the next one of the same: medians over many flows.
    pub(super) fn first_and_next(&self) -> Result<[u32; 2]> {
        let program = self.object.program(self.name).context("the program is loaded")?;
        let classifier: &SchedClassifier = program.try_into()?;
        let mut times = [const { Vec::new() }; 2];
        for flow in 0..FLOWS {
            let mut frame = frame(64);
            // The source port.
            frame[34..36].copy_from_slice(&flow.to_be_bytes());
            for times in &mut times {
                let mut options = TestRunOptions::new();
                options.data_in = Some(&frame);
                times.push(u32::try_from(classifier.test_run(options)?.duration.as_nanos())?);
            }
        }
        Ok(times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        }))
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

/// Rules for neighbouring /24s of source addresses, the middle one of which is that of [`frame`].
fn lay_out(object: &mut Ebpf, rules: u32) -> Result<()> {
    let first = (u32::from_be_bytes(SOURCE) >> 8) - rules / 2;
    let start = |prefix: u32| [u64::from(prefix) << 40, 0];
    let mut boundaries: Array<&mut MapData, Plain<Boundary>> = array(object, map::BOUNDARIES)?;
    boundaries.set(0, Plain(Boundary::default()), 0)?;
    for rule in 1..=rules {
        boundaries.set(rule, Plain(Boundary { start: start(first + rule - 1), link: rule.into() }), 0)?;
    }
    boundaries.set(rules + 1, Plain(Boundary { start: start(first + rules), link: NO_LINK.into() }), 0)?;
    let mut links: Array<&mut MapData, Plain<Link>> = array(object, map::LINKS)?;
    for rule in 1..=rules {
        links.set(rule, Plain(Link { rank: rank(24, 0, rule), rule, ..Link::default() }), 0)?;
    }
    let mut index = Index::default();
    index.tables[Index::of(End::Src, false)] = Table { first: 0, len: if rules == 0 { 0 } else { rules + 2 } };
    Ok(array::<Index>(object, map::INDEX)?.set(0, Plain(index), 0)?)
}

fn array<'o, T: Copy + 'static>(object: &'o mut Ebpf, name: &str) -> Result<Array<&'o mut MapData, Plain<T>>> {
    Ok(object.map_mut(name).with_context(|| format!("no map {name}"))?.try_into()?)
}

/// Where [`frame`] comes from.
const SOURCE: [u8; 4] = [192, 0, 2, 1];

/// IPv4 and UDP, ECN-capable.
fn frame(len: usize) -> Vec<u8> {
    const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let [high, low] = ((len - ETHERNET.len()) as u16).to_be_bytes();
    let mut frame = ETHERNET.to_vec();
    frame.extend([0x45, 2, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(SOURCE);
    frame.extend([198, 51, 100, 2]);
    frame.extend([0x30, 0x39, 0, 53]);
    frame.resize(len, 0);
    frame
}

fn monotonic() -> Result<u64> {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)?;
    Ok(u64::try_from(time.tv_sec())? * 1_000_000_000 + u64::try_from(time.tv_nsec())?)
}
