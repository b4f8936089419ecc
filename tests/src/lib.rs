//! What the rings of tests share: frames to send, the corpus of odd packets, and models to compare with.
//!
//! The rings are told apart by what they need: `host` nothing, `kernel` the bpf system call, `netns` network namespaces.

pub mod corpus;
pub mod frames;
pub mod model;
pub mod tool;
pub mod topology;
pub mod traffic;
