//! Several limits at once: which of them refuses, and that a packet that one refuses is charged to none.

use shaper_common::{
    abi::{RuleLimits, Settings, feature, program},
    bucket::Limit,
    verdict::{Action, Reason, Verdict},
};
use tests::frames::{Frame, Ipv4, Network, Upper};

use crate::{
    frames::udp4,
    rig::{Rig, settings, standing},
    skb::Skb,
};

const SIZE: usize = 1000;
const PASS: (Verdict, Reason) = (Verdict::Pass, Reason::Conform);

/// A bucket of half a packet more than `packets`, which does not refill while a test runs.
fn packets(n: u64) -> Limit {
    standing(n * SIZE as u64 + SIZE as u64 / 2)
}

/// A bucket of `n` packets, of which one is earned in eight seconds' worth of a byte clock: none.
fn count(n: u64) -> Limit {
    standing(n)
}

fn rig(features: u8, limits: RuleLimits) -> Rig {
    Rig::new(program::TC_INGRESS, Settings { features, ..settings(4) }, limits)
}

/// Sends `n` packets of a flow and says how many passed; the others had `reason`.
fn passed(rig: &mut Rig, sport: u16, n: usize, reason: Reason) -> usize {
    let outcomes: Vec<_> = (0..n).map(|_| rig.frame(&udp4(sport, 53, SIZE))).collect();
    let passed = outcomes.iter().take_while(|&&outcome| outcome == PASS).count();
    assert!(outcomes[passed..].iter().all(|&outcome| outcome == (Verdict::Drop, reason)), "{outcomes:?}");
    passed
}

#[test]
fn a_flow_that_is_dropped_by_its_own_limit_does_not_eat_the_common_budget() {
    let limits = RuleLimits { rate: packets(10), device_total: packets(100), ..RuleLimits::default() };
    let mut rig = rig(feature::RATE | feature::DEVICE_TOTAL, limits);
    assert_eq!(passed(&mut rig, 1, 100, Reason::Rate), 10);
    for sport in 2..11 {
        assert_eq!(passed(&mut rig, sport, 10, Reason::Rate), 10);
    }
    assert_eq!(passed(&mut rig, 11, 5, Reason::DeviceTotal), 0);
    rig.assert_same_tables();
}

#[test]
fn a_packet_that_the_total_refuses_is_not_charged_to_its_flow() {
    let limits = RuleLimits { rate: packets(3), device_total: packets(2), pps: count(9), ..RuleLimits::default() };
    let mut rig = rig(feature::RATE | feature::PPS | feature::DEVICE_TOTAL, limits);
    assert_eq!(passed(&mut rig, 1, 8, Reason::DeviceTotal), 2);
    // Were they charged, the flow's bucket would have refused the fourth.
    rig.assert_same_tables();
}

#[test]
fn a_total_alone_needs_no_other_limit() {
    let mut rig = rig(feature::DEVICE_TOTAL, RuleLimits { device_total: packets(5), ..RuleLimits::default() });
    assert_eq!(passed(&mut rig, 1, 3, Reason::DeviceTotal), 3);
    assert_eq!(passed(&mut rig, 2, 5, Reason::DeviceTotal), 2);
    rig.assert_same_tables();
}

#[test]
fn packets_are_limited_alone_and_with_bytes() {
    let mut alone = rig(feature::PPS, RuleLimits { pps: count(7), ..RuleLimits::default() });
    assert_eq!(passed(&mut alone, 1, 20, Reason::Pps), 7);
    assert_eq!(passed(&mut alone, 2, 3, Reason::Pps), 3);
    let limits = RuleLimits { pps: count(7), rate: packets(4), ..RuleLimits::default() };
    let mut both = rig(feature::PPS | feature::RATE, limits);
    assert_eq!(passed(&mut both, 1, 20, Reason::Rate), 4);
    alone.assert_same_tables();
    both.assert_same_tables();
}

#[test]
fn a_super_packet_counts_as_its_segments() {
    let frame = Frame::ethernet(Network::V4(Ipv4::new(Upper::tcp(1, 2, 3, 3000))));
    let skb = Skb { bytes: frame.bytes(), wire_len: 3066 + 2 * 66, gso_segs: 3, gso_size: 1448, ..Skb::default() };
    let mut rig = rig(feature::PPS, RuleLimits { pps: count(7), ..RuleLimits::default() });
    for expected in [Verdict::Pass, Verdict::Pass, Verdict::Drop] {
        assert_eq!(rig.run(&skb).verdict, expected);
    }
    assert_eq!(rig.counters().dropped.packets, 3);
    rig.assert_same_tables();
}

#[test]
fn the_three_colours_of_rfc_2698_are_metered_as_its_algorithm_says() {
    // Committed burst of 2, peak burst of 5 packets: two green, three yellow, the rest red.
    let limits = |exceed: Action, violate: Action| RuleLimits {
        rate: packets(2),
        peak: packets(5),
        exceed: exceed.into(),
        violate: violate.into(),
        ..RuleLimits::default()
    };
    let features = feature::RATE | feature::PEAK | feature::ACTION;
    let colours = |exceed, violate| {
        let mut rig = rig(features, limits(exceed, violate));
        let outcomes: Vec<_> = (0..8).map(|_| rig.frame(&udp4(1, 53, SIZE))).collect();
        rig.assert_same_tables();
        outcomes
    };
    let green = (Verdict::Pass, Reason::Conform);
    let yellow = |verdict| (verdict, Reason::Rate);
    let red = |verdict| (verdict, Reason::Peak);
    let marked = colours(Action::Dscp(10), Action::Drop);
    assert_eq!(marked[..2], [green; 2]);
    assert_eq!(marked[2..5], [yellow(Verdict::Pass); 3]);
    assert_eq!(marked[5..], [red(Verdict::Drop); 3]);
    let counted = colours(Action::Pass, Action::Pass);
    assert_eq!(counted[5..], [red(Verdict::Pass); 3]);
    // What is dropped as yellow is not charged to the peak, so nothing ever gets red.
    let strict = colours(Action::Drop, Action::Drop);
    assert_eq!(strict[2..], [yellow(Verdict::Drop); 6]);
}

#[test]
fn a_packet_larger_than_every_bucket_that_applies_is_oversize() {
    let small = standing(SIZE as u64 - 1);
    let oversize = (Verdict::Drop, Reason::Oversize);
    for (features, limits) in [
        (feature::RATE | feature::PPS, RuleLimits { rate: small, pps: count(9), ..RuleLimits::default() }),
        (feature::DEVICE_TOTAL, RuleLimits { device_total: small, ..RuleLimits::default() }),
        (feature::RATE | feature::PEAK, RuleLimits { rate: small, peak: small, ..RuleLimits::default() }),
    ] {
        assert_eq!(rig(features, limits).frame(&udp4(1, 53, SIZE)), oversize);
    }
    // With a larger peak it has a colour.
    let limits = RuleLimits { rate: small, peak: packets(2), exceed: Action::Pass.into(), ..RuleLimits::default() };
    let mut yellow = rig(feature::RATE | feature::PEAK | feature::ACTION, limits);
    assert_eq!(yellow.frame(&udp4(1, 53, SIZE)), (Verdict::Pass, Reason::Rate));
}

#[test]
fn a_block_drops_all_but_what_is_exempt() {
    let mut rig = rig(feature::BLOCK, RuleLimits::default());
    assert_eq!(rig.frame(&udp4(1, 53, SIZE)), (Verdict::Drop, Reason::Blocked));
    let arp = Frame::ethernet(Network::Other(tests::frames::ARP, vec![0; 46])).bytes();
    assert_eq!(rig.frame(&arp), (Verdict::Pass, Reason::Exempt));
}

#[test]
fn flows_without_a_way_share_every_limit_of_a_flow() {
    let limits = RuleLimits { rate: packets(3), pps: count(2), ..RuleLimits::default() };
    let mut rig =
        Rig::new(program::TC_INGRESS, Settings { features: feature::RATE | feature::PPS, ..settings(1) }, limits);
    for sport in 0..8 {
        assert_eq!(rig.frame(&udp4(sport, 53, SIZE)), PASS);
    }
    let untracked = |verdict| (verdict, Reason::Untracked);
    let outcomes: Vec<_> = (8..12).map(|sport| rig.frame(&udp4(sport, 53, SIZE))).collect();
    assert_eq!(outcomes[..2], [untracked(Verdict::Pass); 2]);
    assert_eq!(outcomes[2..], [untracked(Verdict::Drop); 2]);
    rig.assert_same_tables();
}

#[test]
fn a_way_is_taken_only_when_all_its_buckets_are_full() {
    // Packets owe for longer than bytes: one way's bytes are long full, its packets are not.
    let limits = RuleLimits {
        rate: Limit::new(1_000_000_000_000, 1 << 30, crate::rig::now()),
        pps: count(5),
        ..RuleLimits::default()
    };
    let rig = Rig::new(program::TC_INGRESS, Settings { features: feature::RATE | feature::PPS, ..settings(1) }, limits);
    for sport in 0..8 {
        assert_eq!(rig.kernel(&Skb::plain(&udp4(sport, 53, SIZE))).0, Verdict::Pass);
    }
    for sport in 100..200 {
        let _ninth = rig.kernel(&Skb::plain(&udp4(sport, 53, SIZE)));
    }
    let counters = rig.counters();
    assert_eq!(counters.reasons[Reason::Conform as usize].packets, 8);
    assert_eq!(counters.reasons[Reason::Untracked as usize].packets, 100);
}
