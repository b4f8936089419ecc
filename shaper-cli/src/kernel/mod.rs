//! The back of the tool: what it does to the kernel. Only this module knows of aya, bpf(2) and cls_bpf.
//!
//! [`host`] is the way in. An [`attachment`] is what one pin directory holds: checked [`maps`], a program, and the TCX
//! [`link`] or [`clsact`] filter that runs it. [`create`] makes one and [`change`] changes it, with programs from
//! [`load`]; [`table`] reads the flows and [`carry`] moves them to a table of another size.

mod attachment;
mod carry;
mod change;
mod clock;
mod clsact;
mod counters;
mod create;
mod explain;
mod host;
mod limits;
mod link;
mod load;
mod mapping;
mod maps;
mod object;
mod pin;
mod plain;
mod rulebook;
mod settings;
mod sys;
mod table;

pub use host::{Damage, Host};
