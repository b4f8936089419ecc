//! Which bpffs the pins are in.
//!
//! `/sys/fs/bpf` if that is one, else a bpffs of our own. What counts is the mount namespace of process 1, or of the
//! outermost ancestor: `ip netns exec` and services with a private view of /sys have another one, and a pin made there
//! would vanish with it.

use std::{
    fs::{self, DirBuilder},
    iter,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
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
    pub(crate) fn find() -> Result<Option<Self>> {
        let view = View::persistent();
        let [system, own] = [SYSTEM, OWN].map(|path| view.path(path));
        let run = view.path(RUN);
        let (is_system, is_own) = (is_bpffs(&system)?, is_bpffs(&own)?);
        // Our own goes first as long as it is in use: somebody may have mounted the system's since.
        let bpffs = if is_own && (!is_system || in_use(&own)?) { own } else { system };
        Ok((is_own || is_system).then_some(Self { bpffs, run }))
    }

    /// Fails if what is not here may be in a mount namespace that this process may not look at, so that nobody can say
    /// that there is nothing.
    pub(crate) fn must_be_seen() -> Result<()> {
        // Who may load programs pins them in this mount namespace, and so looks for them here.
        if mount_namespace("1").is_some() || may_load_programs() {
            return Ok(());
        }
        Err(Error::Privilege { what: "look at the mount namespace of process 1, where the pins are".into() })
    }

    /// Makes the directory for the lock.
    pub(crate) fn make_run_directory() -> Result<PathBuf> {
        let run = View::persistent().path(RUN);
        make_directory(&run)?;
        Ok(run)
    }

    /// The bpffs that is there, else one that is mounted now, with what to tell the user.
    pub(crate) fn find_or_mount() -> Result<(Self, Option<String>)> {
        if let Some(root) = Self::find()? {
            return Ok((root, None));
        }
        let view = View::persistent();
        if matches!(view, View::Other(_)) {
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
        let notice =
            format!("{SYSTEM} is not a bpffs: mounted one at {OWN} (`mount -t bpf bpf {SYSTEM}` gives the usual)");
        Ok((Self { bpffs, run: view.path(RUN) }, Some(notice)))
    }
}

/// From where paths are looked up.
enum View {
    /// This process's root.
    Own,
    /// The root of this process, whose mount namespace is another one and outlives ours.
    Other(u32),
}

impl View {
    fn persistent() -> Self {
        let own = mount_namespace("self");
        let outermost = iter::once(1).chain(ancestors().into_iter().rev()).find_map(|pid| {
            let namespace = mount_namespace(&pid.to_string())?;
            Some((pid, namespace))
        });
        match outermost {
            Some((pid, namespace)) if own.is_some_and(|own| own != namespace) => Self::Other(pid),
            // The same, or none is for us to see.
            _ => Self::Own,
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        match self {
            Self::Own => path.into(),
            Self::Other(pid) => {
                Path::new("/proc").join(pid.to_string()).join("root").join(path.trim_start_matches('/'))
            }
        }
    }
}

fn mount_namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(Path::new("/proc").join(process).join("ns/mnt")).ok()
}

/// The parent, its parent and so on, as far as this process's PID namespace goes. They stand in where process 1 may not
/// be looked at, as under some security modules.
fn ancestors() -> Vec<u32> {
    let parent = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
        (parent != 0).then_some(parent)
    };
    iter::successors(parent(&std::process::id()), parent).collect()
}

fn is_bpffs(path: &Path) -> Result<bool> {
    match statfs(path) {
        Ok(info) => Ok(info.filesystem_type() == BPF_FS_MAGIC),
        Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(false),
        Err(errno) => Err(Error::io(format!("look at {}", path.display()))(errno.into())),
    }
}

fn in_use(bpffs: &Path) -> Result<bool> {
    let top = bpffs.join(TOP);
    top.try_exists().map_err(Error::io(format!("look at {}", top.display())))
}

/// Whether this process has `CAP_BPF` or `CAP_SYS_ADMIN`.
fn may_load_programs() -> bool {
    const ANY_OF: u64 = 1 << 39 | 1 << 21;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & ANY_OF != 0)
}

fn make_directory(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io(format!("create {}", path.display())))
}
