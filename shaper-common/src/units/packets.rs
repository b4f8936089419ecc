//! Packets: how many per second, and how many at once.

use core::fmt::{self, Display};

use super::{
    Error, Problem, Quantity, Time,
    echo::{self, Unit},
    number, time,
};

/// For the hint of an unknown unit.
pub(super) const UNITS: &str = "pps, kpps, mpps; a bare number is packets/s";

/// Nanoseconds in a second.
const SECOND: u128 = 1_000_000_000;

/// Units of the echo, smallest first.
const ECHO: [Unit; 3] = [
    Unit { size: 1, name: "pps", short: "pps" },
    Unit { size: 1_000, name: "kpps", short: "kpps" },
    Unit { size: 1_000_000, name: "Mpps", short: "mpps" },
];

/// A rate of packets, 1 ..= 10^9 per second. `Display` is exact: `10 kpps`, `1000001 pps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketRate(u64);

impl PacketRate {
    /// One packet per second.
    pub const MIN: Self = Self(1);
    /// A packet per nanosecond.
    pub const MAX: Self = Self(1_000_000_000);

    /// The rate of this many packets per second, if it is in range.
    #[must_use]
    pub const fn new(packets_per_second: u64) -> Option<Self> {
        if Self::MIN.0 <= packets_per_second && packets_per_second <= Self::MAX.0 {
            Some(Self(packets_per_second))
        } else {
            None
        }
    }

    /// Reads a rate of packets.
    ///
    /// # Errors
    ///
    /// If `text` is not a number and a unit of packet rates, not a whole number of packets per second, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || {
            let (number, unit) = number::split(text)?;
            let packets = number.whole(factor(unit).ok_or(Problem::Unit(unit))?)?;
            u64::try_from(packets).ok().and_then(Self::new).ok_or(Problem::Large)
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::PacketRate, problem })
    }

    /// Packets per second.
    #[must_use]
    pub const fn packets_per_second(self) -> u64 {
        self.0
    }

    /// The burst of a limit for which nobody gave one: 250 ms at the rate, [`Packets::SUPER`] at least.
    #[must_use]
    pub fn default_burst(self) -> Packets {
        Time::from_millis(250).packets_at(self).map_or(Packets::MAX, |packets| packets.max(Packets::SUPER))
    }

    /// The rate in the words of `--pps`: `1500pps`.
    pub fn spelling(self) -> impl Display {
        fmt::from_fn(move |f| echo::spell(f, self.0, &ECHO))
    }
}

impl Display for PacketRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        echo::exact(f, self.0, &ECHO)
    }
}

/// A number of packets, 1 ..= 2^32. `Display` is exact: `2500 packets`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Packets(u64);

impl Packets {
    /// One packet.
    pub const MIN: Self = Self(1);
    /// 2^32 packets.
    pub const MAX: Self = Self(1 << 32);
    /// Enough for a GSO super-packet, which counts as its segments: 64 KiB make about 45 of the usual size.
    pub const SUPER: Self = Self(64);

    /// This many packets, if that is in range.
    #[must_use]
    pub const fn new(packets: u64) -> Option<Self> {
        if Self::MIN.0 <= packets && packets <= Self::MAX.0 { Some(Self(packets)) } else { None }
    }

    /// The number of packets.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The time in which `rate` sends them, rounded up to a nanosecond.
    #[must_use]
    pub fn time_at(self, rate: PacketRate) -> Time {
        Time::new((u128::from(self.0) * SECOND).div_ceil(u128::from(rate.0))).unwrap_or(Time::MAX)
    }
}

impl Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.0 == 1 { "packet" } else { "packets" };
        write!(f, "{} {noun}", self.0)
    }
}

/// A burst of packets before its rate is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketBurst {
    /// Packets.
    Count(Packets),
    /// What the rate sends in this time.
    Time(Time),
}

impl PacketBurst {
    /// Reads a burst of packets.
    ///
    /// # Errors
    ///
    /// If `text` is neither a bare number nor a time, not whole, or out of range.
    pub fn parse(text: &str) -> Result<Self, Error<'_>> {
        let parse = || match number::split(text)? {
            (_, unit) if time::factor(unit).is_some() => {
                Time::parse(text).map(Self::Time).map_err(|error| error.problem)
            }
            (number, "") => {
                let packets = u64::try_from(number.whole(1)?).ok().and_then(Packets::new);
                packets.map(Self::Count).ok_or(Problem::Large)
            }
            (_, unit) => Err(Problem::Unit(unit)),
        };
        parse().map_err(|problem| Error { text, quantity: Quantity::PacketBurst, problem })
    }

    /// The packets at `rate`, a time rounded up to a packet; `None` if they are more than [`Packets::MAX`].
    #[must_use]
    pub fn at(self, rate: PacketRate) -> Option<Packets> {
        match self {
            Self::Count(packets) => Some(packets),
            Self::Time(time) => time.packets_at(rate),
        }
    }
}

impl Time {
    /// What `rate` sends in this time, rounded up to a packet; `None` if that is more than [`Packets::MAX`].
    #[must_use]
    pub fn packets_at(self, rate: PacketRate) -> Option<Packets> {
        let packets = (self.nanoseconds() * u128::from(rate.0)).div_ceil(SECOND);
        u64::try_from(packets).ok().and_then(Packets::new)
    }
}

/// Packets per second in one `unit`.
fn factor(unit: &str) -> Option<u64> {
    const FACTORS: [(&str, u64); 4] = [("", 1), ("pps", 1), ("kpps", 1_000), ("mpps", 1_000_000)];
    let (_, factor) = FACTORS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(*factor)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString as _;

    use super::*;

    #[test]
    fn rates_are_read_and_echoed() {
        for (text, packets, shown, spelling) in [
            ("1", 1, "1 pps", "1pps"),
            ("10pps", 10, "10 pps", "10pps"),
            ("10KPPS", 10_000, "10 kpps", "10kpps"),
            ("1.5kpps", 1_500, "1.5 kpps", "1500pps"),
            ("0.000001mpps", 1, "1 pps", "1pps"),
            ("1000mpps", 1_000_000_000, "1000 Mpps", "1000mpps"),
            ("1000001", 1_000_001, "1000001 pps", "1000001pps"),
        ] {
            let rate = PacketRate::parse(text).expect(text);
            assert_eq!(rate.packets_per_second(), packets, "{text}");
            assert_eq!(rate.to_string(), shown);
            assert_eq!(rate.spelling().to_string(), spelling);
            assert_eq!(PacketRate::parse(spelling), Ok(rate));
        }
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for (text, problem) in [
            ("", Problem::Number),
            ("-1", Problem::Number),
            ("+1", Problem::Number),
            (" 1", Problem::Number),
            ("1e3", Problem::Unit("e3")),
            ("1 kpps", Problem::Unit(" kpps")),
            ("10k", Problem::Unit("k")),
            ("10gpps", Problem::Unit("gpps")),
            ("10kbit", Problem::Unit("kbit")),
            ("1.5", Problem::Fraction),
            ("0.0001kpps", Problem::Fraction),
            ("0", Problem::Zero),
            ("0kpps", Problem::Zero),
            ("1000000001", Problem::Large),
            ("99999999999999999999999999999999999999999mpps", Problem::Large),
        ] {
            let error = PacketRate::parse(text).expect_err(text);
            assert_eq!((error.quantity, error.problem), (Quantity::PacketRate, problem), "{text}");
        }
        let error = PacketRate::parse("10k").expect_err("no unit");
        assert_eq!(error.to_string(), "`k` in `10k` is not a unit of a packet rate");
        assert_eq!(error.hint().to_string(), "units: pps, kpps, mpps; a bare number is packets/s");
    }

    #[test]
    fn bursts_are_counts_or_times() {
        let rate = PacketRate(1_001);
        for (text, packets) in [("1", 1), ("4294967296", 1 << 32), ("1ms", 2), ("1s", 1_001), ("0.5S", 501)] {
            assert_eq!(PacketBurst::parse(text).expect(text).at(rate), Some(Packets(packets)), "{text}");
        }
        assert_eq!(PacketBurst::parse("5s").expect("a time").at(PacketRate::MAX), None);
        for (text, problem) in [
            ("", Problem::Number),
            ("-5", Problem::Number),
            ("0", Problem::Zero),
            ("0ms", Problem::Zero),
            ("1.5", Problem::Fraction),
            ("64kb", Problem::Unit("kb")),
            ("64pps", Problem::Unit("pps")),
            ("4294967297", Problem::Large),
        ] {
            let error = PacketBurst::parse(text).expect_err(text);
            assert_eq!((error.quantity, error.problem), (Quantity::PacketBurst, problem), "{text}");
        }
    }

    #[test]
    fn the_default_burst_takes_a_super_packet() {
        for (rate, burst) in [(1, 64), (256, 64), (257, 65), (10_000, 2_500), (1_000_000_000, 250_000_000)] {
            assert_eq!(PacketRate(rate).default_burst(), Packets(burst));
        }
        assert_eq!(Packets(2_500).time_at(PacketRate(10_000)).to_string(), "250 ms");
        assert_eq!(Packets(1).to_string(), "1 packet");
    }
}
