//! Debian's compiler. Its `-web` packages follow upstream Rust in the stable releases (they exist to build Firefox), and
//! contain a compiled `core` for BPF; `RUSTC_BOOTSTRAP` allows the unstable inline assembly that aya-ebpf needs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, bail};

use super::{Compiler, Kind, Rustc};

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const CLIPPY: &str = "/usr/bin/cargo-clippy";

/// What must be there, and the package that brings it.
const FILES: [(&str, &str); 4] = [
    (RUSTC, "rustc-web"),
    (CARGO, "cargo-web"),
    (CLIPPY, "rust-web-clippy"),
    ("/usr/lib/rustlib/bpfel-unknown-none/lib", "libstd-rust-web-dev-bpf"),
];

/// Packages to install before [`find`] succeeds. Which LLVM is needed is known only when the compiler is there.
pub(crate) fn missing_packages() -> Result<Vec<String>> {
    let missing: Vec<_> = FILES.iter().filter(|(file, _)| !Path::new(file).exists()).collect();
    if !missing.is_empty() {
        return Ok(missing.iter().map(|(_, package)| (*package).to_owned()).collect());
    }
    let rustc = rustc()?;
    if !rustc.is_new_enough() {
        return Ok(FILES.iter().map(|(_, package)| (*package).to_owned()).collect());
    }
    let complete = ["llvm-config", "llvm-objcopy"].iter().all(|tool| llvm(&rustc).join("bin").join(tool).exists());
    Ok(if complete { vec![] } else { vec![format!("llvm-{}-dev", rustc.llvm_major)] })
}

pub(super) fn find() -> Result<Compiler> {
    let missing = missing_packages()?;
    if !missing.is_empty() {
        bail!("of Debian's packages, {} are missing or too old", missing.join(" "));
    }
    let rustc = rustc()?;
    let objcopy = llvm(&rustc).join("bin/llvm-objcopy");
    let rust_sources = format!("/usr/src/rustc-{}", rustc.release).into();
    Ok(Compiler { kind: Kind::Debian, rustc, objcopy, rust_sources })
}

/// The LLVM of Debian's compiler, and what bpf-linker is linked to.
pub(crate) fn llvm_major() -> Result<u32> {
    rustc().map(|rustc| rustc.llvm_major)
}

fn rustc() -> Result<Rustc> {
    // The loader's path is that of the compiler that runs this program.
    Rustc::ask(Command::new(RUSTC).env_remove("LD_LIBRARY_PATH"))
}

fn llvm(rustc: &Rustc) -> PathBuf {
    prefix(rustc.llvm_major)
}

/// Where Debian installs one major version of LLVM.
pub(crate) fn prefix(llvm_major: u32) -> PathBuf {
    format!("/usr/lib/llvm-{llvm_major}").into()
}

/// Debian's own cargo, because crate hashes, and so symbol names, may differ from one version of cargo to another.
pub(super) fn cargo(verb: &str) -> Command {
    let mut cargo = Command::new(CARGO);
    cargo.arg(verb);
    with_compiler(&mut cargo);
    cargo
}

pub(super) fn clippy() -> Command {
    let mut clippy = Command::new(CLIPPY);
    clippy.arg("clippy").env("CARGO", CARGO);
    with_compiler(&mut clippy);
    clippy
}

fn with_compiler(cargo: &mut Command) {
    cargo.env("RUSTC", RUSTC).env("RUSTDOC", "/usr/bin/rustdoc").env("RUSTC_BOOTSTRAP", "1");
}
