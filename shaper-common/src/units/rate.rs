//! Rates: bits per second.

use core::fmt::{self, Display};

use super::{
    Bytes, Error, Problem, Quantity,
    bytes::KIB,
    echo::{self, Unit},
    number,
    time::Time,
};

/// For the hint of an unknown unit.
pub(super) const UNITS: &str =
    "bits/s: bit, kbit, mbit, gbit, tbit; bytes/s: B/s, kB/s, MB/s, GB/s; by 1024: kibit, .., KiB/s, ..";

/// A prefix of a unit, as it stands before `bit` and before `B/s`.
struct Prefix {
    bits: &'static str,
    bytes: &'static str,
    factor: u64,
}

const PREFIXES: [Prefix; 9] = [
    Prefix { bits: "", bytes: "", factor: 1 },
    Prefix { bits: "k", bytes: "k", factor: 1_000 },
    Prefix { bits: "m", bytes: "M", factor: 1_000_000 },
    Prefix { bits: "g", bytes: "G", factor: 1_000_000_000 },
    Prefix { bits: "t", bytes: "T", factor: 1_000_000_000_000 },
    Prefix { bits: "ki", bytes: "Ki", factor: 1 << 10 },
    Prefix { bits: "mi", bytes: "Mi", factor: 1 << 20 },
    Prefix { bits: "gi", bytes: "Gi", factor: 1 << 30 },
    Prefix { bits: "ti", bytes: "Ti", factor: 1 << 40 },
];

/// Units of the echo, smallest first.
const ECHO: [Unit; 5] = [
    Unit { size: 1, name: "bit/s", short: "bit" },
    Unit { size: 1_000, name: "kbit/s", short: "kbit" },
    Unit { size: 1_000_000, name: "Mbit/s", short: "mbit" },
    Unit { size: 1_000_000_000, name: "Gbit/s", short: "gbit" },
    Unit { size: 1_000_000_000_000, name: "Tbit/s", short: "tbit" },
];

/// A rate, 8 bit/s ..= 1 Tbit/s. `Display` is exact: `1.5 Mbit/s`, `1000001 bit/s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// One byte per second.
    pub const MIN: Self = Self(8);
    /// 1 Tbit/s.
    pub const MAX: Self = Self(1_000_000_000_000);

    /// The rate of this many bits per second, if it is in range.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if Self::MIN.0 <= bits_per_second && bits_per_second <= Self::MAX.0 {
            Some(Self(bits_per_second))
        } else {
            None
        }
    }

    /// Reads a rate.
    ///
    /// # Errors
    ///
    /// If `text` is not a number and a unit of rates, not a whole number of bits per second, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || {
            let (number, unit) = number::split(text)?;
            let bits = number.whole(factor(unit)?)?;
            if bits < u128::from(Self::MIN.0) {
                return Err(Problem::Small);
            }
            u64::try_from(bits).ok().and_then(Self::new).ok_or(Problem::Large)
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::Rate, problem })
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The burst of a limit for which nobody gave one: 250 ms at the rate, 256 KiB at least.
    #[must_use]
    pub fn default_burst(self) -> Bytes {
        self.burst_of(Time::from_millis(250), 256 * KIB)
    }

    /// The least burst with which one TCP flow reaches the rate under a limiter that drops and does not queue: 200 ms
    /// at the rate (Linux senders at the usual round-trip times), and 64 KiB, the largest GSO packet.
    #[must_use]
    pub fn tcp_burst(self) -> Bytes {
        self.burst_of(Time::from_millis(200), 64 * KIB)
    }

    /// The rate in the words of `--rate`: `1500kbit`.
    pub fn spelling(self) -> impl Display {
        fmt::from_fn(move |f| echo::spell(f, self.0, &ECHO))
    }

    fn burst_of(self, time: Time, least: u64) -> Bytes {
        let least = Bytes::new(least).unwrap_or(Bytes::MIN);
        time.bytes_at(self).map_or(Bytes::MAX, |bytes| bytes.max(least))
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        echo::exact(f, self.0, &ECHO)
    }
}

/// Bits per second in one `unit`.
fn factor(unit: &str) -> Result<u64, Problem<'_>> {
    if unit.is_empty() {
        return Ok(1);
    }
    let ending = |ending: &str| {
        let (start, end) = unit.split_at_checked(unit.len().checked_sub(ending.len())?)?;
        let prefix = PREFIXES.iter().find(|prefix| prefix.bits.eq_ignore_ascii_case(start))?;
        end.eq_ignore_ascii_case(ending).then_some((prefix, end))
    };
    if let Some((prefix, _)) = ending("bit") {
        Ok(prefix.factor)
    } else if let Some((prefix, end)) = ending("b/s") {
        if end.starts_with('B') { Ok(8 * prefix.factor) } else { Err(ambiguous(unit, prefix)) }
    } else if let Some((prefix, _)) = ending("bps") {
        Err(ambiguous(unit, prefix))
    } else if let Some((prefix, _)) = ending("bit/s") {
        Err(Problem::PerSecond(prefix.bits))
    } else {
        Err(Problem::Unit(unit))
    }
}

fn ambiguous<'a>(unit: &'a str, prefix: &Prefix) -> Problem<'a> {
    Problem::Ambiguous { unit, bits: prefix.bits, bytes: prefix.bytes }
}
