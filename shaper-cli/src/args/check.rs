//! `shaper check`.

use clap::Args;

/// `shaper check`: whether a file is right, whatever this machine has.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Check {
    /// The file; `-` is the standard input
    #[arg(value_name = "FILE")]
    pub file: String,
}
