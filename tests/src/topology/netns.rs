//! A network namespace as a guard value, visible to `ip -n` and `shaper -n` in its sandbox.

use std::fs::{self, File};

use nix::{
    mount::{MntFlags, umount2},
    sched::{CloneFlags, setns},
};

use super::{Sandbox, sandbox::command, thread::apart};

/// A named network namespace; dropping it removes the name, and the kernel then removes what is in it.
#[derive(Debug)]
pub struct NetNs {
    sandbox: Sandbox,
    name: String,
    file: File,
}

impl NetNs {
    /// Makes a namespace with nothing in it but a running `lo`.
    ///
    /// # Panics
    ///
    /// If the name is taken.
    #[must_use]
    pub fn create(sandbox: &Sandbox, name: &str) -> Self {
        sandbox.command("ip", &["netns", "add", name]);
        let file = sandbox.run(|| File::open(format!("/run/netns/{name}"))).expect("the namespace just made");
        let ns = Self { sandbox: sandbox.clone(), name: name.to_owned(), file };
        ns.silence();
        ns.ip(&["link", "set", "lo", "up"]);
        ns
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sandbox it is in.
    #[must_use]
    pub const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Moves the calling thread in.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn enter(&self) {
        setns(&self.file, CloneFlags::CLONE_NEWNET).expect("enter the network namespace");
    }

    /// Does `work` on a thread inside the namespace. Sockets opened there belong to it for good.
    ///
    /// # Panics
    ///
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        apart(|| {
            self.enter();
            work()
        })
    }

    /// Runs `ip` there and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ip(&self, args: &[&str]) -> String {
        self.command("ip", args)
    }

    /// Runs `tc` there and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn tc(&self, args: &[&str]) -> String {
        self.command("tc", args)
    }

    /// Not with `-n`, which would hide the bpffs from `tc`.
    fn command(&self, program: &str, args: &[&str]) -> String {
        self.sandbox.run(|| {
            self.enter();
            command(program, args)
        })
    }

    /// Sets `/proc/sys/net/<key>` there.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn sysctl(&self, key: &str, value: &str) {
        self.run(|| {
            if let Err(error) = fs::write(format!("/proc/sys/net/{key}"), value) {
                panic!("sysctl net/{key} = {value}: {error}");
            }
        });
    }

    /// Nothing sends by itself: no router solicitations, no duplicate address detection. Spoofed sources are let in.
    fn silence(&self) {
        for conf in ["all", "default"] {
            for key in ["accept_ra", "accept_dad", "dad_transmits", "router_solicitations", "autoconf"] {
                self.sysctl(&format!("ipv6/conf/{conf}/{key}"), "0");
            }
            self.sysctl(&format!("ipv4/conf/{conf}/rp_filter"), "0");
        }
    }
}

impl Drop for NetNs {
    fn drop(&mut self) {
        // If that fails the name stays until the sandbox ends, in a moment.
        let path = format!("/run/netns/{}", self.name);
        let removed = self.sandbox.run(|| umount2(path.as_str(), MntFlags::MNT_DETACH));
        if let Err(error) = removed {
            eprintln!("unmount {path}: {error}");
        }
    }
}
