//! `cargo xtask bench`: what a packet costs, by BPF_PROG_TEST_RUN, against programs that do nothing and the least.
//!
//! Times of one machine mean little on another: what counts are ratios within one run. The subjects take turns, so that
//! a machine that slows down slows all of them, and medians are shown.

mod case;
mod subject;

use anyhow::Result;
use case::CASES;
use subject::{FLOOR_READS, Subject};

use crate::{bpf, output::say, toolchain::Toolchain};

/// Of which the first packet of a flow is measured too.
const FIRST: [&str; 6] =
    ["empty", "rate", "1 rule: rate", "1,000 rules: rate", "100,000 rules: rate", "100,000 rules per src"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Turns of each subject
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let toolchain = Toolchain::find()?;
    let object = bpf::build(&toolchain, "shaper-ebpf")?;
    let yardstick = bpf::build(&toolchain, "yardstick")?;
    let mut subjects = vec![Subject::yardstick(&yardstick, "yardstick_empty")?];
    subjects.push(Subject::yardstick(&yardstick, "yardstick_floor")?);
    for case in &CASES {
        subjects.push(Subject::shaper(&object, case)?);
    }
    let [short, long] = [64, 1500].map(|len| measure(&subjects, len, args.rounds));
    let (short, long) = (short?, long?);
    say(format_args!(
        "nanoseconds that a program adds to an empty one, one UDP flow, medians of {} turns",
        args.rounds
    ));
    say(format_args!("{:30} {:>6} {:>6} {:>7} {:>10}", "", "64 B", "1500 B", "x FLOOR", "VERIFIER"));
    for (i, subject) in subjects.iter().enumerate() {
        let adds = |times: &[u32]| i64::from(times[i]) - if i == 0 { 0 } else { i64::from(times[0]) };
        let floor = f64::from(short[1].saturating_sub(short[0]).max(1));
        let ratio = if i == 0 { String::new() } else { format!("{:.2}", adds(&short) as f64 / floor) };
        let [short, long, verified] = [adds(&short), adds(&long), i64::from(subject.verified)];
        say(format_args!("{:30} {short:>6} {long:>6} {ratio:>7} {verified:>10}", subject.title));
    }
    say(format_args!(""));
    say(format_args!("nanoseconds of one run alone, medians over the flows, the clock's reading included"));
    say(format_args!("{:30} {:>6} {:>6}", "", "FIRST", "NEXT"));
    for subject in subjects.iter().filter(|subject| FIRST.contains(&subject.title)) {
        let [first, next] = subject.first_and_next()?;
        say(format_args!("{:30} {first:>6} {next:>6}", subject.title));
    }
    say(format_args!("The empty program's row is its whole time. The floor reads {FLOOR_READS}."));
    say(format_args!("VERIFIER: instructions walked. Object: {} bytes.", std::fs::metadata(&object)?.len()));
    Ok(())
}

/// Medians in nanoseconds for frames of `len` bytes.
fn measure(subjects: &[Subject], len: usize, rounds: u32) -> Result<Vec<u32>> {
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for (subject, times) in subjects.iter().zip(&mut times) {
            times.push(subject.run(len)?);
        }
    }
    Ok(times
        .into_iter()
        .map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        })
        .collect())
}
