//! `cargo xtask bench`: what a packet costs, by BPF_PROG_TEST_RUN, against programs that do nothing and the least.
//!
//! Times of one machine mean little on another: what counts are ratios within one run. The subjects take turns, so that
//! a machine that slows down slows all of them, and medians are shown.

mod subject;

use anyhow::Result;
use subject::{Subject, Subjects};

use crate::{bpf, output::say, toolchain::Toolchain};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Turns of each subject
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let toolchain = Toolchain::find()?;
    let object = bpf::build(&toolchain, "shaper-ebpf")?;
    let yardstick = bpf::build(&toolchain, "yardstick")?;
    let subjects = Subjects::load(&object, &yardstick)?;
    let size = std::fs::metadata(&object)?.len();
    for shipped in subjects.shipped()? {
        say(format_args!(
            "{}: the verifier walks {} instructions; {} bytes of machine code, of an object of {size} bytes",
            shipped.name, shipped.verified, shipped.jited
        ));
    }
    say(format_args!("\nnanoseconds per packet, one UDP flow within its limit, medians of {} turns", args.rounds));
    say("  BYTES  EMPTY  FLOOR  SHAPER   ADDED: FLOOR  SHAPER  RATIO");
    for len in [64, 1500] {
        let [empty, floor, shaper] = subjects.measure(len, args.rounds)?;
        let [floor_adds, shaper_adds] = [floor, shaper].map(|time| time.saturating_sub(empty));
        let ratio = f64::from(shaper_adds) / f64::from(floor_adds.max(1));
        say(format_args!(
            "  {len:>5}  {empty:>5}  {floor:>5}  {shaper:>6}   {floor_adds:>12}  {shaper_adds:>6}  {ratio:>5.2}"
        ));
    }
    say(format_args!("EMPTY returns at once; FLOOR reads {}; SHAPER is the ingress program.", Subject::FLOOR_READS));
    Ok(())
}
