//! The number in front of a unit, of any length and exact.

use super::error::Problem;

/// `digits[.digits]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'a> {
    whole: &'a str,
    fraction: &'a str,
}

/// Splits a quantity into its number and its unit.
pub(super) fn split(text: &str) -> Result<(Number<'_>, &str), Problem<'_>> {
    let (whole, rest) = digits(text);
    let (fraction, unit) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("0", rest),
    };
    if whole.is_empty() || fraction.is_empty() { Err(Problem::Number) } else { Ok((Number { whole, fraction }, unit)) }
}

impl Number<'_> {
    /// The number times `factor`, which has to be whole and not zero.
    pub(super) fn whole<'p>(&self, factor: u64) -> Result<u128, Problem<'p>> {
        match self.times(factor) {
            None => Err(Problem::Fraction),
            Some(0) => Err(Problem::Zero),
            Some(product) => Ok(product),
        }
    }

    /// The number times `factor`, or `None` if that is not whole. A product that does not fit is `u128::MAX`, which is
    /// out of everybody's range.
    pub(super) fn times(&self, factor: u64) -> Option<u128> {
        let factor = u128::from(factor);
        let mut whole = 0_u128;
        for digit in values(self.whole) {
            whole = whole.saturating_mul(10).saturating_add(digit);
        }
        // Long multiplication of the fraction from its last digit on: what carries over the point is whole, and the
        // rest has to come out as zeros. No power of ten is needed, so any number of digits is exact.
        let mut carry = 0;
        for digit in values(self.fraction).rev() {
            let product = digit * factor + carry;
            if product % 10 != 0 {
                return None;
            }
            carry = product / 10;
        }
        Some(whole.saturating_mul(factor).saturating_add(carry))
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn values(digits: &str) -> impl DoubleEndedIterator<Item = u128> {
    digits.bytes().map(|digit| u128::from(digit - b'0'))
}
