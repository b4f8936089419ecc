//! A network namespace as a guard value, visible to `ip -n` and `shaper -n` in its sandbox.

use std::fs::{self, File};

use nix::{
    mount::{MntFlags, umount2},
    net::if_::if_nametoindex,
    sched::{CloneFlags, setns},
};

use super::{
    Sandbox,
    sandbox::command,
    thread::{apart, contained},
};

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
        sandbox.command(&format!("ip netns add {name}"));
        let file = sandbox.run(|| File::open(format!("/run/netns/{name}"))).expect("the namespace just made");
        let ns = Self { sandbox: sandbox.clone(), name: name.to_owned(), file };
        ns.silence();
        ns.ip("link set lo up");
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

    /// Runs `ip` there with these words and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ip(&self, words: &str) -> String {
        self.command(&format!("ip {words}"))
    }

    /// Runs `tc` there with these words and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn tc(&self, words: &str) -> String {
        self.command(&format!("tc {words}"))
    }

    /// Not with `-n`, which would hide the bpffs from `tc`.
    fn command(&self, line: &str) -> String {
        self.sandbox.run(|| {
            self.enter();
            command(line)
        })
    }

    /// Index of a device there.
    ///
    /// # Panics
    ///
    /// If there is none of this name.
    #[must_use]
    pub fn ifindex(&self, dev: &str) -> u32 {
        match self.run(|| if_nametoindex(dev)) {
            Ok(index) => index,
            Err(error) => panic!("device {dev} in {}: {error}", self.name),
        }
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
        let path = format!("/run/netns/{}", self.name);
        let removed = contained(|| self.sandbox.run(|| umount2(path.as_str(), MntFlags::MNT_DETACH)));
        // Then the name stays until the sandbox ends, in a moment.
        if !matches!(removed, Some(Ok(()))) {
            eprintln!("unmount {path}: {removed:?}");
        }
    }
}
