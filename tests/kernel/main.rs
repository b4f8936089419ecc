//! The `kernel` ring: the BPF object against the host's code, packet by packet, through `BPF_PROG_TEST_RUN`.
//!
//! Needs root (or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON) and nothing of the network.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![expect(clippy::print_stdout, reason = "the test harness shows it with a failure")]

mod corpus;
mod frames;
mod layers;
mod loading;
mod object;
mod offload;
mod overflow;
mod random;
mod random_rules;
mod remark;
mod rig;
mod rules;
mod skb;
mod verdicts;
