//! Sizes: bytes, in powers of 1024 as tc has them.

use core::fmt::{self, Display};

use super::{
    Error, Problem, Quantity, Rate, Time,
    echo::{self, Unit},
    number,
    time::NANOS_PER_8_SECONDS,
};

/// For the hint of an unknown unit.
pub(super) const UNITS: &str = "b, kb, mb, gb (or k, m, g, kib, ..), bits: kbit, mbit, gbit; all by 1024";

/// Bytes in a KiB.
pub(super) const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Units of the echo, smallest first.
const ECHO: [Unit; 4] = [
    Unit { size: 1, name: "B", short: "b" },
    Unit { size: KIB, name: "KiB", short: "kib" },
    Unit { size: MIB, name: "MiB", short: "mib" },
    Unit { size: GIB, name: "GiB", short: "gib" },
];

/// A size, 1 byte ..= 1 TiB. `Display` is exact: `256 MiB`, `65537 B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(u64);

impl Bytes {
    /// One byte.
    pub const MIN: Self = Self(1);
    /// 1 TiB.
    pub const MAX: Self = Self(1 << 40);

    /// This many bytes, if that is in range.
    #[must_use]
    pub const fn new(bytes: u64) -> Option<Self> {
        if Self::MIN.0 <= bytes && bytes <= Self::MAX.0 { Some(Self(bytes)) } else { None }
    }

    /// Reads a size.
    ///
    /// # Errors
    ///
    /// If `text` is not a number and a unit of sizes, not a whole number of bytes, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || {
            let (number, unit) = number::split(text)?;
            let bytes = number.whole(factor(unit).ok_or(Problem::Unit(unit))?)?;
            u64::try_from(bytes).ok().and_then(Self::new).ok_or(Problem::Large)
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::Size, problem })
    }

    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time in which `rate` sends them, rounded up to a nanosecond.
    #[must_use]
    pub fn time_at(self, rate: Rate) -> Time {
        let bits = u128::from(rate.bits_per_second());
        Time::new((u128::from(self.0) * NANOS_PER_8_SECONDS).div_ceil(bits)).unwrap_or(Time::MAX)
    }

    /// The size in the words of `--burst`: `256mib`.
    pub fn spelling(self) -> impl Display {
        fmt::from_fn(move |f| echo::spell(f, self.0, &ECHO))
    }
}

impl Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        echo::exact(f, self.0, &ECHO)
    }
}

/// Bytes in one `unit`.
fn factor(unit: &str) -> Option<u64> {
    const FACTORS: [(&[&str], u64); 7] = [
        (&["", "b"], 1),
        (&["k", "kb", "kib"], KIB),
        (&["m", "mb", "mib"], MIB),
        (&["g", "gb", "gib"], GIB),
        (&["kbit"], KIB / 8),
        (&["mbit"], MIB / 8),
        (&["gbit"], GIB / 8),
    ];
    let (_, factor) = FACTORS.iter().find(|(names, _)| names.iter().any(|name| name.eq_ignore_ascii_case(unit)))?;
    Some(*factor)
}
