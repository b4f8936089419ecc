//! Real traffic through the tool as its users run it: network namespaces, sockets and the kernel's own packets.
//!
//! Needs root and iproute2. Every test has a sandbox of its own (`tests::topology`), measures with sockets and device
//! counters, never with the tool under test alone, and fails where it cannot run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;
