//! Which bpffs the pins are in.
//!
//! `/sys/fs/bpf` if that is one, else a bpffs of our own. What counts is the mount namespace of process 1: `ip netns
//! exec` and services with a private view of /sys have another one, and a pin made there would vanish with it.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use nix::{
    mount::MsFlags,
    sys::statfs::{BPF_FS_MAGIC, statfs},
};

use crate::{
    error::{Error, Result},
    state::directory::TOP,
};

/// Where systems mount a bpffs.
const SYSTEM: &str = "/sys/fs/bpf";
/// Files of the tool.
const RUN: &str = "/run/shaper";
/// Where the tool mounts a bpffs if the system has none.
const OWN: &str = "/run/shaper/bpf";

/// A bpffs to pin in, and the directory for the lock.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// Directory of the pins.
    pub(crate) bpffs: PathBuf,
    /// Directory of the lock file and of what people are told to read.
    pub(crate) run: PathBuf,
}

impl Root {
    /// The bpffs that is there, or `None`. Changes nothing.
    pub(crate) fn find() -> Option<Self> {
        let view = View::persistent();
        let [system, own] = [SYSTEM, OWN].map(|path| view.path(path));
        let run = view.path(RUN);
        // Our own goes first as long as it is in use: somebody may have mounted the system's since.
        let bpffs = if is_bpffs(&own) && (!is_bpffs(&system) || in_use(&own)) { own } else { system };
        is_bpffs(&bpffs).then_some(Self { bpffs, run })
    }

    /// Makes the directory for the lock.
    pub(crate) fn make_run_directory() -> Result<PathBuf> {
        let run = View::persistent().path(RUN);
        make_directory(&run)?;
        Ok(run)
    }

    /// The bpffs that is there, else one that is mounted now, with what to tell the user.
    pub(crate) fn find_or_mount() -> Result<(Self, Option<String>)> {
        if let Some(root) = Self::find() {
            return Ok((root, None));
        }
        let view = View::persistent();
        if matches!(view, View::Process1) {
            return Err(Error::State {
                what: format!("{SYSTEM} is private to this mount namespace and pins made in it would vanish"),
                hint: "inside `ip netns exec`, leave it and use `shaper -n NAME`; else mount a bpffs at /sys/fs/bpf outside"
                    .into(),
            });
        }
        let bpffs = PathBuf::from(OWN);
        make_directory(&bpffs)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        nix::mount::mount(Some("bpf"), &bpffs, Some("bpf"), flags, Some("mode=0700")).map_err(|errno| {
            Error::io(format!("mount a bpffs at {OWN} (needs CAP_SYS_ADMIN, or one at {SYSTEM})"))(errno.into())
        })?;
        let notice = format!("{SYSTEM} is not a bpffs: mounted one at {OWN} (`mount -t bpf bpf {SYSTEM}` gives the usual)");
        Ok((Self { bpffs, run: view.path(RUN) }, Some(notice)))
    }
}

/// From where paths are looked up.
enum View {
    /// This process's root.
    Own,
    /// The root of process 1, whose mount namespace is another one.
    Process1,
}

impl View {
    fn persistent() -> Self {
        let namespace = |process: &str| fs::read_link(Path::new("/proc").join(process).join("ns/mnt")).ok();
        match (namespace("self"), namespace("1")) {
            (Some(own), Some(first)) if own != first => Self::Process1,
            // The same, or not for us to see: then there is no way into the other one either.
            _ => Self::Own,
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        match self {
            Self::Own => path.into(),
            Self::Process1 => Path::new("/proc/1/root").join(path.trim_start_matches('/')),
        }
    }
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|info| info.filesystem_type() == BPF_FS_MAGIC)
}

fn in_use(bpffs: &Path) -> bool {
    bpffs.join(TOP).exists()
}

fn make_directory(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io(format!("create {}", path.display())))
}
