//! What was typed, as types. Whatever is wrong with a single word is found here; what is wrong with their combination,
//! in [`crate::plan`].

mod apply;
mod attach;
mod check;
mod detach;
mod diff;
mod direction;
mod explain;
mod flows;
mod limits;
mod rule;
mod save;
mod set;
mod stats;
mod status;
mod usage;
pub(crate) mod value;

use clap::{Args, Parser, Subcommand};

pub use self::{
    apply::Apply,
    attach::Attach,
    check::Check,
    detach::Detach,
    diff::Diff,
    direction::DirectionChoice,
    explain::Explain,
    flows::{Flows, Sort},
    limits::LimitArgs,
    rule::{Rule, RuleCommand, RuleDel, RuleEdit, RuleList, RuleWords},
    save::Save,
    set::Set,
    stats::Stats,
    status::Status,
    usage::{Stop, parse},
};

/// Limits network traffic: token buckets per flow, in the kernel.
///
/// Units of rates: bit, kbit, mbit, gbit, tbit (per second, by 1000), kibit, .. (by 1024), and bytes per second: B/s,
/// kB/s, MB/s, GB/s, KiB/s, .. Sizes: b, kb, mb, gb and kbit, mbit, gbit, all by 1024. Packets: pps, kpps, mpps.
#[derive(Debug, Parser)]
#[command(
    name = "shaper",
    version,
    max_term_width = 80,
    after_help = "\
Exit status: 0 done, 1 usage, 2 the kernel refused, 3 not attached, 4 missing
privilege, 6 diff found differences."
)]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub global: Global,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of all commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Options of all commands")]
pub struct Global {
    /// Print JSON (status, stats, flows, rule list, explain)
    #[arg(short, long, global = true)]
    pub json: bool,
    /// Work in this network namespace (see `ip netns`)
    #[arg(short = 'n', long, global = true, value_name = "NAME")]
    pub netns: Option<String>,
    /// Say more: default settings, counters that are zero, packets of flows
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Limit a device
    Attach(Attach),
    /// Change the limits of a device; values that are not named stay
    Set(Set),
    /// Limit a part of what a device receives or sends
    Rule(Rule),
    /// Stop limiting, and restore what attach changed
    Detach(Detach),
    /// Make everything be what a file says
    Apply(Apply),
    /// Show whether a file is right
    Check(Check),
    /// Show what apply would change
    Diff(Diff),
    /// Write what is attached as a file for apply
    Save(Save),
    /// Show what is attached
    Status(Status),
    /// Show what passed and what was dropped, and why
    Stats(Stats),
    /// Show who is limited
    Flows(Flows),
    /// Show what would happen to a packet, and why
    Explain(Explain),
}
