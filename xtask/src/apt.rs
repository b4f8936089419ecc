//! Installing Debian packages without asking, without removing anything, and with patience for a mirror.

use std::{collections::BTreeSet, process::Command, thread, time::Duration};

use anyhow::{Context as _, Result, bail};

use crate::{output::say, process};

const ATTEMPTS: u32 = 3;

/// Remembers what was asked for, so that a package that does not help is not installed forever.
#[derive(Default)]
pub(crate) struct Apt {
    updated: bool,
    requested: BTreeSet<String>,
}

impl Apt {
    /// Installs or upgrades packages. The lists are fetched only if they turn out to be missing or old.
    pub(crate) fn install(&mut self, packages: &[String]) -> Result<()> {
        let again = packages.iter().any(|package| self.requested.contains(package));
        if again && self.updated {
            bail!("installing {} did not help: this release of Debian has too old a version", packages.join(" "));
        }
        self.requested.extend(packages.iter().cloned());
        say(format_args!("Installing {}", packages.join(" ")));
        if again || !are_known(packages) {
            self.update()?;
        } else if install(packages).is_ok() {
            return Ok(());
        } else {
            // The mirror may have newer versions only.
            self.update()?;
        }
        retry(|| install(packages)).with_context(|| format!("cannot install {}", packages.join(" ")))
    }

    fn update(&mut self) -> Result<()> {
        self.updated = true;
        retry(|| process::run(apt_get().args(["update", "-qq"])))
    }
}

/// Whether the lists name all packages; a new machine often has no lists at all.
fn are_known(packages: &[String]) -> bool {
    process::stdout(apt_get().args(["install", "-qq", "--simulate", "--no-install-recommends"]).args(packages)).is_ok()
}

fn install(packages: &[String]) -> Result<()> {
    // Some of these conflict with other packages of the same purpose; which to keep is for the user to say.
    process::run(apt_get().args(["install", "-qq", "--yes", "--no-install-recommends", "--no-remove"]).args(packages))
}

fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]);
    apt.env("DEBIAN_FRONTEND", "noninteractive").env_remove("LD_LIBRARY_PATH");
    apt
}

fn retry(mut action: impl FnMut() -> Result<()>) -> Result<()> {
    for attempt in 1..ATTEMPTS {
        match action() {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("{error:#}; trying again"),
        }
        thread::sleep(Duration::from_secs(5 * u64::from(attempt)));
    }
    action()
}
