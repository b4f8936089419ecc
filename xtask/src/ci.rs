//! `cargo xtask ci`: what has to be right before a change is accepted. The steps are the other verbs, so that each can
//! be run alone to see what is wrong.

use std::{process::ExitCode, time::Instant};

use anyhow::{Result, bail};

use crate::{
    bpf, doc, fmt, lint,
    output::{self, say},
    setup, test,
};

pub(crate) fn run() -> ExitCode {
    match steps() {
        Ok(tests) => test::report(&tests),
        Err(error) => output::fail(&error),
    }
}

fn steps() -> Result<test::Outcome> {
    step("setup", setup::run)?;
    step("fmt --check", || fmt::run(&fmt::Args { check: true }))?;
    step("lint", lint::run)?;
    step("doc", doc::run)?;
    let tests = step("test", tests)?;
    step("bpf --check", bpf::check)?;
    Ok(tests)
}

fn tests() -> Result<test::Outcome> {
    let outcome = test::run_rings(&test::Ring::ALL, &[], &[])?;
    if !outcome.complaints.is_empty() {
        bail!("{} ({})", outcome.complaints.join(", "), outcome.counts);
    }
    say(outcome.counts);
    Ok(outcome)
}

fn step<T>(name: &str, action: impl FnOnce() -> Result<T>) -> Result<T> {
    say(format_args!("==> cargo xtask {name}"));
    let start = Instant::now();
    let result = action();
    let seconds = start.elapsed().as_secs_f64();
    match &result {
        Ok(_) => say(format_args!("<== {name}: done in {seconds:.1} s")),
        Err(_) => say(format_args!("<== {name}: FAILED after {seconds:.1} s")),
    }
    result.map_err(|error| error.context(format!("CI failed at `cargo xtask {name}`")))
}
