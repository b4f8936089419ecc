//! Is the committed object what the sources compile to? With the toolchain that made it, the bytes say so. With another,
//! bytes prove nothing, and the tests that run in the kernel decide about the object that was just compiled.

use std::fs;

use anyhow::{Context as _, Result, bail};

use super::{Committed, build};
use crate::{
    output::say,
    test::{self, Ring},
    toolchain::Toolchain,
};

const FIX: &str = "run `cargo xtask bpf` and commit shaper-cli/bpf";

pub(crate) fn check() -> Result<()> {
    let toolchain = Toolchain::find()?;
    let (committed, theirs) = Committed::paths().read().context(FIX)?;
    let object = build(&toolchain, "shaper-ebpf")?;
    let ours = toolchain.record()?;
    if ours != theirs {
        say("The committed object was made by another toolchain, so its bytes cannot be compared:");
        say(format_args!("  committed by  {}", theirs.summary()));
        say(format_args!("  found here    {}", ours.summary()));
        say("Running the kernel tests on the object that was compiled here instead.");
        let tests = test::run_rings(&[Ring::Kernel], &[], &[("SHAPER_BPF_OBJECT", object.as_os_str())])?;
        if !tests.complaints.is_empty() {
            bail!("the object compiled here does not pass the kernel tests: {}", tests.complaints.join(", "));
        }
        say(format_args!("The object compiled here passes the kernel tests ({}).", tests.counts));
        return Ok(());
    }
    if fs::read(&object)? != committed {
        bail!(
            "the committed BPF object is not what shaper-ebpf compiles to; {FIX} (compare with {})",
            object.display()
        );
    }
    say(format_args!("The committed object is what the sources compile to: {} bytes, equal.", committed.len()));
    Ok(())
}
