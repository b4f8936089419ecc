//! `cargo xtask bpf`: compiles the data plane to the object that is committed beside shaper-cli and embedded in it, or
//! checks that the committed object is what the sources compile to.

mod check;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

pub(crate) use check::check;

use crate::{
    output::say,
    process,
    toolchain::{self, Record, Toolchain},
    workspace,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Change nothing, fail if the committed object is not what the sources compile to
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.check { check() } else { write() }
}

fn write() -> Result<()> {
    let toolchain = Toolchain::find()?;
    let object = build(&toolchain, "shaper-ebpf")?;
    let committed = Committed::paths();
    // Only what differs is written, so that cargo does not compile the tool again for nothing.
    let changed = update(&committed.object, &fs::read(&object)?)?;
    update(&committed.record, toolchain.record()?.to_string().as_bytes())?;
    let size = fs::metadata(&committed.object)?.len();
    let path = committed.object.strip_prefix(workspace::root()).unwrap_or(&committed.object).display();
    say(format_args!("{path}: {size} bytes, {}", if changed { "written" } else { "unchanged" }));
    Ok(())
}

/// Compiles one binary of the data plane's crate; returns its path, stripped.
pub(crate) fn build(toolchain: &Toolchain, name: &str) -> Result<PathBuf> {
    process::run(toolchain.cargo("build").args(["--bin", name]))?;
    let dir = toolchain::target_dir();
    let stripped = dir.join(name).with_extension("bpf.o");
    toolchain.strip(&dir.join(toolchain::TARGET).join("release").join(name), &stripped)?;
    Ok(stripped)
}

fn update(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(false);
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(true)
}

/// The object in the repository and the record of what made it.
struct Committed {
    object: PathBuf,
    record: PathBuf,
}

impl Committed {
    fn paths() -> Self {
        let dir = workspace::root().join("shaper-cli/bpf");
        Self { object: dir.join("shaper.bpf.o"), record: dir.join("toolchain.txt") }
    }

    fn read(&self) -> Result<(Vec<u8>, Record)> {
        let object = fs::read(&self.object).with_context(|| format!("cannot read {}", self.object.display()))?;
        let record =
            fs::read_to_string(&self.record).with_context(|| format!("cannot read {}", self.record.display()))?;
        let record = Record::parse(&record).with_context(|| format!("{} is damaged", self.record.display()))?;
        Ok((object, record))
    }
}
