//! Files that are drawn: what is written reads back, and nothing that is read does harm.

use super::*;

proptest! {
    #![proptest_config(Runs { failure_persistence: None, ..Runs::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, text in "\\PC*") {
        wrong(&bytes);
        wrong(text.as_bytes());
    }

    #[test]
    fn any_change_of_a_file_is_read_or_refused(at in 0..EXAMPLE.len(), len in 0..40_usize, with in "[\\[\\]{}=\"'#.\\\\\n a0-]{0,3}") {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        let end = (at + len).min(bytes.len());
        bytes.splice(at..end, with.into_bytes());
        wrong(&bytes);
    }

    #[test]
    fn what_is_written_reads_back(found in prop::collection::vec(founds(), 0..4)) {
        // Of a device and direction there is one.
        let found: Vec<Found> =
            found.into_iter().enumerate().map(|(n, found)| Found { dev: format!("{n}{}", found.dev), ..found }).collect();
        let text = write(&found);
        prop_assert!(text.lines().all(|line| !line.contains(crate::text::is_unsafe)));
        let read = understood(&text).attachments;
        prop_assert_eq!(read.len(), found.len());
        for (read, found) in read.iter().zip(&found) {
            prop_assert_eq!(&read.dev, &found.dev);
            prop_assert_eq!(read.direction.directions(), &[found.direction]);
            prop_assert_eq!(&read.config, &found.config);
        }
    }
}

fn founds() -> impl Strategy<Value = Found> {
    ("[a-zA-Z0-9_.\"'\\\\ü-]{1,6}", prop_oneof![Just(Direction::Ingress), Just(Direction::Egress)], configs())
        .prop_map(|(dev, direction, config)| Found { dev, direction, config, ..example::found() })
}

fn configs() -> impl Strategy<Value = Config> {
    let first = (
        limits(),
        pers(),
        1..=Config::MOST_FLOWS,
        prop_oneof![Just(Overflow::Shared), Just(Overflow::Open), Just(Overflow::Closed)],
    );
    let second = (
        prop_oneof![Just(AccountChoice::L2), Just(AccountChoice::L3), Just(AccountChoice::Wire)],
        -64..=256_i32,
        0..=256_u32,
        prop_oneof![Just(HookChoice::Auto), Just(HookChoice::Tcx), Just(HookChoice::Clsact)],
        prop_oneof![Just(Order::First), Just(Order::Last)],
    );
    let rules = prop::collection::vec(rules(), 0..=5);
    (first, second, rules).prop_map(|(first, second, mut rules)| {
        let (limits, per, max_flows, overflow) = first;
        let (account, overhead, mpu, hook, order) = second;
        for (n, rule) in rules.iter_mut().enumerate() {
            // No two are alike.
            rule.name.insert(0, char::from(b'a' + n as u8));
            rule.name.truncate(rule.name.trim_end().len());
            rule.matches.proto = Some([6, 17, 33, 132, 136][n]);
            if rule.matches.nets.is_empty() {
                rule.matches.side = Side::Remote;
            }
            rule.matches.nets.sort();
            rule.matches.nets.dedup();
        }
        Config { limits, per, max_flows, overflow, account, overhead, mpu, hook, order, rules }
    })
}

fn rules() -> impl Strategy<Value = Rule> {
    let name = prop_oneof!["[ -~]{0,20}", "[a-z\"'\\\\#=\\[\\]äß漢😀\u{301}]{0,12}"];
    let net = prop_oneof![
        (any::<[u8; 4]>(), 0..=32_u8).prop_map(|(address, len)| Net::around(address.into(), len)),
        (any::<[u16; 8]>(), 0..=128_u8).prop_map(|(address, len)| Net::around(address.into(), len)),
    ];
    let range = || (1..=u16::MAX, 1..=u16::MAX).prop_map(|(a, b)| PortRange { first: a.min(b), last: a.max(b) });
    let ports = prop_oneof![
        Just(Ports::Any),
        range().prop_map(Ports::Either),
        range().prop_map(Ports::Source),
        range().prop_map(Ports::Destination),
        (range(), range()).prop_map(|(sport, dport)| Ports::Both { sport, dport }),
    ];
    let side = prop_oneof![Just(Side::Remote), Just(Side::Local)];
    let matches = (prop::collection::vec(net, 0..4), side, ports).prop_map(|(nets, side, ports)| Match {
        nets,
        side,
        proto: None,
        ports,
    });
    (name, matches, prop::option::of(pers()), limits()).prop_map(|(name, matches, per, limits)| Rule {
        name,
        matches,
        per,
        limits,
    })
}

fn pers() -> impl Strategy<Value = Per> {
    let words = ["flow", "src", "dst", "pair", "dev", "src/24", "dst/1,128", "src/32,1"];
    prop::sample::select(words.map(|word| word.parse::<Per>().expect("a key")).to_vec())
}

fn actions() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(Action::Drop),
        Just(Action::Pass),
        Just(Action::Ecn),
        (0..64_u8).prop_map(Action::Dscp),
        any::<u32>().prop_map(Action::Mark)
    ]
}

/// Bytes at a rate of bits/s, and a burst that was given or follows.
fn byte_limit(rate: Rate, burst: Option<u64>) -> ByteLimit {
    let given = burst.and_then(Bytes::new);
    ByteLimit { rate, burst: given.unwrap_or_else(|| rate.default_burst()), burst_given: given.is_some() }
}

fn limits() -> impl Strategy<Value = Limits> {
    let burst = || prop::option::of(prop_oneof![1..=1_u64 << 40, (0..=40_u32).prop_map(|shift| 1 << shift)]);
    let rate = || prop_oneof![8..=500_000_000_000_u64, (1..=500_u64).prop_map(|n| n * 1_000_000_000)];
    // A peak as a rate, as a share, or none.
    let peak = prop_oneof![Just(0), Just(1), Just(2)];
    let bytes =
        (prop::option::of((rate(), burst())), (peak, 1..=500_u64, burst()), prop::option::of((rate(), burst())));
    let packets = prop::option::of((1..=1_000_000_000_u64, prop::option::of(1..=1_u64 << 32)));
    (bytes, packets, actions(), actions()).prop_map(
        |((bytes, (kind, more, peak_burst), total), pps, exceed, violate)| {
            let limit = |(bits, burst)| Rate::new(bits).map(|rate| byte_limit(rate, burst));
            let rate = bytes.and_then(limit);
            let share = Share::parse(&format!("{more}%")).ok().filter(|_| kind == 2);
            let shared = rate.zip(share).and_then(|(rate, share)| share.above(rate.rate).ok());
            let peak = rate.and_then(|rate| match kind {
                1 => Rate::new(rate.rate.bits_per_second() + more),
                _ => shared,
            });
            let pps = pps.and_then(|(rate, burst)| {
                let rate = PacketRate::new(rate)?;
                let given = burst.and_then(Packets::new);
                Some(PacketLimit {
                    rate,
                    burst: given.unwrap_or_else(|| rate.default_burst()),
                    burst_given: given.is_some(),
                })
            });
            let total = total.and_then(limit);
            if rate.is_none() && pps.is_none() && total.is_none() {
                return Limits::BLOCK;
            }
            Limits {
                rate,
                peak: peak.map(|peak| byte_limit(peak, peak_burst)),
                soft: share.filter(|_| shared.is_some()),
                pps,
                total,
                exceed: if rate.is_some() || pps.is_some() { exceed } else { Action::Drop },
                violate: if peak.is_some() { violate } else { Action::Drop },
                block: false,
            }
        },
    )
}
