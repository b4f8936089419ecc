//! Configuration files, made up from the words of a command line.

use std::fmt::Write as _;

/// A configuration file that is being written.
#[derive(Clone, Debug)]
pub struct Config(String);

impl Default for Config {
    fn default() -> Self {
        Self("version = 1\n".to_owned())
    }
}

impl Config {
    /// With one device; see [`Config::device`].
    #[must_use]
    pub fn of(dev: &str, keys: &str) -> Self {
        Self::default().device(dev, keys)
    }

    /// Adds a device. `keys` are like `rate=8bit burst=640b`; a key without value is a flag.
    #[must_use]
    pub fn device(self, dev: &str, keys: &str) -> Self {
        self.table("attach", &format!("dev={dev} {keys}"))
    }

    /// Adds a rule to the last device. Prefixes are set apart by commas: `match=10.0.0.0/8,2001:db8::/32 rate=8bit`.
    #[must_use]
    pub fn rule(self, name: &str, keys: &str) -> Self {
        self.table("attach.rule", &format!("name={name} {keys}"))
    }

    /// Adds rules that are numbered from 0, each for an address of its own from 10.0.0.0 on.
    #[must_use]
    pub fn rules(self, count: u16, keys: &str) -> Self {
        (0..count).fold(self, |file, n| {
            let [high, low] = n.to_be_bytes();
            file.rule(&format!("r{n}"), &format!("match=10.0.{high}.{low}/32 {keys}"))
        })
    }

    /// The file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    fn table(mut self, header: &str, keys: &str) -> Self {
        let mut line = |line: std::fmt::Arguments<'_>| writeln!(self.0, "{line}").expect("a string takes everything");
        line(format_args!("[[{header}]]"));
        for key in keys.split_whitespace() {
            match key.split_once('=') {
                Some(("match", nets)) => {
                    let nets: Vec<&str> = nets.split(',').collect();
                    line(format_args!("match = {nets:?}"));
                }
                Some((key, value)) => line(format_args!("{key} = {value:?}")),
                None => line(format_args!("{key} = true")),
            }
        }
        self
    }
}
