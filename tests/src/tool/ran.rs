//! What a run of the tool said.

use std::{
    fmt,
    process::{Command, Output},
};

/// A finished run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The command line.
    pub line: String,
    /// Exit code, or none if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Ran {
    pub(super) fn new(line: String, output: &Output) -> Self {
        Self {
            line,
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Both streams.
    #[must_use]
    pub fn text(&self) -> String {
        [self.stdout.as_str(), self.stderr.as_str()].concat()
    }

    /// Checks that an error is a line of cause and a line of what to do, and that the tool did not panic.
    ///
    /// # Panics
    ///
    /// If it is not, or it did.
    pub fn complains(&self) {
        let lines = self.stderr.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(lines >= 2, "an error needs a line of cause and a line of what to do\n{self}");
        assert!(lines <= 8, "an error that nobody reads to its end\n{self}");
        assert!(!self.stderr.contains("panicked"), "{self}");
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.line)?;
        for text in [&self.stdout, &self.stderr] {
            for line in text.lines() {
                writeln!(f, "  {line}")?;
            }
        }
        match self.code {
            Some(0) => Ok(()),
            Some(code) => writeln!(f, "  (exit code {code})"),
            None => writeln!(f, "  (ended by a signal)"),
        }
    }
}

/// The command line, for messages.
pub(super) fn line_of(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let args = command.get_args().map(|arg| format!(" {}", arg.to_string_lossy()));
    std::iter::once(program.into_owned()).chain(args).collect()
}
