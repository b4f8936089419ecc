//! A thread for work that changes what a thread is: its namespaces, its CPU.

use std::{panic, thread};

/// Does `work` on a thread of its own, so that the caller's stays as it is.
pub(crate) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match thread::scope(|scope| scope.spawn(work).join()) {
        Ok(result) => result,
        Err(cause) => panic::resume_unwind(cause),
    }
}

/// Does `work` on a thread that may panic without harm, for destructors: none if it did.
pub(crate) fn contained<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| scope.spawn(work).join()).ok()
}
