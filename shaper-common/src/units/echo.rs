//! Exact values in the unit that keeps them short.

use core::fmt;

/// Most digits, after trailing zeros are dropped, of a value that still counts as short.
const SHORT: u128 = 10_000;

/// A unit of the echo.
pub(super) struct Unit {
    /// Base units in it.
    pub(super) size: u64,
    /// As shown.
    pub(super) name: &'static str,
    /// As typed.
    pub(super) short: &'static str,
}

/// Writes `value` for people: at most four digits with at most three decimals in the largest unit that is not larger
/// than the value, or else a whole number of the largest unit that divides it. `units` go up from 1.
pub(super) fn exact(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let largest = units.iter().rev().find(|unit| unit.size <= value);
    if let Some((thousandths, unit)) = largest.and_then(|unit| Some((short(value, unit.size)?, unit))) {
        let (whole, part) = (thousandths / 1000, thousandths % 1000);
        return match part {
            0 => write!(f, "{whole} {}", unit.name),
            _ if part % 100 == 0 => write!(f, "{whole}.{} {}", part / 100, unit.name),
            _ if part % 10 == 0 => write!(f, "{whole}.{:02} {}", part / 10, unit.name),
            _ => write!(f, "{whole}.{part:03} {}", unit.name),
        };
    }
    let (count, unit) = divided(value, units);
    write!(f, "{count} {}", unit.map_or("", |unit| unit.name))
}

/// Writes `value` as it would be typed: a whole number of the largest unit that divides it.
pub(super) fn spell(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let (count, unit) = divided(value, units);
    write!(f, "{count}{}", unit.map_or("", |unit| unit.short))
}

/// Thousandths of `size` in `value`, if they are whole and few digits.
fn short(value: u64, size: u64) -> Option<u128> {
    let scaled = u128::from(value) * 1000;
    let size = u128::from(size);
    let thousandths = scaled / size;
    let mut digits = thousandths;
    while digits != 0 && digits % 10 == 0 {
        digits /= 10;
    }
    (scaled % size == 0 && digits < SHORT).then_some(thousandths)
}

fn divided(value: u64, units: &[Unit]) -> (u64, Option<&Unit>) {
    let unit = units.iter().rev().find(|unit| value.is_multiple_of(unit.size));
    (unit.map_or(value, |unit| value / unit.size), unit)
}
