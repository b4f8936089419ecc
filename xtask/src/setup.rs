//! `cargo xtask setup`: installs the toolchain for the data plane and the programs that the tests run. Does nothing, in
//! a fraction of a second, on a machine that has them.

use std::fs;

use anyhow::{Result, bail};

use crate::{
    apt::Apt,
    output::say,
    process,
    toolchain::{Toolchain, debian, linker},
};

/// What tests and demo run, and the package that brings it.
const PROGRAMS: [(&str, &str); 7] = [
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("capsh", "libcap2-bin"),
    ("sysctl", "procps"),
];

pub(crate) fn run() -> Result<()> {
    if !is_complete() {
        require_debian()?;
        install()?;
    }
    say(format_args!("Ready: {}", Toolchain::find()?.record()?.summary()));
    Ok(())
}

fn is_complete() -> bool {
    missing_programs().is_empty() && Toolchain::find().is_ok()
}

fn missing_programs() -> Vec<String> {
    let missing = PROGRAMS.iter().filter(|(program, _)| process::find(program).is_none());
    let mut packages: Vec<_> = missing.map(|(_, package)| (*package).to_owned()).collect();
    packages.dedup();
    packages
}

fn require_debian() -> Result<()> {
    if is_debian() {
        return Ok(());
    }
    let programs: Vec<_> = PROGRAMS.iter().map(|(program, _)| *program).collect();
    let state = match Toolchain::find() {
        Ok(_) => "it is there".to_owned(),
        Err(error) => error.to_string(),
    };
    bail!(
        "setup knows how to install packages on Debian 12 or newer. Elsewhere install the programs {}, and for the data \
         plane: `rustup toolchain install nightly --component rust-src,llvm-tools` and bpf-linker {} ({state})",
        programs.join(", "),
        linker::VERSION
    );
}

fn is_debian() -> bool {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    release.lines().any(|line| line.trim() == "ID=debian")
}

fn install() -> Result<()> {
    let mut apt = Apt::default();
    // In rounds: what the compiler is tells which LLVM to install.
    loop {
        let mut missing = missing_programs();
        if Toolchain::find().is_err() {
            missing.extend(debian::missing_packages()?);
        }
        if missing.is_empty() {
            break;
        }
        if !process::is_root() {
            bail!("setup has to install {}: run it as root", missing.join(" "));
        }
        apt.install(&missing)?;
    }
    if Toolchain::find().is_err() {
        let llvm = debian::llvm_major()?;
        say(format_args!("Building bpf-linker {} for LLVM {llvm}", linker::VERSION));
        linker::install(llvm)?;
    }
    Ok(())
}
