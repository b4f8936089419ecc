//! Real traffic through the tool as its users run it: network namespaces, sockets and the kernel's own packets.
//!
//! Needs root and iproute2. Every test has a sandbox of its own (`tests::topology`), measures with sockets and device
//! counters, never with the tool under test alone, and fails where it cannot run.

mod account;
mod accounting;
mod bare;
mod burst;
mod change;
mod colours;
mod company;
mod crash;
mod cut;
mod detach;
mod devices;
mod errors;
mod exempt;
mod explain;
mod file;
mod growth;
mod harness;
mod hooks;
mod keys;
mod limits;
mod live;
mod loopback;
mod marks;
mod mounts;
mod offload;
mod overflow;
mod privilege;
mod rate;
mod rules;
mod tcp;

/// The hooks that a limit can be put on.
const HOOKS: [&str; 2] = ["tcx", "clsact"];
