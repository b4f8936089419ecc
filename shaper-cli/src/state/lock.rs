//! One command at a time changes the pinned state; any number may look at it meanwhile, but not during a change.
//!
//! There are two locks: that of the state, and a turnstile in front of it. Who wants to change holds the turnstile while
//! waiting for the state, and who wants to look has to pass it first. So those that look, however many they are, do not
//! keep a change waiting for longer than those take that were there before it.

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
        let deadline = Instant::now() + PATIENCE;
        match File::open(turnstile(run)) {
            Ok(turnstile) => wait(&path, deadline, || turnstile.try_lock_shared())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(format!("open {}", turnstile(run).display()))(error)),
        }
        wait(&path, deadline, || file.try_lock_shared())?;
        Ok(Some(Self { _file: file }))
    }

    /// For changing.
    pub(crate) fn exclusive(run: &Path) -> Result<Self> {
        let path = path(run);
        let [turnstile, file] = [&turnstile(run), &path].map(|path| make(path));
        let (turnstile, file) = (turnstile?, file?);
        let deadline = Instant::now() + PATIENCE;
        wait(&path, deadline, || turnstile.try_lock())?;
        wait(&path, deadline, || file.try_lock())?;
        Ok(Self { _file: file })
    }
}

fn make(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(Error::io(format!("open {}", path.display())))
}

fn turnstile(run: &Path) -> PathBuf {
    run.join("turnstile")
}

fn path(run: &Path) -> PathBuf {
    run.join("lock")
}

fn wait(path: &Path, deadline: Instant, mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<()> {
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::{
        env, fs, process,
        sync::atomic::{AtomicBool, Ordering},
    };

    use super::*;

    #[test]
    fn those_that_look_do_not_keep_a_change_waiting() {
        let run = env::temp_dir().join(format!("shaper-lock-{}", process::id()));
        fs::create_dir_all(&run).unwrap();
        drop(Lock::exclusive(&run).unwrap());
        let over = AtomicBool::new(false);
        let changed = thread::scope(|scope| {
            for n in 0..4 {
                let (run, over) = (&run, &over);
                scope.spawn(move || {
                    thread::sleep(Duration::from_millis(n * 10));
                    while !over.load(Ordering::Relaxed) {
                        let lock = Lock::shared(run).unwrap();
                        thread::sleep(Duration::from_millis(50));
                        drop(lock);
                    }
                });
            }
            thread::sleep(Duration::from_millis(100));
            let start = Instant::now();
            let changed = Lock::exclusive(&run).map(|_| start.elapsed());
            over.store(true, Ordering::Relaxed);
            changed
        });
        fs::remove_dir_all(&run).unwrap();
        assert!(changed.unwrap() < PATIENCE / 2);
    }
}
