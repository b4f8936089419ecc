//! `shaper apply`.

use clap::Args;

/// `shaper apply`: makes everything be what a file says.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Each device and direction in the file becomes exactly what the file says: rules
that are not in it go away, levels and counters of the rest stay. Other devices
are left alone. Everything is done or nothing.")]
pub struct Apply {
    /// The file; `-` is the standard input
    #[arg(short, long, value_name = "FILE")]
    pub file: String,
    /// Detach what is attached and not in the file
    #[arg(long)]
    pub exclusive: bool,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
