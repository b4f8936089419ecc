//! Two network namespaces as a guard value: dropped, they are gone, and with them their devices and addresses.

use std::{fs::File, net::Ipv4Addr, process::Command};

use anyhow::{Context as _, Result};
use nix::sched::{CloneFlags, setns};

use super::interrupt;
use crate::{output::say, process};

/// The name of the device in both namespaces.
pub(super) const DEVICE: &str = "veth";

/// Addresses for documentation (RFC 5737); they exist in the two namespaces only.
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

pub(super) struct Pair {
    pub(super) client: Namespace,
    pub(super) server: Namespace,
}

impl Pair {
    pub(super) fn make() -> Result<Self> {
        // With the process id, so that two demos at once do not meet.
        let id = std::process::id();
        let pair = Self {
            client: Namespace::make(format!("shaper-demo-{id}-client"))?,
            server: Namespace::make(format!("shaper-demo-{id}-server"))?,
        };
        let (client, server) = (pair.client.name(), pair.server.name());
        ip(&["-n", client, "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", server])?;
        for (namespace, address) in [(client, CLIENT), (server, SERVER)] {
            ip(&["-n", namespace, "address", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["-n", namespace, "link", "set", DEVICE, "up"])?;
        }
        Ok(pair)
    }

    pub(super) fn remove(self) -> Result<()> {
        self.client.remove()?;
        self.server.remove()
    }
}

pub(super) struct Namespace {
    name: String,
    exists: bool,
}

impl Namespace {
    fn make(name: String) -> Result<Self> {
        ip(&["netns", "add", &name])?;
        Ok(Self { name, exists: true })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Moves the calling thread into this namespace; sockets that it opens from then on belong there.
    pub(super) fn enter(&self) -> Result<()> {
        let path = format!("/run/netns/{}", self.name);
        let namespace = File::open(&path).with_context(|| format!("cannot open {path}"))?;
        setns(namespace, CloneFlags::CLONE_NEWNET).with_context(|| format!("cannot enter {path}"))
    }

    fn remove(mut self) -> Result<()> {
        self.delete()
    }

    fn delete(&mut self) -> Result<()> {
        self.exists = false;
        shown(Command::new("ip").args(["netns", "delete", &self.name]))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.exists
            && let Err(error) = self.delete()
        {
            eprintln!("error: {error:#}");
        }
    }
}

fn ip(args: &[&str]) -> Result<()> {
    interrupt::check()?;
    shown(Command::new("ip").args(args))
}

/// Runs a command after showing it.
pub(super) fn shown(command: &mut Command) -> Result<()> {
    say(format_args!("   $ {}", process::line(command)));
    process::run(command)
}
