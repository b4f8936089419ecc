//! `cargo xtask VERB`: everything that developers and CI run, one file per verb. `cargo xtask ci` is all of CI.

mod apt;
mod bench;
mod bpf;
mod ci;
mod demo;
mod doc;
mod fmt;
mod lint;
mod output;
mod process;
mod setup;
mod test;
mod toolchain;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Builds, checks, tests and demonstrates shaper")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what the other verbs need (Debian, as root); fast when it is there
    Setup,
    /// Compile the data plane to the object that shaper-cli embeds
    Bpf(bpf::Args),
    /// Format all crates
    Fmt(fmt::Args),
    /// Run clippy on all crates, warnings are errors
    Lint,
    /// Build the documentation, warnings are errors
    Doc,
    /// Run the tests, one ring or all of them
    Test(test::Args),
    /// Measure TCP and UDP through a veth pair without and with a limit (as root)
    Demo,
    /// Measure what a packet costs (as root)
    Bench(bench::Args),
    /// Everything CI checks, in order
    Ci,
}

fn main() -> ExitCode {
    let done = match Cli::parse().verb {
        Verb::Setup => setup::run(),
        Verb::Bpf(args) => bpf::run(&args),
        Verb::Fmt(args) => fmt::run(&args),
        Verb::Lint => lint::run(),
        Verb::Doc => doc::run(),
        Verb::Test(args) => return test::run(&args),
        Verb::Demo => demo::run(),
        Verb::Bench(args) => bench::run(&args),
        Verb::Ci => return ci::run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::fail(&error),
    }
}
