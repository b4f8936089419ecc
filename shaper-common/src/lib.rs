//! What the shaper data plane, the tool and the tests share.
//!
//! The eBPF programs, `shaper` itself and the test suite run this very code: there is one parser, one bucket and one
//! flow table. Nothing here allocates, names aya, touches a raw pointer or asks for the time; time and atomic
//! operations are arguments.
//!
//! A packet's way through the crate: [`packet`] turns bytes into facts, [`cost`] says what they cost, [`key`] says
//! whose bucket pays, [`table`] finds the bucket, [`bucket`] charges it on the rule's [`clock`], and [`policy`] is the
//! path that ties these together and ends in a [`verdict`].
#![no_std]
#![forbid(unsafe_code)]

pub mod abi;
pub mod answer;
pub mod atomic;
pub mod bucket;
pub mod clock;
pub mod cost;
pub mod key;
mod layers;
pub mod packet;
pub mod place;
pub mod policy;
pub mod remark;
pub mod rule;
pub mod siphash;
pub mod table;
pub mod units;
pub mod verdict;
