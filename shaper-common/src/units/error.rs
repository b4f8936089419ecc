//! Why a quantity was refused, and what to write instead.

use core::fmt::{self, Display};

use super::{bytes, packets, rate, share, time};

/// What a text should have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Bits per second.
    Rate,
    /// Bytes.
    Size,
    /// Nanoseconds.
    Time,
    /// Bytes, or the time in which they are sent.
    Burst,
    /// Packets per second.
    PacketRate,
    /// Packets, or the time in which they are sent.
    PacketBurst,
    /// Percent.
    Share,
}

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// It does not start with `digits[.digits]`.
    Number,
    /// No such unit.
    Unit(&'a str),
    /// `mbps` and its kind: bytes to some, bits to others. Holds the prefix (`M`, `Ki`) in two spellings.
    Ambiguous {
        /// The unit as written.
        unit: &'a str,
        /// Prefix of the unit of bits.
        bits: &'static str,
        /// Prefix of the unit of bytes.
        bytes: &'static str,
    },
    /// `mbit/s` and its kind: rates are per second without saying so. Holds the prefix.
    PerSecond(&'static str),
    /// It is not a whole number of the base unit.
    Fraction,
    /// It is zero.
    Zero,
    /// It is below the smallest value.
    Small,
    /// It is above the largest value.
    Large,
}

/// A refused quantity. `Display` is the cause and [`Error::hint`] what to do, one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error<'a> {
    /// The text as written.
    pub text: &'a str,
    /// What it should have been.
    pub quantity: Quantity,
    /// What is wrong with it.
    pub problem: Problem<'a>,
}

impl core::error::Error for Error<'_> {}

impl Display for Error<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, quantity, problem } = self;
        match problem {
            Problem::Number => write!(f, "`{text}` is not a {quantity}: it does not start with a plain number"),
            Problem::Unit(unit) => write!(f, "`{unit}` in `{text}` is not a unit of a {quantity}"),
            Problem::Ambiguous { unit, .. } => {
                write!(f, "`{unit}` in `{text}`: tc reads this as bytes/s, most others as bits/s")
            }
            Problem::PerSecond(_) => write!(f, "`{text}`: units of a rate are per second without `/s`"),
            Problem::Fraction => {
                write!(f, "`{text}` is not a whole number of {}, and nothing is rounded", quantity.base())
            }
            Problem::Zero => write!(f, "`{text}` is not a {quantity}: it is zero"),
            Problem::Small => write!(f, "`{text}` is below the smallest {quantity}"),
            Problem::Large => write!(f, "`{text}` is above the largest {quantity}"),
        }
    }
}

impl Error<'_> {
    /// What to write instead.
    pub fn hint(&self) -> impl Display + '_ {
        fmt::from_fn(|f| {
            let Self { text, quantity, problem } = self;
            let (smallest, largest) = quantity.range();
            match problem {
                Problem::Number => write!(
                    f,
                    "write digits and a unit, like {}: no sign, exponent, space or comma",
                    quantity.examples()
                ),
                Problem::Unit(_) => write!(f, "units: {}", quantity.units()),
                Problem::Ambiguous { unit, bits, bytes } => {
                    let number = text.strip_suffix(unit).unwrap_or(text);
                    write!(f, "write `{number}{bits}bit` or `{number}{bytes}B/s`")
                }
                Problem::PerSecond(prefix) => {
                    let number = text.trim_end_matches(|c: char| !c.is_ascii_digit());
                    write!(f, "write `{number}{prefix}bit`")
                }
                Problem::Fraction => write!(f, "write a whole number of {}", quantity.base()),
                Problem::Zero | Problem::Small => write!(f, "the smallest {quantity} is {smallest}"),
                Problem::Large => write!(f, "the largest {quantity} is {largest}"),
            }
        })
    }
}

impl Quantity {
    const fn base(self) -> &'static str {
        match self {
            Self::Rate => "bits/s",
            Self::Size | Self::Burst => "bytes",
            Self::Time => "nanoseconds",
            Self::PacketRate => "packets/s",
            Self::PacketBurst => "packets",
            Self::Share => "millionths of a percent",
        }
    }

    const fn units(self) -> &'static str {
        match self {
            Self::Rate => rate::UNITS,
            Self::Size => bytes::UNITS,
            Self::Time => time::UNITS,
            Self::Burst => {
                "b, kb, mb, gb (or k, m, g, kib, ..), bits: kbit, mbit, gbit, time at the rate: ns, us, ms, s"
            }
            Self::PacketRate => packets::UNITS,
            Self::PacketBurst => "none for packets, or time at the rate: ns, us, ms, s",
            Self::Share => share::UNITS,
        }
    }

    const fn examples(self) -> &'static str {
        match self {
            Self::Rate => "100mbit, 1.5gbit or 12MB/s",
            Self::Size => "1500, 64kb or 1.5mb",
            Self::Time => "250ms or 1.5s",
            Self::Burst => "1500, 64kb, 2gbit or 250ms",
            Self::PacketRate => "500, 10kpps or 1.5mpps",
            Self::PacketBurst => "64 or 250ms",
            Self::Share => "10% or 12.5%",
        }
    }

    const fn range(self) -> (&'static str, &'static str) {
        match self {
            Self::Rate => ("8bit", "1tbit"),
            Self::Size | Self::Burst => ("1b", "1024gb"),
            Self::Time => ("1ns", "1099511627776s"),
            Self::PacketRate => ("1pps", "1000mpps"),
            Self::PacketBurst => ("1", "4294967296"),
            Self::Share => ("0.000001%", "1000000%"),
        }
    }
}

impl Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rate => "rate",
            Self::Size => "size",
            Self::Time => "time",
            Self::Burst => "burst",
            Self::PacketRate => "packet rate",
            Self::PacketBurst => "packet burst",
            Self::Share => "share",
        })
    }
}
