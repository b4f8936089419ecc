//! Where network tests run: a sandbox of private mounts, network namespaces in it, and cables between them.
//!
//! Everything here is a guard value. Nothing outlives the test, even if it is killed: the mounts belong to the test's
//! thread, the namespaces to the mounts, the devices to the namespaces, and what is pinned or attached to the devices.

mod foreign;
mod host;
mod netns;
mod objects;
mod offload;
mod sandbox;
mod syscall;
mod two_ns;

pub use foreign::Foreign;
pub use host::{DeviceCounters, Host};
pub use netns::NetNs;
pub use objects::Objects;
pub use offload::Feature;
pub use sandbox::{BPFFS, Sandbox};
pub(crate) use syscall::{link_address, packet_statistics, set_option};
pub use two_ns::{TwoNs, two_ns};

use std::process::{Command, Output};

/// Runs a program of the system and returns its standard output.
///
/// # Panics
///
/// If it cannot be started or fails; the message is the command line and what it said.
pub fn run(program: &str, args: &[&str]) -> String {
    let output = try_run(program, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{program} {}` failed: {}", args.join(" "), stderr.trim());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a program of the system, whatever its exit code.
///
/// # Panics
///
/// If it cannot be started.
pub fn try_run(program: &str, args: &[&str]) -> Output {
    match Command::new(program).args(args).output() {
        Ok(output) => output,
        Err(error) => panic!("cannot start `{program}` (network tests need iproute2 and util-linux): {error}"),
    }
}
