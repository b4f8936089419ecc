//! The tool under test: the `shaper` binary, run as its users run it.

mod attached;
mod json;

pub use attached::Attached;
pub use json::{Attachment, Flow, Reasons, RuleStats};

use std::{
    env, fmt,
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::OnceLock,
};

use serde::de::DeserializeOwned;

use crate::topology::Host;

/// The tool, as told with `-n` to work in one network namespace.
#[derive(Clone, Debug)]
pub struct Tool {
    netns: Option<String>,
}

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

/// Path of the binary: `SHAPER_BIN`, or the one beside the directory of the test's own binary.
///
/// # Panics
///
/// If there is none.
pub fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let path = env::var_os("SHAPER_BIN").map_or_else(
            || {
                let own = env::current_exe().expect("path of the test");
                own.ancestors().nth(2).expect("the target directory").join("shaper")
            },
            PathBuf::from,
        );
        assert!(path.is_file(), "no tool to test at {} (SHAPER_BIN): run `cargo xtask test`", path.display());
        path
    })
}

impl Tool {
    /// Works in the namespace of `host`, by name.
    #[must_use]
    pub fn on(host: &Host) -> Self {
        Self { netns: Some(host.ns.name().to_owned()) }
    }

    /// Works where it is started.
    #[must_use]
    pub const fn here() -> Self {
        Self { netns: None }
    }

    /// The command with its first arguments, ready for more.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(binary());
        if let Some(netns) = &self.netns {
            command.args(["-n", netns]);
        }
        command.stdin(Stdio::null());
        command
    }

    /// Runs it.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command().args(args))
    }

    /// Runs a command that must succeed.
    ///
    /// # Panics
    ///
    /// If it does not; the message shows the whole state.
    pub fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert!(ran.code == Some(0), "{ran}{}", self.state());
        ran
    }

    /// Runs a command that must fail with this exit code and an error as people should see it: a line of cause, a line
    /// of what to do.
    ///
    /// # Panics
    ///
    /// If it does not; the message shows the whole state.
    pub fn fails(&self, code: i32, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert!(ran.code == Some(code), "exit code {code} was expected\n{ran}{}", self.state());
        ran.complains();
        ran
    }

    /// Puts a limit on the device of `host`; dropping the guard takes it off again.
    ///
    /// # Panics
    ///
    /// If it fails; the message shows the whole state.
    pub fn attach<'a>(&self, host: &'a Host, options: &str) -> Attached<'a> {
        let args: Vec<&str> = ["attach", &host.dev].into_iter().chain(options.split_whitespace()).collect();
        let ran = self.ok(&args);
        Attached::new(self.clone(), host, ran)
    }

    /// What `status` shows, of one device or of all.
    ///
    /// # Panics
    ///
    /// If it fails, or says what DESIGN does not.
    #[must_use]
    pub fn status(&self, dev: Option<&str>) -> Vec<Attachment> {
        self.json::<json::Status>("status", dev).attachments
    }

    /// What `stats` shows.
    ///
    /// # Panics
    ///
    /// As [`Tool::status`].
    #[must_use]
    pub fn stats(&self, dev: Option<&str>) -> Vec<RuleStats> {
        self.json::<json::Stats>("stats", dev).stats
    }

    /// What `flows` shows.
    ///
    /// # Panics
    ///
    /// As [`Tool::status`].
    #[must_use]
    pub fn flows(&self, dev: Option<&str>) -> Vec<Flow> {
        self.json::<json::Flows>("flows", dev).flows
    }

    /// Everything the tool can say about its namespace, for failure messages.
    #[must_use]
    pub fn state(&self) -> String {
        let shown = ["status", "stats", "flows"].map(|command| self.run(&[command]).to_string());
        format!("state:\n{}", shown.concat())
    }

    fn json<T: DeserializeOwned>(&self, command: &str, dev: Option<&str>) -> T {
        let args: Vec<&str> = ["-j", command].into_iter().chain(dev).collect();
        let ran = self.run(&args);
        assert!(ran.code == Some(0), "{ran}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("not the promised JSON: {error}\n{ran}"))
    }
}

impl Ran {
    /// Runs a prepared command to its end.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn of(command: &mut Command) -> Self {
        let line = line_of(command);
        match command.output() {
            Ok(output) => Self::new(line, &output),
            Err(error) => panic!("cannot start {line}: {error}"),
        }
    }

    fn new(line: String, output: &Output) -> Self {
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

fn line_of(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let args = command.get_args().map(|arg| format!(" {}", arg.to_string_lossy()));
    std::iter::once(program.into_owned()).chain(args).collect()
}
