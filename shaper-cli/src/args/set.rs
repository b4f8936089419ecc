//! `shaper set`.

use clap::Args;

use super::{DirectionChoice, LimitArgs};

/// `shaper set`: new limits for what is attached.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  shaper set eth0 --rate 200mbit   a burst that was never given follows the rate
  shaper set eth0 --pps 10kpps     one more limit; counters and levels stay

A limit is taken away by `shaper attach` without it. --block replaces all
limits, --unlimited all but the total, and any limit ends either. Rules stay.")]
pub struct Set {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Limits; at least one option of these.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
