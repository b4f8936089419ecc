//! `cargo xtask test`: the test rings in the order of the privileges that they need, and one line of counts at the end.

mod libtest;

use std::{
    ffi::{OsStr, OsString},
    io::{BufRead as _, BufReader},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;

pub(crate) use libtest::Counts;

use crate::{
    output::{self, say},
    process, setup,
    workspace::{self, build_shaper},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run one ring; without it, set up and run all
    ring: Option<Ring>,
    /// What to pass to the tests, for example a part of a test's name
    #[arg(last = true)]
    filter: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ring {
    /// Needs no privileges; the unit tests of all crates too
    Host,
    /// Runs the data plane in the kernel, on packets made up (as root)
    Kernel,
    /// Real traffic through network namespaces (as root)
    Netns,
}

impl Ring {
    pub(crate) const ALL: [Self; 3] = [Self::Host, Self::Kernel, Self::Netns];

    /// The name of its test target in the crate `tests`.
    const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Kernel => "kernel",
            Self::Netns => "netns",
        }
    }
}

/// What became of some rings.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// Why it is not a success.
    pub(crate) complaints: Vec<String>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match run_selected(args) {
        Ok(outcome) => report(&outcome),
        Err(error) => output::fail(&error),
    }
}

/// Ends with the counts, whatever they are.
pub(crate) fn report(outcome: &Outcome) -> ExitCode {
    for complaint in &outcome.complaints {
        eprintln!("error: {complaint}");
    }
    say(outcome.counts);
    if outcome.complaints.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_selected(args: &Args) -> Result<Outcome> {
    if let Some(ring) = args.ring {
        return run_rings(&[ring], &args.filter, &[]);
    }
    setup::run()?;
    run_rings(&Ring::ALL, &args.filter, &[])
}

/// Runs rings one after the other, all of them even if tests fail, with `env` for the tests.
pub(crate) fn run_rings(rings: &[Ring], filter: &[OsString], env: &[(&str, &OsStr)]) -> Result<Outcome> {
    if let Some(ring) = rings.iter().find(|ring| **ring != Ring::Host)
        && !process::is_root()
    {
        bail!("the {} tests load programs into the kernel: run them as root", ring.name());
    }
    let shaper = build_shaper(false)?;
    let mut outcome = Outcome::default();
    for ring in rings {
        let mut commands = vec![];
        if *ring == Ring::Host {
            let mut units = workspace::cargo("test");
            units.args(workspace::HOST_CRATES).args(["--exclude", "tests"]);
            commands.push(("unit tests".to_owned(), units));
        }
        let mut test = workspace::cargo("test");
        test.args(["--package", "tests", "--test", ring.name()]);
        commands.push((format!("{} tests", ring.name()), test));

        for (what, mut command) in commands {
            command.arg("--no-fail-fast").env("SHAPER_BIN", &shaper).envs(env.iter().copied()).arg("--").args(filter);
            if *ring != Ring::Host {
                // They share one kernel: interface numbers, pins, and the two cores that timing depends on.
                command.arg("--test-threads=1");
            }
            run_one(&what, &mut command, filter.is_empty(), &mut outcome)?;
        }
    }
    if outcome.counts.ran() == 0 && outcome.complaints.is_empty() {
        outcome.complaints.push("no test has that name".to_owned());
    }
    Ok(outcome)
}

fn run_one(what: &str, command: &mut Command, all: bool, outcome: &mut Outcome) -> Result<()> {
    let (mut counts, success) = count(command)?;
    if counts.failed > 0 {
        outcome.complaints.push(format!("{what}: {} failed", counts.failed));
    } else if !success {
        // Does not compile, or died before it could report: nothing that a zero should stand for.
        counts.failed = 1;
        outcome.complaints.push(format!("{what}: ended without a result"));
    } else if all && counts.ran() == 0 {
        outcome.complaints.push(format!("{what}: none was run"));
    }
    outcome.counts += counts;
    Ok(())
}

/// Passes on what the tests print while it adds up their results.
fn count(command: &mut Command) -> Result<(Counts, bool)> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| process::line(command))?;
    let mut counts = Counts::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("cannot read what the tests print")?;
            let line = String::from_utf8_lossy(&line);
            say(&line);
            counts += Counts::of_result_line(&line).unwrap_or_default();
        }
    }
    Ok((counts, child.wait()?.success()))
}
