//! Which limits go together, and what the options that are not named come to.

use std::fmt::Display;

use shaper_common::{
    units::{Burst, Bytes, PacketBurst, PacketRate, Packets, Rate, Uneven},
    verdict::Action,
};

use crate::{
    args::LimitArgs,
    error::{Error, Result},
    model::{ByteLimit, Limits, PacketLimit},
};

/// The limits that `args` make of those there are `now`: what is not named stays, and what was never given follows.
pub(crate) fn limits(args: &LimitArgs, now: &Limits) -> Result<Limits> {
    if args.block {
        return Ok(Limits::BLOCK);
    }
    let bare = Limits { total: now.total, ..Limits::default() };
    let now = if args.unlimited { &bare } else { now };
    let rate = bytes(["--rate", "--burst"], args.rate, args.burst, now.rate)?;
    let soft = args.soft.or_else(|| now.soft.filter(|_| args.peak.is_none()));
    let peak = match (soft, rate) {
        (None, _) => args.peak,
        (Some(_), None) => return Err(lonely("--soft", "a rate", "--rate")),
        (Some(share), Some(rate)) => Some(share.above(rate.rate).map_err(|uneven| {
            let limit = rate.rate;
            match uneven {
                Uneven::Fraction(near) => Error::usage(
                    "--soft",
                    format!("{share} above {limit} is not a whole number of bits/s, and nothing is rounded"),
                    format!("the nearest is `--peak {}`", near.spelling()),
                ),
                Uneven::Large => Error::usage(
                    "--soft",
                    format!("{share} above {limit} is above the largest rate"),
                    format!("the largest rate is {}", Rate::MAX),
                ),
            }
        })?),
    };
    let peak = bytes(["--peak", "--peak-burst"], peak, args.peak_burst, now.peak)?;
    match (peak, rate) {
        (Some(_), None) => return Err(lonely("--peak", "a rate", "--rate")),
        (Some(peak), Some(rate)) if peak.rate <= rate.rate => {
            let option = if args.peak.is_some() { "--peak" } else { "--rate" };
            return Err(Error::usage(
                option,
                format!("the peak, {}, does not exceed the rate, {}", peak.rate, rate.rate),
                "give a `--peak` that does, or `--soft 10%`",
            ));
        }
        _ => {}
    }
    let pps = packets(args.pps, args.pps_burst, now.pps)?;
    let total = bytes(["--total", "--total-burst"], args.total, args.total_burst, now.total)?;
    if args.exceed.is_some() && rate.is_none() && pps.is_none() {
        return Err(lonely("--exceed", "a rate of bytes or packets", "--rate"));
    }
    if args.violate.is_some() && peak.is_none() {
        return Err(lonely("--violate", "a peak", "--peak"));
    }
    let exceed = args.exceed.unwrap_or(now.exceed);
    let violate = args.violate.unwrap_or(now.violate);
    Ok(Limits { rate, peak, soft, pps, total, exceed, violate, block: false })
}

fn bytes(
    [option, burst_option]: [&str; 2],
    rate: Option<Rate>,
    burst: Option<Burst>,
    now: Option<ByteLimit>,
) -> Result<Option<ByteLimit>> {
    let Some(rate) = rate.or(now.map(|now| now.rate)) else {
        return burst.map_or(Ok(None), |_| Err(lonely(burst_option, "a rate", option)));
    };
    let kept = now.filter(|now| now.burst_given).map(|now| now.burst);
    let depth = match (burst, kept) {
        (None, None) => rate.default_burst(),
        (None, Some(kept)) => kept,
        (Some(burst), _) => {
            let text = || match burst {
                Burst::Time(time) => time.to_string(),
                Burst::Size(bytes) => bytes.to_string(),
            };
            let most: [&dyn Display; 2] = [&Bytes::MAX, &Bytes::MAX.time_at(rate)];
            burst.at(rate).ok_or_else(|| too_long(burst_option, &text(), &rate, most))?
        }
    };
    Ok(Some(ByteLimit { rate, burst: depth, burst_given: burst.is_some() || kept.is_some() }))
}

fn packets(
    rate: Option<PacketRate>,
    burst: Option<PacketBurst>,
    now: Option<PacketLimit>,
) -> Result<Option<PacketLimit>> {
    let Some(rate) = rate.or(now.map(|now| now.rate)) else {
        return burst.map_or(Ok(None), |_| Err(lonely("--pps-burst", "a rate of packets", "--pps")));
    };
    let kept = now.filter(|now| now.burst_given).map(|now| now.burst);
    let depth = match (burst, kept) {
        (None, None) => rate.default_burst(),
        (None, Some(kept)) => kept,
        (Some(burst), _) => {
            let text = || match burst {
                PacketBurst::Time(time) => time.to_string(),
                PacketBurst::Count(packets) => packets.to_string(),
            };
            let most: [&dyn Display; 2] = [&Packets::MAX, &Packets::MAX.time_at(rate)];
            burst.at(rate).ok_or_else(|| too_long("--pps-burst", &text(), &rate, most))?
        }
    };
    Ok(Some(PacketLimit { rate, burst: depth, burst_given: burst.is_some() || kept.is_some() }))
}

/// An option without the one it belongs to.
fn lonely(option: &str, needed: &str, by: &str) -> Error {
    Error::usage(option, format!("needs {needed}, and there is none"), format!("give `{by}` too"))
}

fn too_long(option: &str, text: &str, rate: &dyn Display, [most, here]: [&dyn Display; 2]) -> Error {
    Error::usage(
        option,
        format!("{text} at {rate} is above the largest burst"),
        format!("the largest burst is {most}, here {here}"),
    )
}

/// What to know about limits that do what was asked for, but hardly what was meant.
#[must_use]
pub fn warnings(limits: &Limits) -> Vec<String> {
    let Limits { rate, peak, pps, total, exceed, violate, .. } = limits;
    let drops = |action: &Action| matches!(action, Action::Drop | Action::Ecn);
    // What is above the rate and not dropped does not slow TCP down; but what never fits is dropped whatever happens to
    // the rest, and with a peak it is the peak that it has to fit.
    let of_rate = if drops(exceed) {
        need(rate.as_ref(), Rate::tcp_burst)
    } else {
        need(rate.as_ref().filter(|_| peak.is_none()), super_packet)
    };
    let of_peak = need(peak.as_ref(), if drops(violate) { Rate::tcp_burst } else { super_packet });
    let of_total = need(total.as_ref(), Rate::tcp_burst);
    let byte_limits =
        [("", "--burst", of_rate), ("the peak, ", "--peak-burst", of_peak), ("the total, ", "--total-burst", of_total)];
    let mut warnings = Vec::new();
    for (name, option, short) in byte_limits {
        if let Some((ByteLimit { rate, burst, .. }, needed)) = short {
            let comma = if name.is_empty() { "" } else { "," };
            warnings.push(format!(
                "a TCP flow cannot reach {name}{rate}{comma} with a burst of {burst}, it needs {option} {} ({})",
                needed.spelling(),
                needed.time_at(*rate)
            ));
        }
    }
    if let Some(PacketLimit { burst, .. }) = pps.filter(|pps| pps.burst < Packets::SUPER) {
        warnings.push(format!(
            "a burst of {burst} can refuse every super-packet (GSO) of a TCP flow, which counts as its segments, about 45: \
             it needs --pps-burst {}",
            Packets::SUPER.get()
        ));
    }
    warnings
}

/// The limit with the burst it needs, if it has less.
fn need(limit: Option<&ByteLimit>, needed: impl Fn(Rate) -> Bytes) -> Option<(&ByteLimit, Bytes)> {
    limit.map(|limit| (limit, needed(limit.rate))).filter(|(limit, needed)| limit.burst < *needed)
}

/// The largest GSO packet.
fn super_packet(_: Rate) -> Bytes {
    Bytes::new(1 << 16).unwrap_or(Bytes::MAX)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::plan::example::{byte_limit, limits as example, packet_limit};

    /// What `attach` with these options asks for.
    fn typed(options: &str) -> Result<Limits> {
        changed(options, &Limits::default())
    }

    /// What `set` with these options makes of `now`.
    fn changed(options: &str, now: &Limits) -> Result<Limits> {
        let crate::args::Command::Set(set) = crate::plan::example::command(&format!("set eth0 {options}")) else {
            panic!("not `set`")
        };
        limits(&set.limits, now)
    }

    #[test]
    fn every_limit_has_its_default_burst() {
        let limits = typed("--rate 100mbit --peak 200mbit --pps 10kpps --total 8mbit --exceed dscp=8 --violate ecn");
        assert_eq!(
            limits.unwrap(),
            Limits {
                rate: byte_limit(100_000_000, 3_125_000, false),
                peak: byte_limit(200_000_000, 6_250_000, false),
                soft: None,
                pps: packet_limit(10_000, 2_500, false),
                total: byte_limit(8_000_000, 262_144, false),
                exceed: Action::Dscp(8),
                violate: Action::Ecn,
                block: false,
            }
        );
        assert_eq!(typed("--block").unwrap(), Limits::BLOCK);
        let given = typed("--pps 1000 --pps-burst 1.5s").unwrap();
        assert_eq!(given, Limits { pps: packet_limit(1_000, 1_500, true), ..Limits::default() });
    }

    #[test]
    fn a_soft_limit_follows_the_rate_until_a_peak_is_given() {
        let soft = typed("--rate 100mbit --soft 10%").unwrap();
        assert_eq!(soft.peak, byte_limit(110_000_000, 3_437_500, false));
        let more = changed("--rate 200mbit", &soft).unwrap();
        assert_eq!(more.peak, byte_limit(220_000_000, 6_875_000, false));
        let peak = changed("--peak 300mbit", &more).unwrap();
        assert_eq!((peak.peak, peak.soft), (byte_limit(300_000_000, 9_375_000, false), None));
        let back = changed("--soft 50%", &peak).unwrap();
        assert_eq!(back.peak, byte_limit(300_000_000, 9_375_000, false));
    }

    #[test]
    fn set_keeps_what_it_does_not_name() {
        let now = typed("--rate 100mbit --burst 1mb --pps 100 --exceed pass").unwrap();
        let total = changed("--total 1gbit", &now).unwrap();
        assert_eq!(total, Limits { total: byte_limit(1_000_000_000, 31_250_000, false), ..now.clone() });
        let faster = changed("--rate 1gbit --pps 10kpps", &now).unwrap();
        assert_eq!(faster.rate, byte_limit(1_000_000_000, 1 << 20, true), "a burst that was given stays");
        assert_eq!(faster.pps, packet_limit(10_000, 2_500, false), "one that was not follows");
        assert_eq!(faster.exceed, Action::Pass);
        assert_eq!(changed("--pps-burst 7", &now).unwrap().pps, packet_limit(100, 7, true));
        assert_eq!(changed("--block", &now).unwrap(), Limits::BLOCK);
        assert_eq!(
            changed("--pps 5", &Limits::BLOCK).unwrap(),
            Limits { pps: packet_limit(5, 64, false), ..Limits::default() }
        );
    }

    #[test]
    fn limits_that_do_not_go_together_are_refused() {
        for (options, cause, hint) in [
            ("--pps 5 --burst 64kb", "`--burst`: needs a rate, and there is none", "give `--rate` too"),
            ("--rate 8 --pps-burst 5", "`--pps-burst`: needs a rate of packets, and there is none", "give `--pps` too"),
            ("--rate 8 --peak-burst 64kb", "`--peak-burst`: needs a rate, and there is none", "give `--peak` too"),
            ("--rate 8 --total-burst 64kb", "`--total-burst`: needs a rate, and there is none", "give `--total` too"),
            ("--pps 5 --peak 1mbit", "`--peak`: needs a rate, and there is none", "give `--rate` too"),
            ("--pps 5 --soft 10%", "`--soft`: needs a rate, and there is none", "give `--rate` too"),
            (
                "--total 1mbit --exceed pass",
                "`--exceed`: needs a rate of bytes or packets, and there is none",
                "give `--rate` too",
            ),
            ("--rate 1mbit --violate pass", "`--violate`: needs a peak, and there is none", "give `--peak` too"),
            (
                "--rate 1mbit --peak 1mbit",
                "`--peak`: the peak, 1 Mbit/s, does not exceed the rate, 1 Mbit/s",
                "give a `--peak` that does, or `--soft 10%`",
            ),
            (
                "--rate 8 --soft 10%",
                "`--soft`: 10% above 8 bit/s is not a whole number of bits/s, and nothing is rounded",
                "the nearest is `--peak 9bit`",
            ),
            (
                "--rate 1tbit --soft 1%",
                "`--soft`: 1% above 1 Tbit/s is above the largest rate",
                "the largest rate is 1 Tbit/s",
            ),
            (
                "--rate 1tbit --burst 20s",
                "`--burst`: 20 s at 1 Tbit/s is above the largest burst",
                "the largest burst is 1024 GiB, here 8.8 s",
            ),
            (
                "--rate 8 --total 1tbit --total-burst 20s",
                "`--total-burst`: 20 s at 1 Tbit/s is above the largest burst",
                "the largest burst is 1024 GiB, here 8.8 s",
            ),
            (
                "--pps 1000mpps --pps-burst 5s",
                "`--pps-burst`: 5 s at 1000 Mpps is above the largest burst",
                "the largest burst is 4294967296 packets, here 4.29 s",
            ),
        ] {
            let error = typed(options).unwrap_err();
            assert_eq!((error.exit_code(), error.to_string().as_str(), &*error.hint()), (1, cause, hint), "{options}");
        }
        let now = typed("--rate 1mbit --peak 2mbit").unwrap();
        assert_eq!(
            changed("--rate 3mbit", &now).unwrap_err().to_string(),
            "`--rate`: the peak, 2 Mbit/s, does not exceed the rate, 3 Mbit/s"
        );
    }

    #[test]
    fn a_burst_too_small_for_tcp_is_pointed_out() {
        let rate = |bits, bytes| Limits { rate: byte_limit(bits, bytes, true), ..Limits::default() };
        assert_eq!(warnings(&rate(1_000_000_000, 25_000_000)), [""; 0]);
        assert_eq!(
            warnings(&rate(1_000_000_000, 24_999_999)),
            ["a TCP flow cannot reach 1 Gbit/s with a burst of 24999999 B, it needs --burst 25000000b (200 ms)"]
        );
        assert_eq!(
            warnings(&rate(1_000_000, 1500)),
            ["a TCP flow cannot reach 1 Mbit/s with a burst of 1500 B, it needs --burst 64kib (524 ms)"]
        );
        let all =
            "--rate 10mbit --peak 20mbit --peak-burst 9kb --pps 10kpps --pps-burst 9 --total 1gbit --total-burst 1mb";
        assert_eq!(
            warnings(&typed(all).unwrap()),
            [
                "a TCP flow cannot reach the peak, 20 Mbit/s, with a burst of 9 KiB, it needs --peak-burst 500000b (200 ms)",
                "a TCP flow cannot reach the total, 1 Gbit/s, with a burst of 1 MiB, it needs --total-burst 25000000b \
                 (200 ms)",
                "a burst of 9 packets can refuse every super-packet (GSO) of a TCP flow, which counts as its segments, \
                 about 45: it needs --pps-burst 64",
            ]
        );
    }

    #[test]
    fn a_burst_above_which_nothing_is_dropped_need_only_hold_a_packet() {
        for (options, count) in [
            ("--rate 1gbit --burst 64kb", 1),
            ("--rate 1gbit --burst 64kb --exceed ecn", 1),
            ("--rate 1gbit --burst 64kb --exceed pass", 0),
            ("--rate 1gbit --burst 63kb --exceed pass", 1),
            ("--rate 1gbit --burst 1500 --exceed pass --peak 2gbit", 0),
            ("--rate 1gbit --burst 1500 --exceed pass --peak 2gbit --peak-burst 64kb", 1),
            ("--rate 1gbit --burst 1500 --exceed pass --peak 2gbit --peak-burst 64kb --violate pass", 0),
        ] {
            assert_eq!(warnings(&typed(options).unwrap()).len(), count, "{options}");
        }
    }

    #[test]
    fn unlimited_ends_the_limits_of_keys() {
        assert_eq!(typed("--unlimited").unwrap(), Limits::default());
        let total = byte_limit(1_000_000_000, 31_250_000, false);
        let only_total = Limits { total, ..Limits::default() };
        assert_eq!(typed("--unlimited --total 1gbit").unwrap(), only_total);
        assert_eq!(changed("--unlimited", &example()).unwrap(), only_total);
        assert_eq!(changed("--unlimited", &Limits::BLOCK).unwrap(), Limits::default());
        let rate = changed("--rate 100mbit", &Limits::default()).unwrap();
        assert_eq!(rate.rate, byte_limit(100_000_000, 3_125_000, false));
    }

    #[test]
    fn the_default_bursts_are_enough_for_tcp() {
        assert_eq!(warnings(&example()), [""; 0]);
        for rate in ["8", "1000", "2621441", "999999999999"] {
            let options = format!("--rate {rate} --peak 1tbit --total {rate} --pps 1");
            assert_eq!(warnings(&typed(&options).unwrap()), [""; 0]);
        }
    }
}
