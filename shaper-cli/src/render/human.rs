//! Values in few columns: what is exact in the echo is rounded down here.

/// Units of a kind of value, smallest first.
pub(super) struct Units {
    step: u64,
    names: &'static [&'static str],
}

/// Bits per second.
pub(super) const RATE: Units = Units { step: 1000, names: &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"] };

/// Bytes.
pub(super) const BYTES: Units = Units { step: 1024, names: &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] };

/// Bytes in at most seven columns, e.g. `999 B`, `1.5 KiB`, `200 GiB`.
pub(super) fn bytes(count: u64) -> String {
    let (unit, name) = BYTES.unit(count, 1000);
    let tenths = u128::from(count) * 10 / u128::from(unit);
    if unit == 1 || tenths >= 100 {
        format!("{} {name}", count / unit)
    } else {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    }
}

/// `exact` if it is at most `width` columns, else `~` and three digits of `value`.
pub(super) fn fitting(exact: &str, width: usize, value: u64, units: &Units) -> String {
    if exact.len() <= width {
        return exact.to_owned();
    }
    let (unit, name) = units.unit(value, units.step);
    let hundredths = u128::from(value) * 100 / u128::from(unit);
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match whole {
        100.. => format!("~{whole} {name}"),
        10.. => format!("~{whole}.{} {name}", part / 10),
        _ => format!("~{whole}.{part:02} {name}"),
    }
}

impl Units {
    /// The smallest unit of which `value` has fewer than `most`, else the largest.
    fn unit(&self, value: u64, most: u64) -> (u64, &'static str) {
        let mut unit = 1;
        let mut names = self.names.iter();
        let mut name = names.next().copied().unwrap_or_default();
        for larger in names {
            if value / unit < most {
                break;
            }
            unit *= self.step;
            name = larger;
        }
        (unit, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_seven_columns() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.9 KiB"),
            (1024, "1.0 KiB"),
            (10_239, "9.9 KiB"),
            (10_240, "10 KiB"),
            (1_023_999, "999 KiB"),
            (1_024_000, "0.9 MiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(bytes(count), text);
            assert!(text.len() <= 7);
        }
    }

    #[test]
    fn what_does_not_fit_is_rounded_and_says_so() {
        assert_eq!(fitting("1.544 Mbit/s", 12, 1_544_000, &RATE), "1.544 Mbit/s");
        for (value, text) in [
            (1_073_741_824, "~1.07 Gbit/s"),
            (15_625_000, "~15.6 Mbit/s"),
            (999_999_999_999, "~999 Gbit/s"),
            (1_000_010_000, "~1.00 Gbit/s"),
        ] {
            assert_eq!(fitting("123456789 bit/s", 12, value, &RATE), text);
        }
        assert_eq!(fitting("31250000 B", 9, 31_250_000, &BYTES), "~29.8 MiB");
        assert_eq!(fitting("1073741823 B", 9, (1 << 30) - 1, &BYTES), "~1023 MiB");
    }
}
