//! Times: nanoseconds, for bursts that are given as what a rate sends in them.

use core::fmt::{self, Display};

use super::{Bytes, Error, Problem, Quantity, Rate, number};

/// For the hint of an unknown unit.
pub(super) const UNITS: &str = "ns, us, ms, s";

/// Bits in a byte times nanoseconds in a second: bytes times this, divided by bits per second, are nanoseconds.
pub(super) const NANOS_PER_8_SECONDS: u128 = 8_000_000_000;

const US: u128 = 1_000;
const MS: u128 = 1_000_000;
const S: u128 = 1_000_000_000;

/// A time, 1 ns ..= 2^40 s, in which the smallest rate sends the largest burst. `Display` shows three digits: `2.15 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u128);

impl Time {
    /// The longest time.
    pub const MAX: Self = Self((1 << 40) * S);

    /// This many nanoseconds, if that is in range.
    #[must_use]
    pub const fn new(nanoseconds: u128) -> Option<Self> {
        if 1 <= nanoseconds && nanoseconds <= Self::MAX.0 { Some(Self(nanoseconds)) } else { None }
    }

    /// Reads a time.
    ///
    /// # Errors
    ///
    /// If `text` is not a number and a unit of time, not a whole number of nanoseconds, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || {
            let (number, unit) = number::split(text)?;
            Self::new(number.whole(factor(unit).ok_or(Problem::Unit(unit))?)?).ok_or(Problem::Large)
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::Time, problem })
    }

    /// The number of nanoseconds.
    #[must_use]
    pub const fn nanoseconds(self) -> u128 {
        self.0
    }

    /// What `rate` sends in this time, rounded up to a byte; `None` if that is more than [`Bytes::MAX`].
    #[must_use]
    pub fn bytes_at(self, rate: Rate) -> Option<Bytes> {
        let bytes = (self.0 * u128::from(rate.bits_per_second())).div_ceil(NANOS_PER_8_SECONDS);
        u64::try_from(bytes).ok().and_then(Bytes::new)
    }

    pub(super) const fn from_millis(milliseconds: u32) -> Self {
        Self(milliseconds as u128 * MS)
    }
}

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, name) = match self.0 {
            S.. => (S, "s"),
            MS.. => (MS, "ms"),
            US.. => (US, "us"),
            _ => (1, "ns"),
        };
        let steps = match self.0 / size {
            100.. => 1,
            10.. => 10,
            _ => 100,
        };
        let hundredths = (self.0 * steps + size / 2) / size * (100 / steps);
        match (hundredths / 100, hundredths % 100) {
            (whole, 0) => write!(f, "{whole} {name}"),
            (whole, part) if part % 10 == 0 => write!(f, "{whole}.{} {name}", part / 10),
            (whole, part) => write!(f, "{whole}.{part:02} {name}"),
        }
    }
}

/// Nanoseconds in one `unit`.
pub(super) fn factor(unit: &str) -> Option<u64> {
    const FACTORS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let (_, factor) = FACTORS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(*factor)
}
