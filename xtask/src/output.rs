//! What a person reads: lines on stdout, errors on stderr.

use std::{fmt::Display, io::Write as _, process::ExitCode};

/// Prints a line. A reader that has gone away (`| head`) is no reason to stop a build or to leave a demo half undone.
pub(crate) fn say(line: impl Display) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{line}").is_ok() {
        // Flushed, so that the line stands before what a child process prints next.
        out.flush().ok();
    }
}

/// Prints an error with its causes.
pub(crate) fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
