//! Ctrl-C as an error like others, so that what was made is undone on the way out.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use nix::sys::signal::{SigSet, Signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From here on, signals that ask this process to end make [`check`] fail. Call it before other threads exist.
pub(super) fn catch() -> Result<()> {
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    // Blocked in every thread that starts from here, and in child processes too: a second Ctrl-C does not end the
    // command that cleans up.
    signals.thread_block()?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        while signals.wait().is_ok() {
            INTERRUPTED.store(true, Ordering::Relaxed);
        }
    })?;
    Ok(())
}

pub(super) fn check() -> Result<()> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        bail!("interrupted");
    }
    Ok(())
}

pub(super) fn sleep(time: Duration) -> Result<()> {
    const STEP: Duration = Duration::from_millis(20);
    let end = Instant::now() + time;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        check()?;
        thread::sleep(left.min(STEP));
    }
    check()
}
