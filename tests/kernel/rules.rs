//! Rules in the kernel and on the host: the same rule for every packet, the same debts when a flow moves from one to another.

use shaper_cli::{
    compile::{Placed, Slotted, compile},
    model::{Direction, Limits, Match, Rule},
};
use shaper_common::{
    abi::{Keying, RuleLimits, Settings, feature, program},
    bucket::Limit,
    key::Per,
    rule::Link,
    verdict::{Reason, Verdict},
};
use tests::{
    frames::{Frame, Ipv4, Network, Upper},
    model::rules::RuleBook,
};

use crate::rig::{Rig, now, settings, standing};

const SIZE: usize = 1000;
const PASS: (Verdict, Reason) = (Verdict::Pass, Reason::Conform);

/// A bucket of half a packet more than `packets`, which does not refill while a test runs.
fn packets(n: u64) -> Limit {
    standing(n * SIZE as u64 + SIZE as u64 / 2)
}

fn rate(limit: Limit) -> RuleLimits {
    RuleLimits { rate: limit, features: feature::RATE, ..RuleLimits::default() }
}

/// Rules for sources in these prefixes and for a protocol, if one is named, with these limits; the first is the default.
fn book(default: RuleLimits, rules: &[(&[&str], Option<u8>, RuleLimits)]) -> RuleBook {
    let rule = |(nets, proto, _): &(&[&str], Option<u8>, RuleLimits)| Rule {
        name: String::new(),
        matches: Match {
            nets: nets.iter().map(|net| net.parse().unwrap()).collect(),
            proto: *proto,
            ..Match::default()
        },
        per: None,
        limits: Limits::default(),
    };
    let models: Vec<Rule> = rules.iter().map(rule).collect();
    let slotted: Vec<_> = (1..).zip(&models).map(|(slot, rule)| Slotted { slot, rule }).collect();
    let Placed { index, boundaries, links } = compile(&slotted, Direction::Ingress).unwrap().place(0, 1);
    let keyed = |(id, limits): (u32, RuleLimits)| RuleLimits { id, prefix_v4: 32, prefix_v6: 128, ..limits };
    let all = [default].into_iter().chain(rules.iter().map(|(.., limits)| *limits));
    RuleBook {
        limits: (0..).zip(all).map(keyed).collect(),
        index,
        boundaries,
        links: [Link::default()].into_iter().chain(links).collect(),
    }
}

fn rig(keying: Keying, book: RuleBook) -> Rig {
    const ANY: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;
    let device = book.limits[0].features & feature::DEVICE_TOTAL;
    let settings = Settings { features: ANY | device, keying: keying as u8, ..settings(4) };
    Rig::with_rules(program::TC_INGRESS, settings, book)
}

fn udp(src: [u8; 4], sport: u16) -> Vec<u8> {
    let ip = Ipv4 { src: src.into(), ..Ipv4::new(Upper::udp(sport, 53, SIZE - 42)) };
    Frame::ethernet(Network::V4(ip)).bytes()
}

/// Sends `n` packets of a flow and says how many passed; the others had `reason`.
fn passed(rig: &mut Rig, frame: &[u8], n: usize, reason: Reason) -> usize {
    let outcomes: Vec<_> = (0..n).map(|_| rig.frame(frame)).collect();
    let passed = outcomes.iter().take_while(|&&outcome| outcome == PASS).count();
    assert!(outcomes[passed..].iter().all(|&outcome| outcome == (Verdict::Drop, reason)), "{outcomes:?}");
    passed
}

#[test]
fn the_longest_prefix_limits() {
    for keying in [Keying::Cached, Keying::ByRule] {
        let mut rig = rig(
            keying,
            book(
                rate(packets(2)),
                &[
                    (&["10.0.0.0/8"], None, rate(packets(3))),
                    (&["10.1.0.0/16"], None, rate(packets(4))),
                    (&["10.1.0.0/16"], Some(6), rate(packets(5))),
                ],
            ),
        );
        for (src, expected) in [([192, 0, 2, 1], 2), ([10, 0, 0, 1], 3), ([10, 1, 2, 3], 4), ([10, 2, 0, 0], 3)] {
            assert_eq!(passed(&mut rig, &udp(src, 7), 9, Reason::Rate), expected, "{src:?} {keying:?}");
        }
        rig.assert_same_tables();
    }
}

#[test]
fn a_source_that_its_rule_drops_does_not_eat_the_common_budget() {
    for keying in [Keying::Cached, Keying::ByRule] {
        let device =
            RuleLimits { device_total: packets(100), features: feature::DEVICE_TOTAL, ..RuleLimits::default() };
        let mut rig = rig(keying, book(device, &[(&["10.0.0.1"], None, rate(packets(10)))]));
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 1], 7), 100, Reason::Rate), 10);
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 2], 7), 90, Reason::DeviceTotal), 90);
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 3], 7), 5, Reason::DeviceTotal), 0);
        rig.assert_same_tables();
    }
}

#[test]
fn prefixes_of_a_rule_share_its_total() {
    for keying in [Keying::Cached, Keying::ByRule] {
        let both = RuleLimits { total: packets(7), features: feature::RATE | feature::TOTAL, ..rate(packets(5)) };
        let nets: &[&str] = &["10.0.0.0/8", "172.16.0.0/12"];
        let mut rig = rig(keying, book(rate(packets(2)), &[(nets, None, both)]));
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 1], 7), 9, Reason::Rate), 5);
        assert_eq!(passed(&mut rig, &udp([172, 16, 0, 1], 7), 9, Reason::Total), 2);
        // Refused by the total, its own bucket was not charged.
        assert_eq!(rig.counters_of(1).reasons[Reason::Total as usize].packets, 7);
        rig.assert_same_tables();
    }
}

#[test]
fn rules_block_and_let_pass() {
    for keying in [Keying::Cached, Keying::ByRule] {
        let block = RuleLimits { features: feature::BLOCK, ..RuleLimits::default() };
        let rules: &[(&[&str], Option<u8>, RuleLimits)] =
            &[(&["10.0.0.1"], None, block), (&["10.0.0.2"], None, RuleLimits::default())];
        let mut rig = rig(keying, book(rate(packets(1)), rules));
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 1], 7), 3, Reason::Blocked), 0);
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 2], 7), 50, Reason::Rate), 50);
        assert_eq!(passed(&mut rig, &udp([10, 0, 0, 3], 7), 3, Reason::Rate), 1);
        rig.assert_same_tables();
    }
}

#[test]
fn two_rules_with_the_same_key_do_not_share_a_bucket() {
    let per_src = |limit| RuleLimits { per: Per::Src as u8, ..rate(limit) };
    let rules: &[(&[&str], Option<u8>, RuleLimits)] = &[(&["10.0.0.0/8"], Some(17), per_src(packets(3)))];
    let mut rig = rig(Keying::ByRule, book(per_src(packets(5)), rules));
    assert_eq!(passed(&mut rig, &udp([10, 0, 0, 1], 7), 9, Reason::Rate), 3);
    // Another flow of the source has the same bucket, under this rule.
    assert_eq!(passed(&mut rig, &udp([10, 0, 0, 1], 8), 9, Reason::Rate), 0);
    let icmp = Ipv4 { src: [10, 0, 0, 1].into(), ..Ipv4::new(Upper::new(1, vec![0; SIZE - 34])) };
    let icmp = Frame::ethernet(Network::V4(icmp)).bytes();
    assert_eq!(passed(&mut rig, &icmp, 9, Reason::Rate), 5);
    rig.assert_same_tables();
}

#[test]
fn a_flow_takes_its_debt_along_when_its_rule_changes() {
    let default = rate(packets(4));
    let more = rate(packets(6));
    let same = rate(Limit::new(16, 4 * SIZE as u64 + SIZE as u64 / 2, now()));
    let rules: &[(&[&str], Option<u8>, RuleLimits)] = &[(&["10.0.0.0/8"], None, more)];
    let without = book(default, &[(&["192.0.2.0/24"], None, more)]);
    let with = book(default, rules);
    let mut rig = rig(Keying::Cached, without.clone());
    let flow = udp([10, 0, 0, 1], 7);
    assert_eq!(passed(&mut rig, &flow, 3, Reason::Rate), 3);
    rig.switch(&with);
    assert_eq!(passed(&mut rig, &flow, 9, Reason::Rate), 3, "six in all");
    // The smaller bucket is empty, and owes no more than it can hold.
    rig.switch(&without);
    assert_eq!(passed(&mut rig, &flow, 9, Reason::Rate), 0);
    let with = book(default, &[(&["10.0.0.0/8"], None, same)]);
    for _ in 0..100 {
        rig.switch(&with);
        assert_eq!(passed(&mut rig, &flow, 1, Reason::Rate), 0);
        rig.switch(&without);
        assert_eq!(passed(&mut rig, &flow, 1, Reason::Rate), 0);
    }
    rig.assert_same_tables();
}
