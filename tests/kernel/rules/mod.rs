//! Rules: which one a packet meets, whose bucket it is charged to, and what becomes of debts when rules change.

mod changes;

use std::net::IpAddr;

use shaper_cli::model::{Direction, Match, Net, PortRange, Ports, Side};
use shaper_common::{
    abi::{Keying, Overflow, RuleLimits, Settings, feature, program},
    bucket::Limit,
    key::Per,
    verdict::{Action, Reason, Verdict},
};
use tests::{
    frames::{Frame, Ipv4, Ipv6, MORE_FRAGMENTS, Network, Upper},
    model::rules::{RuleBook, Ruled},
};

use crate::{
    rig::{Rig, Room, now, settings, still},
    skb::Skb,
};

const SIZE: usize = 1000;
const PASS: (Verdict, Reason) = (Verdict::Pass, Reason::Conform);
/// What the tool asks for where there are rules.
const ANY_RULE: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;
const BOTH: [Keying; 2] = [Keying::Cached, Keying::ByRule];
const ROOM: Room = Room { rules: 8, boundaries: 64, links: 64 };

/// A limit of half a packet more than `n`, that earns nothing, on the clock of this slot, which is far from all others.
fn packets(slot: u32, n: u64) -> Limit {
    units(slot, n * SIZE as u64 + SIZE as u64 / 2)
}

fn units(slot: u32, burst: u64) -> Limit {
    still(u64::from(slot) << 45, burst)
}

/// The rule of a slot with these features of `limits`, per flow.
fn limits(id: u32, features: u8, limits: RuleLimits) -> RuleLimits {
    RuleLimits { id, features, per: Per::Flow as u8, prefix_v4: 32, prefix_v6: 128, ..limits }
}

/// `n` packets of each flow.
fn each(slot: u32, n: u64) -> RuleLimits {
    limits(slot, feature::RATE, RuleLimits { rate: packets(slot, n), ..RuleLimits::default() })
}

fn to(nets: &[&str]) -> Match {
    Match { nets: nets.iter().map(|net| net.parse::<Net>().unwrap()).collect(), ..Match::default() }
}

fn port(port: u16) -> Ports {
    Ports::Either(PortRange { first: port, last: port })
}

fn ruled(slot: u32, matches: Match, limits: RuleLimits) -> Ruled {
    Ruled { slot, matches, limits }
}

fn book(default: RuleLimits, rules: &[Ruled]) -> RuleBook {
    RuleBook::new(default, rules, Direction::Ingress)
}

fn keyed(keying: Keying) -> Settings {
    Settings { keying: keying as u8, features: ANY_RULE, ..settings(16) }
}

fn rig_with(settings: Settings, book: &RuleBook) -> Rig {
    Rig::with_room(program::TC_INGRESS, settings, book, ROOM)
}

fn rig(keying: Keying, book: &RuleBook) -> Rig {
    rig_with(keyed(keying), book)
}

/// A frame of `SIZE` bytes from this address.
fn frame(src: &str, sport: u16, dport: u16) -> Vec<u8> {
    network(src, "", |headers| Upper::udp(sport, dport, SIZE - headers - 8))
}

/// A frame of `SIZE` bytes between these addresses.
fn between(src: &str, dst: &str, sport: u16) -> Vec<u8> {
    network(src, dst, |headers| Upper::udp(sport, 53, SIZE - headers - 8))
}

fn network(src: &str, dst: &str, upper: impl Fn(usize) -> Upper) -> Vec<u8> {
    let network = match src.parse().unwrap() {
        IpAddr::V4(src) => {
            let ip = Ipv4 { src, ..Ipv4::new(upper(34)) };
            Network::V4(Ipv4 { dst: dst.parse().unwrap_or(ip.dst), ..ip })
        }
        IpAddr::V6(src) => {
            let ip = Ipv6 { src, ..Ipv6::new(upper(54)) };
            Network::V6(Ipv6 { dst: dst.parse().unwrap_or(ip.dst), ..ip })
        }
    };
    Frame::ethernet(network).bytes()
}

/// Sends a frame `n` times; how many passed, before the others were dropped for `reason`, and all by this rule.
#[track_caller]
fn passed(rig: &mut Rig, rule: u32, frame: &[u8], n: usize, reason: Reason) -> usize {
    let outcomes: Vec<_> = (0..n).map(|_| rig.run(&Skb::plain(frame))).collect();
    let passed = outcomes.iter().take_while(|outcome| (outcome.verdict, outcome.reason) == PASS).count();
    for outcome in &outcomes {
        assert_eq!(outcome.rule, rule, "{outcome:?}");
    }
    for outcome in &outcomes[passed..] {
        assert_eq!((outcome.verdict, outcome.reason), (Verdict::Drop, reason), "{outcome:?}");
    }
    passed
}

#[test]
fn each_rule_limits_its_own_packets_and_the_default_the_others() {
    let rules = [
        ruled(1, to(&["10.0.0.0/8"]), each(1, 5)),
        ruled(2, to(&["10.1.0.0/16", "2001:db8:1::/48"]), each(2, 7)),
        ruled(3, Match { ports: port(80), ..Match::default() }, each(3, 3)),
        ruled(4, Match { proto: Some(17), ..to(&["10.1.0.0/16"]) }, each(4, 9)),
        ruled(5, Match { side: Side::Local, ..to(&["198.51.100.2/32"]) }, each(5, 2)),
    ];
    for keying in BOTH {
        let mut rig = rig(keying, &book(each(0, 4), &rules));
        let tcp = network("10.1.0.1", "203.0.113.1", |headers| Upper::tcp(1, 2, 0, SIZE - headers - 20));
        for (rule, burst, frame) in [
            (1, 5, between("10.2.0.1", "203.0.113.1", 1)),
            (2, 7, tcp),
            (2, 7, frame("2001:db8:1::1", 1, 2)),
            (3, 3, frame("2001:db8:2::1", 1, 80)),
            (3, 3, network("192.0.2.1", "203.0.113.1", |headers| Upper::udp(80, 5, SIZE - headers - 8))),
            (4, 9, between("10.1.0.1", "203.0.113.1", 1)),
            (5, 2, between("10.1.0.1", "198.51.100.2", 1)),
            (0, 4, between("192.0.2.1", "203.0.113.1", 1)),
            (0, 4, frame("2001:db8:2::1", 1, 81)),
        ] {
            assert_eq!(passed(&mut rig, rule, &frame, 12, Reason::Rate), burst, "rule {rule}, {keying:?}");
        }
        rig.assert_same();
    }
}

#[test]
fn at_egress_the_remote_side_is_the_destination() {
    for keying in BOTH {
        let book = RuleBook::new(each(0, 4), &[ruled(1, to(&["198.51.100.0/24"]), each(1, 2))], Direction::Egress);
        let mut rig = Rig::with_room(program::TC_EGRESS, keyed(keying), &book, ROOM);
        assert_eq!(passed(&mut rig, 1, &between("192.0.2.1", "198.51.100.2", 1), 5, Reason::Rate), 2);
        assert_eq!(passed(&mut rig, 0, &between("198.51.100.2", "192.0.2.1", 1), 5, Reason::Rate), 4);
        rig.assert_same();
    }
}

#[test]
fn fragments_meet_the_rule_for_ports_and_other_protocols_do_not() {
    let dns = Match { ports: port(53), ..to(&["10.0.0.0/8"]) };
    for keying in BOTH {
        let mut rig = rig(keying, &book(each(0, 6), &[ruled(1, dns.clone(), each(1, 4))]));
        let fragment = |fragment, proto| {
            let upper = Upper { proto, ..Upper::udp(1, 2, SIZE - 42) };
            let ip = Ipv4 { src: [10, 0, 0, 1].into(), fragment, ..Ipv4::new(upper) };
            Frame::ethernet(Network::V4(ip)).bytes()
        };
        assert_eq!(passed(&mut rig, 1, &fragment(MORE_FRAGMENTS, 17), 2, Reason::Rate), 2);
        assert_eq!(passed(&mut rig, 1, &fragment(7, 17), 9, Reason::Rate), 2, "of the same four");
        assert_eq!(passed(&mut rig, 0, &fragment(7, 1), 9, Reason::Rate), 6);
        assert_eq!(passed(&mut rig, 0, &frame("10.0.0.1", 1, 2), 9, Reason::Rate), 6);
        assert_eq!(passed(&mut rig, 1, &frame("10.0.0.1", 1, 53), 9, Reason::Rate), 4);
        rig.assert_same();
    }
}

#[test]
fn all_prefixes_of_a_rule_share_its_total() {
    let total = RuleLimits { rate: packets(1, 6), total: packets(1, 10), ..RuleLimits::default() };
    let both = limits(1, feature::RATE | feature::TOTAL, total);
    let alone = limits(2, feature::TOTAL, RuleLimits { total: packets(2, 3), ..RuleLimits::default() });
    let rules =
        [ruled(1, to(&["10.1.0.0/16", "10.3.0.0/16", "2001:db8::/32"]), both), ruled(2, to(&["10.2.0.0/16"]), alone)];
    for keying in BOTH {
        let mut rig = rig(keying, &book(each(0, 2), &rules));
        assert_eq!(passed(&mut rig, 1, &frame("10.1.0.1", 1, 2), 8, Reason::Rate), 6);
        assert_eq!(passed(&mut rig, 1, &frame("10.3.0.1", 1, 2), 3, Reason::Total), 3);
        assert_eq!(passed(&mut rig, 1, &frame("2001:db8::1", 1, 2), 3, Reason::Total), 1);
        assert_eq!(passed(&mut rig, 1, &frame("10.3.0.1", 1, 2), 3, Reason::Total), 0);
        for sport in 1..=3 {
            assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", sport, 2), 1, Reason::Total), 1, "a total of its own");
        }
        assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 9, 2), 5, Reason::Total), 0);
        assert_eq!(passed(&mut rig, 0, &frame("10.4.0.1", 1, 2), 5, Reason::Rate), 2);
        rig.assert_same();
    }
}

#[test]
fn what_a_rule_drops_is_not_missing_from_the_total_of_the_device() {
    for keying in BOTH {
        let device = RuleLimits { device_total: packets(0, 100), ..RuleLimits::default() };
        let rules = [ruled(1, to(&["10.0.0.0/8"]), each(1, 10))];
        let settings = Settings { features: ANY_RULE | feature::DEVICE_TOTAL, ..keyed(keying) };
        let mut rig = rig_with(settings, &book(limits(0, feature::DEVICE_TOTAL, device), &rules));
        assert_eq!(passed(&mut rig, 1, &frame("10.0.0.1", 1, 2), 100, Reason::Rate), 10);
        assert_eq!(passed(&mut rig, 0, &frame("192.0.2.1", 1, 2), 95, Reason::DeviceTotal), 90);
        // And what the device refuses is charged neither to the flow nor to anybody else.
        assert_eq!(passed(&mut rig, 1, &frame("10.0.0.2", 1, 2), 5, Reason::DeviceTotal), 0);
        rig.assert_same();
    }
}

#[test]
fn what_a_total_refuses_is_charged_to_nobody() {
    let features = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL;
    let each = RuleLimits {
        rate: packets(1, 3),
        peak: packets(1, 5),
        pps: units(1, 4),
        total: packets(1, 2),
        ..RuleLimits::default()
    };
    let of_second = RuleLimits { rate: packets(2, 4), total: packets(2, 3), ..each };
    let device = RuleLimits { device_total: packets(0, 3), ..RuleLimits::default() };
    for keying in BOTH {
        let rules = [
            ruled(1, to(&["10.1.0.0/16"]), limits(1, features, each)),
            ruled(2, to(&["10.2.0.0/16"]), limits(2, features, of_second)),
        ];
        let settings = Settings { features: ANY_RULE | feature::DEVICE_TOTAL, ..keyed(keying) };
        let default = limits(0, feature::DEVICE_TOTAL, device);
        let mut rig = rig_with(settings, &book(default, &rules));
        assert_eq!(passed(&mut rig, 1, &frame("10.1.0.1", 1, 2), 9, Reason::Total), 2);
        // The device has room for one more: were the other rule's total charged for what it refuses, that would be full.
        assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 1, 2), 9, Reason::DeviceTotal), 1);
        rig.assert_same();
        let owed = |rig: &Rig, rule: u32| rig.total_debt(rule) / SIZE as u64;
        assert_eq!((owed(&rig, 1), owed(&rig, 2)), (2, 1));
        assert_eq!(rig.debts(&each.rate, 1), [2000], "of the flow of the first rule");
        // Without the device's total the rest of the second rule's is there.
        rig.switch(&book(limits(0, 0, RuleLimits { device_total: units(0, 1 << 30), ..device }), &rules));
        assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 1, 2), 9, Reason::Total), 2);
        rig.assert_same();
    }
}

#[test]
fn a_rule_that_blocks_drops_all_and_one_without_limits_passes_all() {
    let rules = [
        ruled(1, to(&["10.1.0.0/16"]), limits(1, feature::BLOCK, RuleLimits::default())),
        ruled(2, to(&["10.2.0.0/16"]), limits(2, 0, RuleLimits::default())),
    ];
    for keying in BOTH {
        let settings = Settings { features: ANY_RULE | feature::DEVICE_TOTAL, ..keyed(keying) };
        let default = limits(0, feature::DEVICE_TOTAL, RuleLimits { device_total: packets(0, 50), ..each(0, 1) });
        for settings in [keyed(keying), settings] {
            let mut rig = rig_with(settings, &book(default, &rules));
            assert_eq!(passed(&mut rig, 1, &frame("10.1.0.1", 1, 2), 9, Reason::Blocked), 0);
            assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 1, 2), 50, Reason::Rate), 50);
            if settings.features & feature::DEVICE_TOTAL != 0 {
                assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 1, 2), 9, Reason::DeviceTotal), 0);
            }
            rig.assert_same();
        }
        // And everything, where the default blocks.
        let mut rig = rig(keying, &book(limits(0, feature::BLOCK, RuleLimits::default()), &rules));
        assert_eq!(passed(&mut rig, 0, &frame("192.0.2.1", 1, 2), 9, Reason::Blocked), 0);
        assert_eq!(passed(&mut rig, 2, &frame("10.2.0.1", 1, 2), 9, Reason::Rate), 9);
        rig.assert_same();
    }
}

#[test]
fn each_rule_says_who_shares_a_bucket() {
    let per = |slot, per: Per, prefix_v4| RuleLimits { per: per as u8, prefix_v4, ..each(slot, 4) };
    let rules = [
        ruled(1, to(&["10.1.0.0/16"]), per(1, Per::Src, 32)),
        ruled(2, to(&["10.2.0.0/16"]), per(2, Per::Dst, 24)),
        ruled(3, to(&["10.3.0.0/16"]), per(3, Per::Pair, 32)),
        ruled(4, to(&["10.4.0.0/16"]), per(4, Per::Dev, 32)),
        ruled(5, to(&["10.5.0.0/16"]), per(5, Per::Flow, 32)),
    ];
    // Of the second packet after the first: another port, destination, network of the destination, source.
    for (rule, others) in [
        (1, [false, false, false, true]),
        (2, [false, false, true, false]),
        (3, [false, true, true, true]),
        (4, [false, false, false, false]),
        (5, [true, true, true, true]),
    ] {
        let src = format!("10.{rule}.0.1");
        let other = format!("10.{rule}.0.2");
        let seconds = [
            between(&src, "198.51.100.2", 2),
            between(&src, "198.51.100.3", 1),
            between(&src, "198.51.101.2", 1),
            between(&other, "198.51.100.2", 1),
        ];
        let mut rig = rig(Keying::ByRule, &book(each(0, 4), &rules));
        let first = between(&src, "198.51.100.2", 1);
        assert_eq!(passed(&mut rig, rule, &first, 9, Reason::Rate), 4);
        for (second, other) in seconds.iter().zip(others) {
            let expected = if other { 4 } else { 0 };
            assert_eq!(passed(&mut rig, rule, second, 5, Reason::Rate), expected, "rule {rule}");
        }
        rig.assert_same();
    }
}

#[test]
fn two_rules_with_the_same_key_do_not_share_a_bucket() {
    let per_src = |slot, n| RuleLimits { per: Per::Src as u8, ..each(slot, n) };
    let rules = [
        ruled(1, Match { ports: port(53), ..to(&["10.0.0.0/8"]) }, per_src(1, 3)),
        ruled(2, to(&["10.0.0.0/8"]), per_src(2, 5)),
    ];
    let settings = Settings { per: Per::Src as u8, ..keyed(Keying::ByRule) };
    let mut rig = rig_with(settings, &book(per_src(0, 2), &rules));
    assert_eq!(passed(&mut rig, 1, &frame("10.0.0.1", 1, 53), 9, Reason::Rate), 3);
    assert_eq!(passed(&mut rig, 2, &frame("10.0.0.1", 1, 54), 9, Reason::Rate), 5);
    assert_eq!(passed(&mut rig, 2, &frame("10.0.0.1", 2, 55), 9, Reason::Rate), 0);
    assert_eq!(passed(&mut rig, 1, &frame("10.0.0.2", 1, 53), 9, Reason::Rate), 3);
    let mut flows: Vec<_> =
        rig.flows().into_iter().map(|(key, passed, dropped)| (key.src[0], passed, dropped)).collect();
    flows.sort_unstable();
    let address = |last| u64::from(u32::from_ne_bytes([10, 0, 0, last]));
    assert_eq!(flows, [(address(1), 3, 6), (address(1), 5, 13), (address(2), 3, 6)]);
    rig.assert_same();
}

#[test]
fn flows_without_a_way_share_the_bucket_of_their_rule() {
    let rules = [ruled(1, to(&["10.1.0.0/16"]), each(1, 2)), ruled(2, to(&["10.2.0.0/16"]), each(2, 3))];
    for (overflow, keying) in
        [Overflow::Shared, Overflow::Open, Overflow::Closed].into_iter().flat_map(|o| BOTH.map(|keying| (o, keying)))
    {
        let settings = Settings { overflow: overflow as u8, set_mask: 0, ..keyed(keying) };
        let mut rig = rig_with(settings, &book(each(0, 4), &rules));
        for sport in 1..=8 {
            assert_eq!(passed(&mut rig, 0, &frame("192.0.2.1", sport, 2), 1, Reason::Rate), 1);
        }
        for (rule, shared) in [(1, 2), (2, 3), (0, 4)] {
            let outcomes: Vec<_> = (0..6)
                .map(|sport| rig.run(&Skb::plain(&frame(&format!("10.{rule}.0.1"), 100 + sport, 2))))
                .inspect(|outcome| assert_eq!((outcome.rule, outcome.reason), (rule, Reason::Untracked)))
                .collect();
            let passed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass).count();
            let expected = match overflow {
                Overflow::Shared => shared,
                Overflow::Open => 6,
                Overflow::Closed => 0,
            };
            assert_eq!(passed, expected, "rule {rule}, {overflow:?}, {keying:?}");
        }
        rig.assert_same();
    }
}

#[test]
fn an_untracked_flow_has_every_limit_of_its_rule_and_open_lets_only_totals_refuse() {
    let of_rule = RuleLimits {
        rate: packets(1, 5),
        pps: units(1, 3),
        total: packets(1, 4),
        exceed: Action::Drop.into(),
        ..RuleLimits::default()
    };
    let rules = [ruled(1, to(&["10.1.0.0/16"]), limits(1, feature::RATE | feature::PPS | feature::TOTAL, of_rule))];
    for (overflow, expected) in [(Overflow::Shared, 3), (Overflow::Open, 4), (Overflow::Closed, 0)] {
        for keying in BOTH {
            let settings = Settings { overflow: overflow as u8, set_mask: 0, ..keyed(keying) };
            let mut rig = rig_with(settings, &book(each(0, 4), &rules));
            for sport in 1..=8 {
                assert_eq!(passed(&mut rig, 0, &frame("192.0.2.1", sport, 2), 1, Reason::Rate), 1);
            }
            let outcomes: Vec<_> = (0..8).map(|sport| rig.run(&Skb::plain(&frame("10.1.0.1", sport, 2)))).collect();
            let passed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Pass).count();
            assert_eq!(passed, expected, "{overflow:?}, {keying:?}");
            rig.assert_same();
        }
    }
}
