//! `cargo xtask fmt`: rustfmt, on every crate including the data plane.

use anyhow::{Context as _, Result};

use crate::{process, workspace};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing, fail if something would change
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut fmt = workspace::cargo("fmt");
    fmt.arg("--all");
    if !args.check {
        return process::run(&mut fmt);
    }
    fmt.arg("--check");
    process::run(&mut fmt).context("some files are not formatted; `cargo xtask fmt` does it")
}
