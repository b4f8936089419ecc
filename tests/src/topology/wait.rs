//! Waiting for a condition, never for a time.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// How long anything that must happen may take on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// Asks `probe` until it answers.
///
/// # Panics
///
/// If it has not within [`DEADLINE`]; `what` says what was waited for.
pub fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = probe() {
            return answer;
        }
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        sleep(Duration::from_millis(1));
    }
}
