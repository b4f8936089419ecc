//! Where network tests run: a sandbox of private mounts, network namespaces in it, and cables between them.
//!
//! Everything here is a guard value. Nothing outlives the test process, even if it is killed: what is pinned, attached
//! or named belongs to the sandbox, and the sandbox to the test.

mod foreign;
mod host;
mod netns;
mod objects;
mod offload;
mod sandbox;
mod syscall;
mod thread;
mod tun;
mod two_ns;
mod wait;

pub use foreign::Foreign;
pub use host::{DeviceCounters, Host};
pub use netns::NetNs;
pub use objects::Objects;
pub use offload::Feature;
pub use sandbox::{Alone, BPFFS, Sandbox};
pub(crate) use syscall::{link_address, packet_statistics, set_option};
pub(crate) use thread::{apart, contained};
pub use tun::Tun;
pub use two_ns::{TwoNs, two_ns};
pub use wait::{DEADLINE, until};
