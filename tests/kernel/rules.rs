//! Rules: which one a packet meets, whose bucket it is charged to, and what becomes of debts when rules change.

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

// Changes of rules while flows are there.

const FLOW: &str = "10.1.0.1";

/// The flow of these tests, of which `n` packets are sent.
fn sent(rig: &mut Rig, rule: u32, n: usize) -> usize {
    let passed = passed(rig, rule, &frame(FLOW, 1, 2), n, Reason::Rate);
    rig.assert_same();
    passed
}

#[test]
fn a_flow_that_meets_another_rule_takes_its_debt_along_to_the_byte() {
    let none = book(each(0, 10), &[]);
    let mut rig = rig(Keying::Cached, &none);
    assert_eq!(sent(&mut rig, 0, 6), 6);
    assert_eq!(rig.debts(&packets(0, 10), 0), [6000]);
    // Added: 6 of 8 are used.
    let added = none.followed_by(each(0, 10), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 8))], Direction::Ingress);
    rig.switch(&added);
    assert_eq!(sent(&mut rig, 1, 1), 1);
    assert_eq!(rig.debts(&packets(1, 8), 1), [7000]);
    assert_eq!(sent(&mut rig, 1, 5), 1);
    // A better one: of 20, 8 are used.
    let rules = [ruled(1, to(&["10.0.0.0/8"]), each(1, 8)), ruled(2, to(&["10.1.0.0/16"]), each(2, 20))];
    let replaced = added.followed_by(each(0, 10), &rules, Direction::Ingress);
    rig.switch(&replaced);
    assert_eq!(sent(&mut rig, 2, 15), 12);
    assert_eq!(rig.debts(&packets(2, 20), 2), [20_000]);
    // Deleted: 20 are more than the first can owe.
    let first = [ruled(1, to(&["10.0.0.0/8"]), each(1, 8))];
    rig.switch(&replaced.followed_by(each(0, 10), &first, Direction::Ingress));
    assert_eq!(sent(&mut rig, 1, 3), 0);
    assert_eq!(rig.debts(&packets(1, 8), 1), [8500], "the whole burst");
    // Both deleted: the default's, of which 8.5 are used.
    rig.switch(&replaced.followed_by(each(0, 10), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 5), 2);
    assert_eq!(rig.debts(&packets(0, 10), 0), [10_500]);
    // What was counted for the way has stayed all the time.
    let flows: Vec<_> = rig.flows().into_iter().map(|(_, passed, dropped)| (passed, dropped)).collect();
    assert_eq!(flows, [(6 + 2 + 12 + 2, 4 + 3 + 3 + 3)]);
}

#[test]
fn an_empty_bucket_stays_empty_however_often_its_flow_changes_its_rule() {
    let with = book(each(0, 4), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 6))]);
    let without = with.followed_by(each(0, 4), &[], Direction::Ingress);
    let mut rig = rig(Keying::Cached, &with);
    assert_eq!(sent(&mut rig, 1, 9), 6);
    rig.switch(&without);
    assert_eq!(sent(&mut rig, 0, 1), 0);
    // The smaller burst is all it owes now; what the larger one has more was earned by nobody, but is there.
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 2);
    for _ in 0..50 {
        rig.switch(&without);
        assert_eq!(sent(&mut rig, 0, 1), 0);
    }
}

#[test]
fn every_kind_of_debt_goes_along_if_both_rules_have_such_a_limit() {
    let features = feature::RATE | feature::PEAK | feature::PPS | feature::ACTION;
    let of = |slot, rate, peak, pps| RuleLimits {
        rate: packets(slot, rate),
        peak: packets(slot, peak),
        pps: units(slot, pps),
        exceed: Action::Pass.into(),
        ..RuleLimits::default()
    };
    let all = |slot, rate, peak, pps| limits(slot, features, of(slot, rate, peak, pps));
    let first = book(all(0, 2, 9, 100), &[]);
    let mut rig = rig(Keying::Cached, &first);
    let outcome = |rig: &mut Rig| rig.run(&Skb::plain(&frame(FLOW, 1, 2))).reason;
    let outcomes: Vec<_> = (0..5).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Conform, Reason::Rate, Reason::Rate, Reason::Rate]);
    rig.assert_same();
    // 2 of the rate, 5 of the peak and 2 of the packets are used.
    let follow = |book: &RuleBook, limits: RuleLimits| {
        let rule = ruled(limits.id, to(&["10.0.0.0/8"]), limits);
        book.followed_by(all(0, 2, 9, 100), &[rule], Direction::Ingress)
    };
    let second = follow(&first, all(1, 3, 7, 3));
    rig.switch(&second);
    let outcomes: Vec<_> = (0..4).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Rate, Reason::Peak, Reason::Peak]);
    rig.assert_same();
    // A rule without a peak forgets it; the next one finds it full, and the rest as it was.
    let no_peak = limits(2, feature::RATE | feature::PPS, of(2, 4, 9, 5));
    let third = follow(&second, no_peak);
    rig.switch(&third);
    assert_eq!(outcome(&mut rig), Reason::Conform);
    assert_eq!(outcome(&mut rig), Reason::Rate);
    rig.assert_same();
    rig.switch(&follow(&third, all(1, 5, 2, 9)));
    let outcomes: Vec<_> = (0..3).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Rate, Reason::Peak]);
    rig.assert_same();
}

#[test]
fn a_change_of_limits_of_the_same_rule_keeps_levels() {
    let rule = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    for keying in BOTH {
        let mut rig = rig(keying, &book(each(0, 1), &rule(each(1, 10))));
        assert_eq!(sent(&mut rig, 1, 6), 6);
        // The clock goes back by what the burst grows: 4.5 are left, and no more.
        let changed = |burst: u64, of: &Limit| Limit {
            clock: shaper_common::clock::Clock {
                v0: of.clock.v0.wrapping_add(of.burst).wrapping_sub(burst),
                ..of.clock
            },
            burst,
        };
        let more = RuleLimits { rate: changed(50_000, &packets(1, 10)), ..each(1, 0) };
        rig.switch(&book(each(0, 1), &rule(more)));
        assert_eq!(sent(&mut rig, 1, 2), 2);
        // 2.5 are left, of which 1.5 fit.
        rig.switch(&book(each(0, 1), &rule(RuleLimits { rate: changed(1500, &more.rate), ..more })));
        assert_eq!(sent(&mut rig, 1, 2), 1);
    }
}

#[test]
fn a_flow_whose_rule_is_gone_goes_to_the_default_with_its_debt() {
    let rules = [ruled(1, to(&["10.0.0.0/8"]), each(1, 4))];
    let first = book(each(0, 6), &rules);
    let mut rig = rig(Keying::Cached, &first);
    assert_eq!(sent(&mut rig, 1, 9), 4);
    rig.switch(&first.followed_by(each(0, 6), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 2);
    // A limit that is taken away and comes back goes on where it was.
    rig.switch(&first.followed_by(RuleLimits { features: 0, ..each(0, 6) }, &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 9);
    rig.switch(&first.followed_by(each(0, 8), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 2);
    // Where nothing is limited a debt has nowhere to go.
    let unlimited = [ruled(2, to(&["10.0.0.0/8"]), limits(2, 0, RuleLimits::default()))];
    let second = first.followed_by(each(0, 8), &unlimited, Direction::Ingress);
    rig.switch(&second);
    assert_eq!(sent(&mut rig, 2, 9), 9);
    rig.switch(&second.followed_by(each(0, 8), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 8);
}

#[test]
fn where_rules_have_keys_of_their_own_a_flow_finds_its_old_bucket_again() {
    let without = book(each(0, 6), &[]);
    let with = without.followed_by(each(0, 6), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 4))], Direction::Ingress);
    let gone = with.followed_by(each(0, 6), &[], Direction::Ingress);
    let mut rig = rig(Keying::ByRule, &without);
    assert_eq!(sent(&mut rig, 0, 5), 5);
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 4);
    rig.switch(&gone);
    assert_eq!(sent(&mut rig, 0, 9), 1);
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 0);
    assert_eq!(rig.flows().len(), 2);
}

/// The rule that begins in the slot of one that is gone, as the tool puts it in force.
fn begun(old: &RuleLimits, id: u32, n: u64) -> RuleLimits {
    RuleLimits { id, rate: Limit { burst: packets(0, n).burst, ..old.rate }, ..*old }
}

#[test]
fn a_rule_in_the_slot_of_one_that_is_gone_takes_over_its_flows_with_what_they_owe() {
    let rules = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    let old = each(1, 10);
    let mut rig = rig(Keying::Cached, &book(each(0, 20), &rules(old)));
    assert_eq!(sent(&mut rig, 1, 7), 7);
    let larger = begun(&old, 2, 12);
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(larger)));
    assert_eq!(sent(&mut rig, 1, 9), 5);
    assert_eq!(rig.counters_of(1).reasons[Reason::Conform as usize].packets, 5, "its own");
    // It owes 12 of 3: the bucket is empty and no more than that.
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(begun(&larger, 3, 3))));
    assert_eq!(sent(&mut rig, 1, 9), 0);
    assert_eq!(rig.debts(&packets(1, 3), 1), [3500]);
    // Flows of the old one that meet the default now.
    rig.switch(&book(each(0, 20), &rules(larger)).followed_by(each(0, 20), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 30), 17);
}

#[test]
fn a_rule_in_the_slot_of_one_that_is_gone_has_buckets_of_its_own_where_rules_have_keys() {
    let rules = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    let mut rig = rig(Keying::ByRule, &book(each(0, 20), &rules(each(1, 10))));
    assert_eq!(sent(&mut rig, 1, 17), 10);
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(begun(&each(1, 10), 2, 4))));
    assert_eq!(sent(&mut rig, 1, 9), 4);
    assert_eq!(rig.flows().len(), 2);
}

#[test]
fn a_flow_that_changes_its_rule_a_thousand_times_gets_no_more_than_one_burst_and_what_is_earned() {
    const BURST: u64 = 100_000;
    let start = now();
    // Two clocks that differ by nothing a debt could be mistaken for, and by so much that one would be.
    let of = |slot, bits, since: u64| {
        let rate = Limit::new(bits, BURST, start - since);
        limits(slot, feature::RATE, RuleLimits { rate, ..RuleLimits::default() })
    };
    for (slow, fast, since) in [(8_000_000, 8_000_000, 0), (4_000_000, 8_000_000, 100_000_000_000)] {
        let (one, other) = (of(0, slow, 0), of(1, fast, since));
        let without = book(one, &[]).followed_by(one, &[ruled(1, to(&["192.0.2.0/24"]), other)], Direction::Ingress);
        let with = book(one, &[ruled(1, to(&["10.0.0.0/8"]), other)]);
        let mut rig = rig(Keying::Cached, &without);
        let packet = Skb::plain(&frame(FLOW, 1, 2));
        let began = now();
        let mut passed = 0;
        for n in 0..1000 {
            passed += u64::from(rig.kernel(&packet).0 == Verdict::Pass);
            rig.switch(if n % 2 == 0 { &with } else { &without });
        }
        let earned = other.rate.clock.at(now()) - other.rate.clock.at(began);
        let bytes = passed * SIZE as u64;
        assert!(bytes <= BURST + earned, "{bytes} bytes of {BURST} and {earned}");
        assert!(bytes >= BURST, "{bytes}");
        let met = [0, 1].map(|rule| rig.counters_of(rule).reasons.iter().map(|count| count.packets).sum::<u64>());
        assert_eq!(met, [500, 500]);
    }
}
