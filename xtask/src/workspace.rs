//! Where things are in this checkout.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

/// The directory of the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    // `cargo run` tells where the sources are now; the path that was compiled in may be from before a move.
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let xtask =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf)
    });
    &ROOT
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> &'static Path {
    static TARGET: LazyLock<PathBuf> = LazyLock::new(|| {
        env::var_os("CARGO_TARGET_DIR")
            .and_then(|dir| std::path::absolute(dir).ok())
            .unwrap_or_else(|| root().join("target"))
    });
    &TARGET
}

/// Programs that `cargo xtask setup` built for this checkout alone.
pub(crate) fn tools() -> PathBuf {
    target().join("tools")
}

/// The cargo that runs this program, in the workspace, for crates that run on this machine.
pub(crate) fn cargo(verb: &str) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg(verb).current_dir(root());
    // Set from here on, so that the binaries are where `target` says, whatever the user's configuration says.
    cargo.env("CARGO_TARGET_DIR", target()).env_remove("CARGO_BUILD_TARGET");
    cargo
}

/// All crates but the one that only compiles for BPF.
pub(crate) const HOST_CRATES: [&str; 3] = ["--workspace", "--exclude", "shaper-ebpf"];

/// Builds the tool and says where it is.
pub(crate) fn build_shaper(release: bool) -> anyhow::Result<PathBuf> {
    let mut build = cargo("build");
    build.args(["--package", "shaper-cli"]);
    if release {
        build.arg("--release");
    }
    crate::process::run(&mut build)?;
    Ok(target().join(if release { "release" } else { "debug" }).join("shaper"))
}
