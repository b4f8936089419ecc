//! `cargo xtask lint`: clippy with the workspace's lints, warnings as errors; the data plane for the BPF target itself,
//! because most of it does not exist on any other.

use anyhow::Result;

use crate::{process, toolchain::Toolchain, workspace};

const DENY: [&str; 3] = ["--", "--deny", "warnings"];

pub(crate) fn run() -> Result<()> {
    let toolchain = Toolchain::find()?;
    let host = process::run(workspace::cargo("clippy").args(workspace::HOST_CRATES).arg("--all-targets").args(DENY));
    // The two clippys differ in version: what one says is no substitute for what the other does.
    let bpf = process::run(toolchain.clippy().args(DENY));
    host.and(bpf)
}
