//! What people and programs read, each a function into a writer.
//!
//! Text is for people: tables of at most 80 columns with units, values rounded where `~` or the precision of a KiB
//! says so. JSON is for programs and exact; [`json`] has its fields, which are stable.

mod change;
mod difference;
mod edit;
mod explain;
mod flows;
mod human;
mod identity;
pub mod json;
mod rules;
mod stats;
mod status;
mod summary;
mod table;

pub use self::{
    change::{changed, detached, would_change, would_detach},
    edit::{edited, would_edit},
    explain::explain,
    flows::flows,
    rules::rules,
    stats::stats,
    status::status,
};
