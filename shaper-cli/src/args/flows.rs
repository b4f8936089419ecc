//! `shaper flows`.

use clap::{Args, ValueEnum};

use super::{DirectionChoice, value};

/// `shaper flows`: who is tracked, and how far each bucket is.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Flows {
    /// Device, like eth0 [default: all]
    #[arg(value_name = "DEV")]
    pub dev: Option<String>,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Which come first: most bytes dropped, most bytes passed, or emptiest bucket
    #[arg(long, value_enum, default_value_t = Sort::Dropped, hide_possible_values = true,
          value_name = "dropped|passed|level")]
    pub sort: Sort,
    /// Show the first N of each attachment [default: 20, with --json all]
    #[arg(long, value_parser = value::number(1_usize, usize::MAX), allow_hyphen_values = true, value_name = "N")]
    pub top: Option<usize>,
}

/// The order of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Most bytes dropped first
    Dropped,
    /// Most bytes passed first
    Passed,
    /// Emptiest bucket first
    Level,
}
