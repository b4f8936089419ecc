//! `--direction`.

use clap::ValueEnum;

use crate::model::Direction;

/// The direction as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DirectionChoice {
    /// Received packets
    Ingress,
    /// Sent packets
    Egress,
    /// Each on its own
    Both,
}

impl DirectionChoice {
    /// The directions that are meant.
    #[must_use]
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Ingress => &[Direction::Ingress],
            Self::Egress => &[Direction::Egress],
            Self::Both => &Direction::ALL,
        }
    }
}
