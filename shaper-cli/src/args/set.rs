//! `shaper set`.

use clap::{ArgGroup, Args};
use shaper_common::units::{Burst, Rate};

use super::{DirectionChoice, value};

/// `shaper set`: new limits for what is attached.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group(ArgGroup::new("limits").args(["rate", "burst"]).required(true).multiple(true)))]
pub struct Set {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// What each key may send, like 100mbit, 1.5gbit or 12MB/s
    #[arg(long, value_parser = value::rate, allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// How much may pass at once: a size like 64kb or 2gbit, or a time at the rate like 250ms
    ///
    /// A burst that was never given follows the rate.
    #[arg(long, value_parser = value::burst, allow_hyphen_values = true)]
    pub burst: Option<Burst>,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
