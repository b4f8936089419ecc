//! `shaper stats`.

use clap::Args;

use super::DirectionChoice;

/// `shaper stats`: counters by verdict and by reason.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Stats {
    /// Device, like eth0 [default: all]
    #[arg(value_name = "DEV")]
    pub dev: Option<String>,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Only this rule; `default` is what no rule matches
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub rule: Option<String>,
    /// Show all rules [default: the busiest 20, with --json all]
    #[arg(long)]
    pub all: bool,
}
