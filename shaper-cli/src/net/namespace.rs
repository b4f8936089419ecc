//! The network namespace a command works in. Only the network is entered, so that `/sys/fs/bpf` stays the host's.

use std::{fs, fs::File, io, os::unix::fs::MetadataExt as _, path::Path};

use nix::{errno::Errno, sched::CloneFlags};

use crate::error::{Error, Result};

/// Where `ip netns add` mounts namespaces; the second is how older systems spell the first.
const NAMED: [&str; 2] = ["/run/netns", "/var/run/netns"];

/// A network namespace that this thread is in.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Option<String>,
    inode: u64,
}

impl Namespace {
    /// The one the process was started in.
    ///
    /// # Errors
    ///
    /// If `/proc` does not say which that is.
    pub fn current() -> Result<Self> {
        Ok(Self { name: None, inode: inode()? })
    }

    /// Enters the namespace that `ip netns` calls `name`, for this thread and for what it starts.
    ///
    /// # Errors
    ///
    /// If there is none, or the process may not enter it (that takes `CAP_SYS_ADMIN`).
    pub fn named(name: &str) -> Result<Self> {
        let missing = || Error::NoSuchNamespace { name: name.to_owned() };
        if name.is_empty() || name.contains('/') || name == "." || name == ".." {
            return Err(missing());
        }
        let file = open(name).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename => missing(),
            _ => Error::io(format!("open network namespace `{name}`"))(source),
        })?;
        nix::sched::setns(&file, CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
            // A name whose namespace is not mounted (any more) is an empty file.
            Errno::EINVAL => missing(),
            _ => Error::io(format!("enter network namespace `{name}` (needs CAP_SYS_ADMIN)"))(errno.into()),
        })?;
        Ok(Self { name: Some(name.to_owned()), inode: inode()? })
    }

    /// The name it was given with `-n`.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number the kernel knows it by. It may be given again once the namespace is gone.
    #[must_use]
    pub const fn inode(&self) -> u64 {
        self.inode
    }
}

fn open(name: &str) -> io::Result<File> {
    let [first, second] = NAMED.map(|directory| Path::new(directory).join(name));
    File::open(first).or_else(|_| File::open(second))
}

fn inode() -> Result<u64> {
    const PATH: &str = "/proc/thread-self/ns/net";
    Ok(fs::metadata(PATH).map_err(Error::io(format!("read {PATH}")))?.ino())
}
