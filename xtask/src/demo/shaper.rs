//! The tool, and a guard that takes its limit away again.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{
    interrupt,
    namespace::{DEVICE, shown},
};

pub(super) struct Shaper {
    tool: PathBuf,
    namespace: String,
    attached: bool,
}

impl Shaper {
    pub(super) fn new(tool: PathBuf, namespace: &str) -> Self {
        // As one would type it, if one can.
        let here = std::env::current_dir().ok();
        let short = here.and_then(|here| tool.strip_prefix(here).ok().map(Path::to_path_buf));
        Self { tool: short.unwrap_or(tool), namespace: namespace.to_owned(), attached: false }
    }

    pub(super) fn attach(&mut self, rate: &str) -> Result<()> {
        interrupt::check()?;
        // Also if it fails: then there is nothing to detach, and the tool says so.
        self.attached = true;
        shown(self.command().args(["attach", DEVICE, "--rate", rate]))
    }

    /// Runs a command that looks at the device.
    pub(super) fn show(&self, what: &str) -> Result<()> {
        interrupt::check()?;
        shown(self.command().args([what, DEVICE]))
    }

    pub(super) fn detach(&mut self) -> Result<()> {
        self.attached = false;
        shown(self.command().args(["detach", "--all"]))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.tool);
        command.args(["-n", &self.namespace]);
        command
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        if self.attached
            && let Err(error) = self.detach()
        {
            eprintln!("error: {error:#}");
        }
    }
}
