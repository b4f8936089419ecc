//! A private view of the file system for one test.
//!
//! The test's thread gets a mount namespace of its own with an empty /run, an empty /run/netns and an empty bpffs. The
//! programs it starts see the same. When the thread ends the kernel takes all of it away, pins included.

use std::{
    fs,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, unshare},
};

/// Where the bpffs is mounted.
pub const BPFFS: &str = "/sys/fs/bpf";

/// Network tests measure time, so they run one after another even if the test runner starts them side by side.
static ALONE: Mutex<()> = Mutex::new(());

/// The guard of a test's private mounts; they last as long as the thread.
#[derive(Debug)]
pub struct Sandbox {
    _alone: MutexGuard<'static, ()>,
}

impl Sandbox {
    /// Moves the calling thread into a sandbox.
    ///
    /// # Panics
    ///
    /// If the caller is not root, or the kernel has no bpffs.
    #[must_use]
    pub fn enter() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        unshare(CloneFlags::CLONE_NEWNS).expect("network tests must run as root (CAP_SYS_ADMIN)");
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).expect("private mounts");
        mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=755")).expect("tmpfs on /run");
        fs::create_dir("/run/netns").expect("/run/netns");
        mount(Some("bpf"), BPFFS, Some("bpf"), MsFlags::empty(), Some("mode=1777")).expect("bpffs on /sys/fs/bpf");
        Self { _alone: alone }
    }

    /// Takes the bpffs away, as on a machine where nobody mounted one.
    ///
    /// # Panics
    ///
    /// If there is a bpffs below it: the test needs a machine where it can be without.
    pub fn without_bpffs(&self) {
        while is_bpffs(Path::new(BPFFS)) {
            umount2(BPFFS, MntFlags::MNT_DETACH).expect("umount bpffs");
        }
    }

    /// All files under the places where pins may lie, for comparison before and after.
    #[must_use]
    pub fn pins(&self) -> Vec<String> {
        let mut found = Vec::new();
        for root in [BPFFS, "/run/shaper"] {
            collect(Path::new(root), &mut found);
        }
        found.sort();
        found
    }
}

fn is_bpffs(path: &Path) -> bool {
    let kind = nix::sys::statfs::statfs(path).expect("statfs").filesystem_type();
    kind == nix::sys::statfs::BPF_FS_MAGIC
}

/// Adds every file (not directory) under `dir`.
fn collect(dir: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            found.push(path.display().to_string());
        }
    }
}
