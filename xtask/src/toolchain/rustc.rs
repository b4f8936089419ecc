//! What a compiler says about itself.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, anyhow};

use crate::process;

pub(super) struct Rustc {
    /// `1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)`: version, commit, and who built it.
    pub(super) version: String,
    /// `1.96.0`
    pub(super) release: String,
    /// The machine it runs on; cargo makes it part of the crates' hashes.
    pub(super) host: String,
    pub(super) llvm_major: u32,
}

impl Rustc {
    /// Asks `rustc`, a command that `-vV` is added to.
    pub(super) fn ask(rustc: &mut Command) -> Result<Self> {
        Self::parse(&process::stdout(rustc.arg("-vV"))?).context("cannot read what `rustc -vV` says")
    }

    fn parse(text: &str) -> Result<Self> {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.map(|value| value.trim().to_owned()).ok_or_else(|| anyhow!("no `{name}`"))
        };
        let llvm = field("LLVM version:")?;
        let major = llvm.split('.').next().and_then(|major| major.parse().ok());
        Ok(Self {
            version: field("rustc ")?,
            release: field("release:")?,
            host: field("host:")?,
            llvm_major: major.ok_or_else(|| anyhow!("`{llvm}` is no LLVM version"))?,
        })
    }

    /// Whether the workspace's crates allow this compiler.
    pub(super) fn is_new_enough(&self) -> bool {
        minor(&self.release) >= minor(env!("CARGO_PKG_RUST_VERSION"))
    }
}

/// The 96 of 1.96.0; Rust has no other major version.
fn minor(release: &str) -> Option<u32> {
    release.split('.').nth(1)?.parse().ok()
}

/// The version that an LLVM tool reports, `22.1.8`.
pub(super) fn llvm_version(tool: &Path) -> Result<String> {
    let text = process::stdout(Command::new(tool).arg("--version"))?;
    let version =
        text.lines().find_map(|line| line.split_once("LLVM version ").map(|(_, version)| version.trim().to_owned()));
    version.with_context(|| format!("`{} --version` names no LLVM version", tool.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)
binary: rustc
commit-hash: ac68faa20c58cbccd01ee7208bf3b6e93a7d7f96
commit-date: 2026-05-25
host: x86_64-unknown-linux-gnu
release: 1.96.0
LLVM version: 22.1.8
";

    #[test]
    fn debian_s_compiler_is_read() {
        let rustc = Rustc::parse(DEBIAN).expect("all fields are there");
        assert_eq!(rustc.version, "1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)");
        assert_eq!((rustc.host.as_str(), rustc.llvm_major), ("x86_64-unknown-linux-gnu", 22));
        assert!(rustc.is_new_enough());
    }

    #[test]
    fn an_old_compiler_is_told_from_a_new_one() {
        let old = Rustc::parse(&DEBIAN.replace("1.96.0", "1.85.0")).expect("all fields are there");
        assert!(!old.is_new_enough());
        let nightly = Rustc::parse(&DEBIAN.replace("1.96.0", "1.100.0-nightly")).expect("all fields are there");
        assert!(nightly.is_new_enough());
    }

    #[test]
    fn a_compiler_without_llvm_is_refused() {
        assert!(Rustc::parse(&DEBIAN.replace("LLVM version", "GCC version")).is_err());
    }
}
