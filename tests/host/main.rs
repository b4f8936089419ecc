//! Tests that need no privileges: the code that runs in the kernel, run here and compared with models.
//!
//! From the bottom up: quantities as people type them ([`units`]), time and arithmetic ([`clock`], [`window`],
//! [`throughput`], [`level`], [`contention`]), packets ([`parser`], [`key`], [`cost`]), the flow table ([`siphash`],
//! [`table`], [`claim_races`], [`stamps`], [`place`]), rules ([`rules`]), the decision ([`policy`]) and the contract with
//! the object ([`abi`]).

mod abi;
mod claim_races;
mod clock;
mod contention;
mod cost;
mod key;
mod layers;
mod level;
mod parser;
mod place;
mod policy;
mod property;
mod rules;
mod siphash;
mod stamps;
mod table;
mod throughput;
mod units;
mod window;
