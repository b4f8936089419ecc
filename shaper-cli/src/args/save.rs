//! `shaper save`.

use clap::Args;

/// `shaper save`: what is attached, as a file for `apply`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Save {
    /// Device, like eth0 [default: all]
    #[arg(value_name = "DEV")]
    pub dev: Option<String>,
}
