//! A network namespace as a guard value, visible to `ip -n` and `shaper -n` under its name.

use std::{
    fs::{self, File},
    panic, thread,
};

use nix::{
    mount::{MntFlags, MsFlags, mount, umount2},
    sched::{CloneFlags, setns, unshare},
};

use super::run;

/// A network namespace; dropping it removes its name, and the kernel then removes what is in it.
#[derive(Debug)]
pub struct NetNs {
    name: String,
    file: File,
}

impl NetNs {
    /// Makes a namespace with nothing in it but a running `lo`. The name is free again when the sandbox ends.
    ///
    /// # Panics
    ///
    /// If the name is taken, or outside a sandbox.
    #[must_use]
    pub fn create(name: &str) -> Self {
        let path = path_of(name);
        File::create_new(&path).expect("a fresh name for a network namespace");
        // A thread of its own, so that the caller's network stays what it is.
        in_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).expect("a new network namespace");
            mount(Some("/proc/thread-self/ns/net"), path.as_str(), None::<&str>, MsFlags::MS_BIND, None::<&str>)
                .expect("a name for the network namespace");
        });
        let ns = Self { name: name.to_owned(), file: File::open(&path).expect("the namespace just made") };
        ns.silence();
        ns.ip(&["link", "set", "lo", "up"]);
        ns
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Does `work` on a thread inside the namespace. Sockets opened and programs started there belong to it for good.
    ///
    /// # Panics
    ///
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_thread(|| {
            setns(&self.file, CloneFlags::CLONE_NEWNET).expect("setns");
            work()
        })
    }

    /// Runs `ip` there and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ip(&self, args: &[&str]) -> String {
        run("ip", &[&["-n", &self.name], args].concat())
    }

    /// Runs `tc` there and returns its output.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn tc(&self, args: &[&str]) -> String {
        run("tc", &[&["-n", &self.name], args].concat())
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
        let path = path_of(&self.name);
        let gone =
            umount2(path.as_str(), MntFlags::MNT_DETACH).map_err(Into::into).and_then(|()| fs::remove_file(&path));
        if let Err(error) = gone {
            eprintln!("{path} stays until the sandbox ends: {error}");
        }
    }
}

fn path_of(name: &str) -> String {
    format!("/run/netns/{name}")
}

fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match thread::scope(|scope| scope.spawn(work).join()) {
        Ok(result) => result,
        Err(cause) => panic::resume_unwind(cause),
    }
}
