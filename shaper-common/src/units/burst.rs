//! Bursts as people give them: a size, or the time in which the rate sends it.

use super::{Bytes, Error, Quantity, Rate, Time, number, time};

/// A burst before its rate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Burst {
    /// Bytes.
    Size(Bytes),
    /// What the rate sends in this time.
    Time(Time),
}

impl Burst {
    /// Reads a burst.
    ///
    /// # Errors
    ///
    /// If `text` is neither a size nor a time, not whole, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        match number::split(text) {
            Ok((_, unit)) if time::factor(unit).is_some() => Time::parse(text).map(Self::Time),
            _ => Bytes::parse(text).map(Self::Size).map_err(|error| Error { quantity: Quantity::Burst, ..error }),
        }
    }

    /// The bytes at `rate`, a time rounded up to a byte; `None` if they are more than [`Bytes::MAX`].
    #[must_use]
    pub fn at(self, rate: Rate) -> Option<Bytes> {
        match self {
            Self::Size(bytes) => Some(bytes),
            Self::Time(time) => time.bytes_at(rate),
        }
    }
}
