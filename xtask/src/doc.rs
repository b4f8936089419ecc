//! `cargo xtask doc`: rustdoc with broken links as errors. Private items too: in this project they are what a reader
//! of the documentation wants to understand.

use anyhow::Result;

use crate::{process, toolchain::Toolchain, workspace};

const ARGS: [&str; 2] = ["--no-deps", "--document-private-items"];
/// With private items documented, links to them work.
const FLAGS: &str = "-Dwarnings -Arustdoc::private-intra-doc-links";

pub(crate) fn run() -> Result<()> {
    let toolchain = Toolchain::find()?;
    process::run(workspace::cargo("doc").args(workspace::HOST_CRATES).args(ARGS).env("RUSTDOCFLAGS", FLAGS))?;
    process::run(toolchain.cargo("doc").args(ARGS).env("RUSTDOCFLAGS", FLAGS))
}
