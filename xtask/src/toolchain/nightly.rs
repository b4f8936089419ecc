//! rustup's nightly with rust-src, for machines that are not Debian: `core` is compiled with the data plane.

use std::{path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};

use super::{Compiler, Kind, Rustc};
use crate::process;

pub(super) fn find() -> Result<Compiler> {
    let rustc = Rustc::ask(&mut rustup("rustc")).context("rustup has no nightly")?;
    if !rustc.is_new_enough() {
        bail!(
            "nightly is {}, older than the {} that this workspace needs",
            rustc.release,
            env!("CARGO_PKG_RUST_VERSION")
        );
    }
    let sysroot = process::stdout(rustup("rustc").args(["--print", "sysroot"]))?;
    let rustlib = PathBuf::from(sysroot.trim_end()).join("lib/rustlib");
    let rust_sources = rustlib.join("src/rust");
    if !rust_sources.join("library/core").is_dir() {
        bail!("nightly has no rust-src; `rustup component add rust-src llvm-tools --toolchain nightly`");
    }
    let objcopy = rustlib.join(&rustc.host).join("bin/llvm-objcopy");
    let objcopy = if objcopy.exists() { Some(objcopy) } else { process::find("llvm-objcopy") };
    let objcopy = objcopy.context("there is no llvm-objcopy; `rustup component add llvm-tools --toolchain nightly`")?;
    Ok(Compiler { kind: Kind::Nightly, rustc, objcopy, rust_sources })
}

pub(super) fn cargo(verb: &str) -> Command {
    let mut cargo = rustup("cargo");
    cargo.args([verb, "-Zbuild-std=core"]);
    cargo
}

fn rustup(program: &str) -> Command {
    let mut rustup = Command::new("rustup");
    // Looking for a toolchain must not download one.
    rustup.args(["run", "nightly", program]).env("RUSTUP_AUTO_INSTALL", "0").env_remove("LD_LIBRARY_PATH");
    rustup
}
