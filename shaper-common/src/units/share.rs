//! Shares of a rate, in percent.

use core::fmt::{self, Display};

use super::{Error, Problem, Quantity, Rate, number};

/// For the hint of an unknown unit.
pub(super) const UNITS: &str = "%";

/// Parts in a percent.
const PERCENT: u64 = 1_000_000;

/// Parts in the whole.
const WHOLE: u128 = 100 * PERCENT as u128;

/// A share, 0.000001 % ..= 1000000 %. `Display` is exact and what `--soft` reads: `12.5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u64);

/// Why a rate cannot be raised by a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uneven {
    /// It would not be a whole number of bits per second; this is the nearest rate above the first.
    Fraction(Rate),
    /// It would be above [`Rate::MAX`].
    Large,
}

impl Share {
    /// The largest share.
    pub const MAX: Self = Self(1_000_000 * PERCENT);

    /// Reads a share.
    ///
    /// # Errors
    ///
    /// If `text` is not a number and `%`, has more than six decimals, or is out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || match number::split(text)? {
            (number, "%") => match number.times(PERCENT) {
                None => Err(Problem::Fraction),
                Some(0) => Err(Problem::Zero),
                Some(parts) if parts > u128::from(Self::MAX.0) => Err(Problem::Large),
                Some(parts) => u64::try_from(parts).map(Self).or(Err(Problem::Large)),
            },
            (_, unit) => Err(Problem::Unit(unit)),
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::Share, problem })
    }

    /// `rate` and this share of it.
    ///
    /// # Errors
    ///
    /// If that is not a whole number of bits per second, or too large.
    pub fn above(self, rate: Rate) -> Result<Rate, Uneven> {
        let bits = u128::from(rate.bits_per_second());
        let product = bits * u128::from(self.0);
        let sum = |more: u128| u64::try_from(bits + more).ok().and_then(Rate::new).ok_or(Uneven::Large);
        if product.is_multiple_of(WHOLE) {
            return sum(product / WHOLE);
        }
        Err(Uneven::Fraction(sum(((product + WHOLE / 2) / WHOLE).max(1))?))
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut part, mut digits) = (self.0 / PERCENT, self.0 % PERCENT, 6);
        if part == 0 {
            return write!(f, "{whole}%");
        }
        while part.is_multiple_of(10) {
            part /= 10;
            digits -= 1;
        }
        write!(f, "{whole}.{part:0digits$}%")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::*;

    #[test]
    fn shares_are_exact() {
        for (text, shown) in [
            ("10%", "10%"),
            ("12.50%", "12.5%"),
            ("0.000001%", "0.000001%"),
            ("1000000%", "1000000%"),
            ("1.01%", "1.01%"),
        ] {
            assert_eq!(Share::parse(text).expect(text).to_string(), shown);
        }
        for (text, problem) in [
            ("", Problem::Number),
            ("-1%", Problem::Number),
            ("%", Problem::Number),
            ("10", Problem::Unit("")),
            ("10 %", Problem::Unit(" %")),
            ("0%", Problem::Zero),
            ("0.0000001%", Problem::Fraction),
            ("1000000.1%", Problem::Large),
        ] {
            let error = Share::parse(text).expect_err(text);
            assert_eq!((error.quantity, error.problem), (Quantity::Share, problem), "{text}");
        }
    }

    #[test]
    fn a_rate_is_raised_exactly_or_not_at_all() {
        let rate = |bits| Rate::new(bits).expect("in range");
        let above = |text, bits| Share::parse(text).expect(text).above(rate(bits));
        assert_eq!(above("10%", 100_000_000), Ok(rate(110_000_000)));
        assert_eq!(above("12.5%", 8), Ok(rate(9)));
        assert_eq!(above("10%", 8), Err(Uneven::Fraction(rate(9))));
        assert_eq!(above("1%", 8), Err(Uneven::Fraction(rate(9))));
        assert_eq!(above("1000000%", 1_000_000_000_000), Err(Uneven::Large));
    }
}
