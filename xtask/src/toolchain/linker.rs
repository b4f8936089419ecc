//! bpf-linker, which links LLVM bitcode to one BPF object. It is itself linked to an LLVM, which generates the code.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::debian;
use crate::{process, workspace};

/// Part of what the object's bytes depend on, hence exact.
pub(crate) const VERSION: &str = "0.13.0";

/// The versions of LLVM that this bpf-linker has a feature for.
const LLVMS: std::ops::RangeInclusive<u32> = 21..=23;

/// The checkout's own linker, or one on the PATH, if it has the right version and is linked to Debian's `llvm`, if that
/// is given.
pub(crate) fn find(llvm: Option<u32>) -> Option<PathBuf> {
    let candidates = [Some(root().join("bin/bpf-linker")), process::find("bpf-linker")];
    candidates.into_iter().flatten().find(|path| fits(path, llvm))
}

fn fits(linker: &Path, llvm: Option<u32>) -> bool {
    // A program that does not run, for example because its LLVM was removed, does not fit.
    let version = process::stdout(Command::new(linker).arg("--version").env_remove("LD_LIBRARY_PATH"));
    version.is_ok_and(|text| text.trim() == format!("bpf-linker {VERSION}"))
        && llvm.is_none_or(|llvm| {
            let libraries = process::stdout(Command::new("ldd").arg(linker).env_remove("LD_LIBRARY_PATH"));
            libraries.is_ok_and(|text| loads_debian_s(&text, llvm))
        })
}

/// Whether the output of `ldd` names Debian's LLVM of this major version.
fn loads_debian_s(libraries: &str, llvm: u32) -> bool {
    let name = format!("libLLVM.so.{llvm}.");
    libraries.lines().filter_map(|line| line.trim().split_once(" => ")).any(|(library, path)| {
        library.starts_with(&name) && (path.starts_with("/usr/lib/") || path.starts_with("/lib/"))
    })
}

/// Builds it from crates.io for Debian's LLVM, into a directory of this checkout.
pub(crate) fn install(llvm: u32) -> Result<()> {
    if !LLVMS.contains(&llvm) {
        bail!(
            "the compiler is built with LLVM {llvm}, bpf-linker {VERSION} knows {} to {}",
            LLVMS.start(),
            LLVMS.end()
        );
    }
    let mut install = workspace::cargo("install");
    install
        .args(["bpf-linker", "--version", VERSION, "--locked", "--force", "--no-default-features", "--features"])
        .arg(format!("llvm-{llvm}"))
        .arg("--root")
        .arg(root())
        // Built in a temporary directory that cargo removes.
        .env_remove("CARGO_TARGET_DIR")
        .env("CARGO_NET_RETRY", "5")
        .env("LLVM_PREFIX", debian::prefix(llvm));
    process::run(&mut install)?;
    find(Some(llvm)).map(|_| ()).context("the bpf-linker that was just built does not run or has another version")
}

fn root() -> PathBuf {
    workspace::tools()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_s_llvm_of_the_right_version_will_do() {
        let debian = "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x1)\n\tlibLLVM.so.22.1 => /usr/lib/llvm-22/lib/libLLVM.so.22.1 (0x2)";
        assert!(loads_debian_s(debian, 22));
        assert!(!loads_debian_s(debian, 21));
        assert!(!loads_debian_s(&debian.replace("/usr/lib/", "/opt/"), 22));
        assert!(!loads_debian_s("\tlibLLVM.so.22.1 => not found", 22));
        assert!(!loads_debian_s("\tstatically linked", 22));
    }
}
