//! The grammar of quantities: what is read and as what, what is refused and why, and that every echo can be typed.

use proptest::prelude::*;
use shaper_common::units::{Burst, Bytes, Problem, Quantity, Rate, Time};

const TIB: u64 = 1 << 40;

fn rate(bits_per_second: u64) -> Rate {
    Rate::new(bits_per_second).expect("a rate in range")
}

fn bytes(bytes: u64) -> Bytes {
    Bytes::new(bytes).expect("a size in range")
}

#[test]
fn rates_are_bits_per_second() {
    for (text, bits) in [
        ("8", 8),
        ("100", 100),
        ("00100", 100),
        ("8bit", 8),
        ("1kbit", 1_000),
        ("1mbit", 1_000_000),
        ("1gbit", 1_000_000_000),
        ("1tbit", 1_000_000_000_000),
        ("1000000000000", 1_000_000_000_000),
        ("1kibit", 1 << 10),
        ("1mibit", 1 << 20),
        ("1gibit", 1 << 30),
        ("0.5tibit", 1 << 39),
        ("1B/s", 8),
        ("1kB/s", 8_000),
        ("1MB/s", 8_000_000),
        ("1GB/s", 8_000_000_000),
        ("0.125TB/s", 1_000_000_000_000),
        ("1KiB/s", 8 << 10),
        ("1MiB/s", 8 << 20),
        ("1GiB/s", 8 << 30),
        ("1GBIT", 1_000_000_000),
        ("1GbIt", 1_000_000_000),
        ("1KIBIT", 1 << 10),
        ("1KB/S", 8_000),
        ("1mB/s", 8_000_000),
        ("1.5mbit", 1_500_000),
        ("12.0", 12),
        ("12.000000000000000000000000000000000000000000000", 12),
        ("0.008kbit", 8),
        ("0.000000000008tbit", 8),
        ("99.999999999gbit", 99_999_999_999),
        ("1.125B/s", 9),
        ("000000000000000000000000000000000000000000000000000000000000000001kbit", 1_000),
    ] {
        assert_eq!(Rate::parse(text).map(Rate::bits_per_second), Ok(bits), "{text}");
    }
}

#[test]
fn refused_rates_say_why() {
    let units = |text, unit| (text, Problem::Unit(unit));
    for (text, problem) in [
        ("", Problem::Number),
        (" ", Problem::Number),
        (" 1", Problem::Number),
        (".", Problem::Number),
        (".5mbit", Problem::Number),
        ("1.", Problem::Number),
        ("1.mbit", Problem::Number),
        ("-1", Problem::Number),
        ("-0", Problem::Number),
        ("+1", Problem::Number),
        ("mbit", Problem::Number),
        ("١mbit", Problem::Number),
        ("NaN", Problem::Number),
        ("inf", Problem::Number),
        units("1 ", " "),
        units("1 mbit", " mbit"),
        units("1mbit ", "mbit "),
        units("1e6", "e6"),
        units("0x10", "x10"),
        units("1_000", "_000"),
        units("1,5mbit", ",5mbit"),
        units("1.5.2", ".2"),
        units("1k", "k"),
        units("1m", "m"),
        units("1mb", "mb"),
        units("1MB", "MB"),
        units("1ms", "ms"),
        units("1pps", "pps"),
        units("1pbit", "pbit"),
        units("1mbits", "mbits"),
        units("1µbit", "µbit"),
        units("1mébit", "mébit"),
        units("1/s", "/s"),
        units("1%", "%"),
        units("1mbit\0", "mbit\0"),
        ("1mbit/s", Problem::PerSecond("m")),
        ("1Gbit/s", Problem::PerSecond("g")),
        ("0.1", Problem::Fraction),
        ("1.5", Problem::Fraction),
        ("0.0001kbit", Problem::Fraction),
        ("1.0000000001gbit", Problem::Fraction),
        ("0.9tibit", Problem::Fraction), // 989560464998.4
        ("8.00000000000000000000000000000000000000000000001", Problem::Fraction),
        ("1.00000000001gibit", Problem::Fraction),
        ("0", Problem::Zero),
        ("0.0", Problem::Zero),
        ("0mbit", Problem::Zero),
        ("0.000gbit", Problem::Zero),
        ("1", Problem::Small),
        ("7bit", Problem::Small),
        ("0.125B/s", Problem::Small),
        ("0.007kbit", Problem::Small),
        ("1000000000001", Problem::Large),
        ("1.000000000001tbit", Problem::Large),
        ("1tibit", Problem::Large),
        ("126GB/s", Problem::Large),
        ("18446744073709551616", Problem::Large),
        ("18446744073709551624", Problem::Large), // 8, had it wrapped at 2^64
        ("340282366920938463463374607431768211464", Problem::Large), // 8, had it wrapped at 2^128
        ("99999999999999999999999999999999999999999999999999999999999999tbit", Problem::Large),
    ] {
        let error = Rate::parse(text).expect_err(text);
        assert_eq!((error.text, error.quantity, error.problem), (text, Quantity::Rate, problem));
    }
}

#[test]
fn bits_and_bytes_are_never_confused() {
    for (text, either, or) in [
        ("100bps", "100bit", "100B/s"),
        ("100kbps", "100kbit", "100kB/s"),
        ("100mbps", "100mbit", "100MB/s"),
        ("100Mbps", "100mbit", "100MB/s"),
        ("100MBps", "100mbit", "100MB/s"),
        ("100MBPS", "100mbit", "100MB/s"),
        ("1.5gbps", "1.5gbit", "1.5GB/s"),
        ("1tbps", "1tbit", "1TB/s"),
        ("1kibps", "1kibit", "1KiB/s"),
        ("1MiBps", "1mibit", "1MiB/s"),
        ("100b/s", "100bit", "100B/s"),
        ("100kb/s", "100kbit", "100kB/s"),
        ("100Mb/s", "100mbit", "100MB/s"),
        ("100gib/s", "100gibit", "100GiB/s"),
    ] {
        let error = Rate::parse(text).expect_err(text);
        assert!(matches!(error.problem, Problem::Ambiguous { .. }), "{error}");
        assert_eq!(error.hint().to_string(), format!("write `{either}` or `{or}`"));
    }
}

#[test]
fn sizes_are_powers_of_1024() {
    for (text, count) in [
        ("1", 1),
        ("1500", 1500),
        ("1b", 1),
        ("1B", 1),
        ("1k", 1 << 10),
        ("1kb", 1 << 10),
        ("1Kb", 1 << 10),
        ("1KiB", 1 << 10),
        ("1m", 1 << 20),
        ("1mb", 1 << 20),
        ("1mib", 1 << 20),
        ("1g", 1 << 30),
        ("1gb", 1 << 30),
        ("1gib", 1 << 30),
        ("1kbit", 128),
        ("1mbit", 131_072),
        ("2gbit", 268_435_456),
        ("8192gbit", TIB),
        ("1024g", TIB),
        ("1.5k", 1536),
        ("0.5kbit", 64),
        ("0.0078125kbit", 1),
        ("0.000000000931322574615478515625gib", 1),
    ] {
        let size = bytes(count);
        assert_eq!(Bytes::parse(text), Ok(size), "{text}");
        assert_eq!(Burst::parse(text), Ok(Burst::Size(size)), "{text}");
    }
}

#[test]
fn refused_sizes_say_why() {
    for (text, problem) in [
        ("", Problem::Number),
        ("-1", Problem::Number),
        ("1.k", Problem::Number),
        ("1kB/s", Problem::Unit("kB/s")),
        ("1bit", Problem::Unit("bit")),
        ("1kibit", Problem::Unit("kibit")),
        ("1t", Problem::Unit("t")),
        ("1 k", Problem::Unit(" k")),
        ("1e3", Problem::Unit("e3")),
        ("0.5", Problem::Fraction),
        ("0.001kbit", Problem::Fraction),
        ("0.0000000009313225746154785156251gib", Problem::Fraction),
        ("0", Problem::Zero),
        ("0k", Problem::Zero),
        ("1099511627777", Problem::Large),
        ("1025g", Problem::Large),
        ("18446744073709551617", Problem::Large),
        ("18014398509481984k", Problem::Large), // 0, had it wrapped
    ] {
        let error = Bytes::parse(text).expect_err(text);
        assert_eq!((error.text, error.quantity, error.problem), (text, Quantity::Size, problem));
        let error = Burst::parse(text).expect_err(text);
        assert_eq!((error.text, error.quantity, error.problem), (text, Quantity::Burst, problem));
    }
}

#[test]
fn a_burst_given_as_a_time_is_rounded_up_to_a_byte() {
    for (rate, burst, bytes) in [
        ("1gbit", "250ms", Some(31_250_000)),
        ("1gbit", "250MS", Some(31_250_000)),
        ("1gbit", "1s", Some(125_000_000)),
        ("1gbit", "8ns", Some(1)),
        ("1gbit", "9ns", Some(2)),
        ("1gbit", "0.25s", Some(31_250_000)),
        ("8bit", "1ns", Some(1)),
        ("8bit", "1000.000000001s", Some(1001)),
        ("8bit", "1099511627776s", Some(TIB)),
        ("1tbit", "1us", Some(125_000)),
        ("1tbit", "8.796093022s", Some(1_099_511_627_750)),
        ("1tbit", "8.796093023s", None),
        ("1tbit", "1099511627776s", None),
    ] {
        let rate = Rate::parse(rate).expect(rate);
        let burst = Burst::parse(burst).expect(burst);
        assert!(matches!(burst, Burst::Time(_)));
        assert_eq!(burst.at(rate).map(Bytes::get), bytes, "{burst:?}");
    }
    for (text, problem) in [
        ("0s", Problem::Zero),
        ("0.1ns", Problem::Fraction),
        ("1.0000000001s", Problem::Fraction),
        ("1099511627777s", Problem::Large),
        ("99999999999999999999999999999999999999999s", Problem::Large),
        ("-1s", Problem::Number),
        (".5s", Problem::Number),
    ] {
        assert_eq!(Burst::parse(text).expect_err(text).problem, problem, "{text}");
    }
    for text in ["1min", "1h", "1sec", "1m s"] {
        assert!(matches!(Burst::parse(text).expect_err(text).problem, Problem::Unit(_)), "{text}");
    }
}

#[test]
fn default_bursts_follow_the_rate() {
    for (bits, default, tcp) in [
        (8, 262_144, 65_536),
        (1_000_000, 262_144, 65_536),
        (2_621_440, 262_144, 65_536),
        (2_621_441, 262_144, 65_537),
        (8_388_608, 262_144, 209_716),
        (8_388_609, 262_145, 209_716),
        (100_000_000, 3_125_000, 2_500_000),
        (1_000_000_000, 31_250_000, 25_000_000),
        (1_000_000_000_000, 31_250_000_000, 25_000_000_000),
    ] {
        let rate = rate(bits);
        assert_eq!((rate.default_burst().get(), rate.tcp_burst().get()), (default, tcp), "{rate}");
    }
}

#[test]
fn values_are_echoed_in_full() {
    for (bits, echo, spelling) in [
        (8, "8 bit/s", "8bit"),
        (999, "999 bit/s", "999bit"),
        (1_000, "1 kbit/s", "1kbit"),
        (1_500, "1.5 kbit/s", "1500bit"),
        (1_001, "1.001 kbit/s", "1001bit"),
        (10_001, "10001 bit/s", "10001bit"),
        (1_500_000, "1.5 Mbit/s", "1500kbit"),
        (1_544_000, "1.544 Mbit/s", "1544kbit"),
        (15_625_000, "15625 kbit/s", "15625kbit"),
        (1_000_001, "1000001 bit/s", "1000001bit"),
        (1_000_000_000, "1 Gbit/s", "1gbit"),
        (1_000_010_000, "1000010 kbit/s", "1000010kbit"),
        (1_073_741_824, "1073741824 bit/s", "1073741824bit"),
        (2_500_000_000, "2.5 Gbit/s", "2500mbit"),
        (999_999_999_999, "999999999999 bit/s", "999999999999bit"),
        (1_000_000_000_000, "1 Tbit/s", "1tbit"),
    ] {
        let rate = rate(bits);
        assert_eq!((rate.to_string().as_str(), rate.spelling().to_string().as_str()), (echo, spelling));
    }
    for (count, echo, spelling) in [
        (1, "1 B", "1b"),
        (1_500, "1500 B", "1500b"),
        (1_536, "1.5 KiB", "1536b"),
        (65_536, "64 KiB", "64kib"),
        (65_537, "65537 B", "65537b"),
        (268_435_456, "256 MiB", "256mib"),
        (31_250_000, "31250000 B", "31250000b"),
        (TIB, "1024 GiB", "1024gib"),
    ] {
        let bytes = bytes(count);
        assert_eq!((bytes.to_string().as_str(), bytes.spelling().to_string().as_str()), (echo, spelling));
    }
    for (nanoseconds, echo) in [
        (1, "1 ns"),
        (999, "999 ns"),
        (1_000, "1 us"),
        (1_040, "1.04 us"),
        (250_000_000, "250 ms"),
        (999_999_999, "1000 ms"),
        (2_147_483_648, "2.15 s"),
        (2_095_000_000, "2.1 s"),
        (20_950_000_000, "21 s"),
        (20_940_000_000, "20.9 s"),
        (123_456_789_000_000, "123457 s"),
    ] {
        assert_eq!(Time::new(nanoseconds).expect("in range").to_string(), echo);
    }
}

#[test]
fn the_burst_of_the_readme_takes_two_seconds() {
    let (rate, burst) = (Rate::parse("1gbit").expect("a rate"), Bytes::parse("2gbit").expect("a size"));
    assert_eq!(format!("{rate}, burst {burst} = {}", burst.time_at(rate)), "1 Gbit/s, burst 256 MiB = 2.15 s");
}

#[test]
fn errors_are_one_line_of_cause_and_one_of_what_to_do() {
    for (text, cause, hint) in [
        (
            "100mbps",
            "`mbps` in `100mbps`: tc reads this as bytes/s, most others as bits/s",
            "write `100mbit` or `100MB/s`",
        ),
        ("1Gbit/s", "`1Gbit/s`: units of a rate are per second without `/s`", "write `1gbit`"),
        ("0", "`0` is not a rate: it is zero", "the smallest rate is 8bit"),
        ("2tbit", "`2tbit` is above the largest rate", "the largest rate is 1tbit"),
        ("0.1", "`0.1` is not a whole number of bits/s, and nothing is rounded", "write a whole number of bits/s"),
        (
            "-5mbit",
            "`-5mbit` is not a rate: it does not start with a plain number",
            "write digits and a unit, like 100mbit, 1.5gbit or 12MB/s: no sign, exponent, space or comma",
        ),
    ] {
        let error = Rate::parse(text).expect_err(text);
        assert_eq!((error.to_string().as_str(), error.hint().to_string().as_str()), (cause, hint));
    }
}

/// Units of rates and what one is, in bits per second.
const RATE_UNITS: [(&str, u128); 15] = [
    ("", 1),
    ("bit", 1),
    ("kbit", 1_000),
    ("Mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("Kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
    ("KiB/s", 8 << 10),
    ("MiB/s", 8 << 20),
];

proptest! {
    #[test]
    fn every_rate_reads_as_its_spelling(bits in 8..=1_000_000_000_000_u64) {
        let rate = rate(bits);
        let spelling = rate.spelling().to_string();
        prop_assert_eq!(Rate::parse(&spelling), Ok(rate));
        let echo = rate.to_string().replace(' ', "").replace("/s", "");
        prop_assert_eq!(Rate::parse(&echo), Ok(rate));
    }

    #[test]
    fn every_size_reads_as_its_spelling(count in 1..=TIB) {
        let bytes = bytes(count);
        let spelling = bytes.spelling().to_string();
        prop_assert_eq!(Bytes::parse(&spelling), Ok(bytes));
        let echo = bytes.to_string().replace(' ', "");
        prop_assert_eq!(Bytes::parse(&echo), Ok(bytes));
    }

    /// Against the fraction (whole * 10^n + part) * unit / 10^n, computed at once.
    #[test]
    fn decimals_are_exact(whole in 0..10_000_u128, part in 0..1_000_000_u128, digits in 6..10_usize, unit in 0..RATE_UNITS.len()) {
        let (name, size) = RATE_UNITS[unit];
        let text = format!("{whole}.{part:0digits$}{name}");
        let tens = 10_u128.pow(u32::try_from(digits).expect("small"));
        let numerator = (whole * tens + part) * size;
        let expected = match (numerator / tens, numerator % tens) {
            (_, 1..) => Err(Problem::Fraction),
            (0, 0) => Err(Problem::Zero),
            (1..8, 0) => Err(Problem::Small),
            (1_000_000_000_001.., 0) => Err(Problem::Large),
            (bits, 0) => Ok(bits),
        };
        let found = Rate::parse(&text).map(|rate| u128::from(rate.bits_per_second())).map_err(|error| error.problem);
        prop_assert_eq!(found, expected, "{}", text);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}|[0-9.]{0,8}[a-zA-Z/]{0,6}") {
        for (message, hint) in [
            Rate::parse(&text).err().map(|error| (error.to_string(), error.hint().to_string())),
            Burst::parse(&text).err().map(|error| (error.to_string(), error.hint().to_string())),
        ].into_iter().flatten() {
            prop_assert!(!message.is_empty() && !hint.is_empty());
        }
    }

    /// A burst and the time it takes are each other's inverse, but for the rounding up.
    #[test]
    fn times_cover_their_bytes(bits in 8..=1_000_000_000_000_u64, count in 1..=TIB) {
        let (rate, bytes) = (rate(bits), bytes(count));
        let back = bytes.time_at(rate).bytes_at(rate).unwrap_or(Bytes::MAX);
        prop_assert!(bytes <= back && back.get() - bytes.get() <= bits / 8_000_000_000 + 1);
    }
}
