//! `shaper diff`.

use clap::Args;

/// `shaper diff`: what `apply` would change.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = "The exit status is 6 if `shaper apply` would change anything.")]
pub struct Diff {
    /// The file; `-` is the standard input
    #[arg(value_name = "FILE")]
    pub file: String,
}
