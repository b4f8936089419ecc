//! The tool under test: the `shaper` binary, run as its users run it.

mod attached;
mod config;
mod json;
mod ran;
mod step;

pub use attached::Attached;
pub use config::Config;
pub use json::{Attachment, Explanation, Flow, Layer, Reasons, Rule, RuleStats};
pub use ran::Ran;
pub use step::{Call, End, Stepped};

use std::{
    env,
    fs::{self, Permissions},
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use serde::de::DeserializeOwned;

use crate::{topology::Host, traffic::UdpFrame};

/// The tool, as it is started to work on one host's network.
#[derive(Clone, Debug)]
pub struct Tool<'a> {
    host: &'a Host,
    /// True if it is started in the host's network namespace, false if it is told to go there with `-n`.
    inside: bool,
    wrapper: Vec<&'a str>,
    binary: &'a Path,
}

/// Where the configuration is of which a test has one.
const CONFIG: &str = "/run/shaper-test.toml";

/// Path of the binary: `SHAPER_BIN`, or the one beside the directory of the test's own binary.
fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let path = env::var_os("SHAPER_BIN").map_or_else(
            || {
                let own = env::current_exe().expect("path of the test");
                own.ancestors().nth(2).expect("the target directory").join("shaper")
            },
            PathBuf::from,
        );
        match path.canonicalize() {
            Ok(path) => path,
            Err(error) => panic!("no tool to test at {}: {error}; run `cargo xtask test`", path.display()),
        }
    })
}

impl<'a> Tool<'a> {
    /// Started outside, with `-n`.
    #[must_use]
    pub fn on(host: &'a Host) -> Self {
        Self { host, inside: false, wrapper: Vec::new(), binary: binary() }
    }

    /// Started inside the network namespace, without `-n`.
    #[must_use]
    pub fn inside(host: &'a Host) -> Self {
        Self { inside: true, ..Self::on(host) }
    }

    /// A copy that every user may run, wherever the tests were built.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    #[must_use]
    pub fn for_everybody(self) -> Self {
        let copy = Path::new("/run/shaper-for-everybody");
        self.host.ns.sandbox().run(|| {
            fs::copy(self.binary, copy).expect("copy the tool");
            fs::set_permissions(copy, Permissions::from_mode(0o755)).expect("chmod the tool");
        });
        Self { binary: copy, ..self }
    }

    /// Started by another program, such as `setpriv`, that takes a command line as its last arguments.
    #[must_use]
    pub fn through(self, wrapper: &[&'a str]) -> Self {
        Self { wrapper: wrapper.to_vec(), ..self }
    }

    /// Runs it.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let line = ran::line_of(&command);
        match self.there(|| command.output()) {
            Ok(output) => Ran::new(line, &output),
            Err(error) => panic!("cannot start `{line}`: {error}"),
        }
    }

    /// Starts it and does not wait. Nobody reads what it writes.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        self.there(|| command.spawn()).expect("start the tool")
    }

    /// Runs a shell script in which `"$@"` is the tool.
    ///
    /// # Panics
    ///
    /// If the shell cannot be started.
    pub fn in_shell(&self, script: &str) -> Ran {
        let tool = self.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(tool.get_program()).args(tool.get_args());
        let output = self.there(|| shell.output()).expect("start a shell");
        Ran::new(script.to_owned(), &output)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut words = self.wrapper.iter();
        let mut command = words.next().map_or_else(|| Command::new(self.binary), Command::new);
        if !self.wrapper.is_empty() {
            command.args(words).arg(self.binary);
        }
        if !self.inside {
            command.args(["-n", self.host.ns.name()]);
        }
        command.args(args).stdin(Stdio::null());
        command
    }

    fn there<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.host.ns.sandbox().run(|| {
            if self.inside {
                self.host.ns.enter();
            }
            work()
        })
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

    /// Runs a command (`apply -f`, `diff`, ..) on a file with this text.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn on_file(&self, command: &[&str], text: &str) -> Ran {
        self.write(CONFIG, text);
        self.run(&[command, &[CONFIG]].concat())
    }

    /// Writes a file that the tool can see.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub fn write(&self, path: &str, text: &str) {
        self.host.ns.sandbox().run(|| fs::write(path, text)).expect("write a file");
    }

    /// Makes it as a file with this text says, which must succeed.
    ///
    /// # Panics
    ///
    /// If it does not; the message shows the whole state.
    pub fn apply(&self, text: &str) -> Ran {
        let ran = self.on_file(&["apply", "-f"], text);
        assert!(ran.code == Some(0), "{ran}{}", self.state());
        ran
    }

    /// As [`Tool::apply`]; dropping the guard takes what is on the host's device off again.
    ///
    /// # Panics
    ///
    /// As [`Tool::apply`].
    #[must_use]
    pub fn limit(&self, text: &str) -> Attached<'a> {
        Attached::new(self.clone(), self.apply(text))
    }

    /// Puts a limit on the host's device; dropping the guard takes it off again.
    ///
    /// # Panics
    ///
    /// If it fails; the message shows the whole state.
    #[must_use]
    pub fn attach(&self, options: &str) -> Attached<'a> {
        let ran = self.ok(&self.attach_line(options));
        Attached::new(self.clone(), ran)
    }

    fn attach_line<'b>(&'b self, options: &'b str) -> Vec<&'b str> {
        ["attach", &self.host.dev].into_iter().chain(options.split_whitespace()).collect()
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

    /// What `rule list` shows.
    ///
    /// # Panics
    ///
    /// As [`Tool::status`].
    #[must_use]
    pub fn rules(&self, dev: &str) -> Vec<Rule> {
        self.parsed::<json::Rules>(&["-j", "rule", "list", dev]).rules
    }

    /// What `explain` says of a frame.
    ///
    /// # Panics
    ///
    /// As [`Tool::status`].
    #[must_use]
    pub fn explain(&self, dev: &str, frame: &UdpFrame) -> Vec<Explanation> {
        let end = |address: IpAddr, port: u16| SocketAddr::new(address, port).to_string();
        let packet = format!("udp {} > {}", end(frame.src, frame.sport), end(frame.dst, frame.dport));
        let bytes = frame.len.to_string();
        self.parsed::<json::Explanations>(&["-j", "explain", dev, &packet, "--bytes", &bytes]).explanations
    }

    /// Everything the tool can say about its namespace, for failure messages.
    #[must_use]
    pub fn state(&self) -> String {
        let shown = ["status", "stats", "flows"].map(|command| self.run(&[command]).to_string());
        format!("state:\n{}", shown.concat())
    }

    fn json<T: DeserializeOwned>(&self, command: &str, dev: Option<&str>) -> T {
        self.parsed(&["-j", command].into_iter().chain(dev).collect::<Vec<_>>())
    }

    fn parsed<T: DeserializeOwned>(&self, args: &[&str]) -> T {
        let ran = self.run(args);
        assert!(ran.code == Some(0), "{ran}");
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("not the promised JSON: {error}\n{ran}"))
    }
}
