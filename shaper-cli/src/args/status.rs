//! `shaper status`.

use clap::Args;

/// `shaper status`: what is attached.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Status {
    /// Device, like eth0 [default: all]
    #[arg(value_name = "DEV")]
    pub dev: Option<String>,
}
