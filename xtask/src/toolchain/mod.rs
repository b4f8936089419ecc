//! What compiles the data plane: a compiler with a BPF `core`, bpf-linker, and llvm-objcopy, each of a known version.
//!
//! Two compilers will do: Debian's, which comes with a compiled `core` for BPF and is what CI and the committed object
//! use, or else rustup's nightly, which compiles one from its rust-src.

pub(crate) mod debian;
pub(crate) mod linker;
mod nightly;
mod record;
mod rustc;

use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, anyhow};

pub(crate) use record::Record;
use rustc::Rustc;

use crate::workspace;

pub(crate) const TARGET: &str = "bpfel-unknown-none";

/// v3 has the atomic compare-and-swap (Linux 5.12). Packets and the eBPF stack allow misaligned loads. Debug information
/// becomes BTF and the line numbers that the verifier and bpftool show.
const RUSTFLAGS: [&str; 4] =
    ["-Cdebuginfo=2", "-Clink-arg=--btf", "-Ctarget-cpu=v3", "-Ctarget-feature=+allows-misaligned-mem-access"];

/// A compiler that can target BPF.
struct Compiler {
    kind: Kind,
    rustc: Rustc,
    objcopy: PathBuf,
    /// Where the sources of `core` are, or would be if they were installed.
    rust_sources: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Debian,
    Nightly,
}

pub(crate) struct Toolchain {
    compiler: Compiler,
    linker: PathBuf,
}

impl Toolchain {
    /// The toolchain that this machine has.
    pub(crate) fn find() -> Result<Self> {
        let compiler = match debian::find() {
            Ok(compiler) => compiler,
            Err(debian) => nightly::find().map_err(|nightly| {
                anyhow!("nothing here compiles for BPF; run `cargo xtask setup` as root ({debian}; {nightly})")
            })?,
        };
        // With Debian's compiler, Debian's LLVM is known to be there, and setup builds a linker for it; with rustup's,
        // the linker is whichever the user has built.
        let llvm = (compiler.kind == Kind::Debian).then_some(compiler.rustc.llvm_major);
        let linker = linker::find(llvm).ok_or_else(|| match llvm {
            Some(llvm) => anyhow!("no bpf-linker {} for LLVM {llvm}; run `cargo xtask setup`", linker::VERSION),
            None => anyhow!("no bpf-linker {0}; `cargo install bpf-linker --version {0}` with an LLVM not older than {1}, that of nightly", linker::VERSION, compiler.rustc.llvm_major),
        })?;
        Ok(Self { compiler, linker })
    }

    /// The versions that the object's bytes depend on.
    pub(crate) fn record(&self) -> Result<Record> {
        let Rustc { version, host, .. } = &self.compiler.rustc;
        Ok(Record::new([
            ("rustc", version.clone()),
            ("host", host.clone()),
            ("bpf-linker", linker::VERSION.to_owned()),
            ("llvm", rustc::llvm_version(&self.compiler.objcopy)?),
            ("core-sources", if self.copies_core_sources() { "present" } else { "absent" }.to_owned()),
        ]))
    }

    /// LLVM copies the source line of each instruction into BTF when it finds the file. [`Self::remap`] keeps it from
    /// finding any, except those of a `core` that was compiled elsewhere: their names are fixed.
    fn copies_core_sources(&self) -> bool {
        self.compiler.kind == Kind::Debian && self.compiler.rust_sources.exists()
    }

    /// Cargo for the data plane: the same flags and profile for every verb, so that they share what was compiled.
    pub(crate) fn cargo(&self, verb: &str) -> Command {
        let mut cargo = match self.compiler.kind {
            Kind::Debian => debian::cargo(verb),
            Kind::Nightly => nightly::cargo(verb),
        };
        self.configure(&mut cargo);
        cargo
    }

    /// Clippy for the data plane.
    pub(crate) fn clippy(&self) -> Command {
        let mut clippy = match self.compiler.kind {
            Kind::Debian => debian::clippy(),
            Kind::Nightly => nightly::cargo("clippy"),
        };
        self.configure(&mut clippy);
        clippy
    }

    /// A copy of the object without its DWARF, which is ten times the rest and of no use to the kernel.
    pub(crate) fn strip(&self, from: &Path, to: &Path) -> Result<()> {
        crate::process::run(Command::new(&self.compiler.objcopy).arg("--strip-debug").args([from, to]))
    }

    fn configure(&self, cargo: &mut Command) {
        cargo
            .current_dir(workspace::root())
            .args(["--locked", "--release", "--package", "shaper-ebpf", "--target", TARGET, "--target-dir"])
            .arg(target_dir());
        isolate(cargo);
        cargo
            .env("CARGO_ENCODED_RUSTFLAGS", self.rustflags())
            .env("CARGO_TARGET_BPFEL_UNKNOWN_NONE_LINKER", &self.linker)
            // Incremental compilation cuts the code differently.
            .env("CARGO_INCREMENTAL", "0");
    }

    /// Flags as cargo takes them when a path may contain a space.
    fn rustflags(&self) -> String {
        let mut flags = RUSTFLAGS.map(str::to_owned).to_vec();
        flags.extend(self.remap().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())));
        flags.join("\x1f")
    }

    /// Directories whose names are in the debug information, and what stands there instead, so that the object does not
    /// depend on where it was compiled. The replacements must not exist, or LLVM would copy source lines from them.
    fn remap(&self) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let root = workspace::root().to_path_buf();
        let canonical = root.canonicalize().unwrap_or_else(|_| root.clone());
        // One directory for each registry or mirror, named after a hash of its address.
        let registries = cargo_home().into_iter().flat_map(|home| fs::read_dir(home.join("registry/src")));
        [(root, "/shaper/source"), (canonical, "/shaper/source"), (self.compiler.rust_sources.clone(), "/shaper/rust")]
            .into_iter()
            .chain(registries.flatten().flatten().map(|entry| (entry.path(), "/shaper/registry")))
    }
}

/// Everything that is compiled for BPF.
pub(crate) fn target_dir() -> PathBuf {
    workspace::target().join("bpf")
}

/// Takes away what the user's environment says about other builds and would change this one.
fn isolate(cargo: &mut Command) {
    const PREFIXES: [&str; 4] = ["CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_BUILD_RUST", "CARGO_UNSTABLE_"];
    const NAMES: [&str; 8] = [
        "RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTUP_TOOLCHAIN",
        "CARGO_BUILD_TARGET",
        "CARGO_ENCODED_RUSTDOCFLAGS",
        "CARGO_BUILD_INCREMENTAL",
        // Names the libraries of the compiler that runs this program.
        "LD_LIBRARY_PATH",
    ];
    let unwanted = |name: &OsStr| {
        name.to_str()
            .is_some_and(|name| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
    };
    for (name, _) in env::vars_os().filter(|(name, _)| unwanted(name)) {
        cargo.env_remove(name);
    }
}

fn cargo_home() -> Option<PathBuf> {
    match env::var_os("CARGO_HOME") {
        Some(home) => std::path::absolute(home).ok(),
        None => env::home_dir().map(|home| home.join(".cargo")),
    }
}
