//! `shaper detach`.

use clap::{ArgGroup, Args};

use super::DirectionChoice;

/// `shaper detach`: which attachments end.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group(ArgGroup::new("which").args(["dev", "all"]).required(true)))]
pub struct Detach {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: Option<String>,
    /// Everything in the network namespace
    #[arg(long, conflicts_with = "direction")]
    pub all: bool,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
