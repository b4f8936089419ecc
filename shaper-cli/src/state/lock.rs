//! One command at a time changes the pinned state; any number may look at it meanwhile, but not during a change.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::error::{Error, Result};

/// Longest wait for another command. The longest change, a new flow table for a million flows, takes about a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Held until it is dropped, or the process dies.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// For looking. `None` if nobody has ever changed anything.
    pub(crate) fn shared(run: &Path) -> Result<Option<Self>> {
        let path = path(run);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(format!("open {}", path.display()))(error)),
        };
        wait(&path, || file.try_lock_shared())?;
        Ok(Some(Self { _file: file }))
    }

    /// For changing.
    pub(crate) fn exclusive(run: &Path) -> Result<Self> {
        let path = path(run);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(Error::io(format!("open {}", path.display())))?;
        wait(&path, || file.try_lock())?;
        Ok(Self { _file: file })
    }
}

fn path(run: &Path) -> PathBuf {
    run.join("lock")
}

fn wait(path: &Path, mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Busy {
                    what: "another shaper command is at work".into(),
                    hint: format!("try again; `fuser {}` names its process", path.display()),
                });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(format!("lock {}", path.display()))(error)),
        }
    }
}
