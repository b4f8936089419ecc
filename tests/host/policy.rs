//! From a packet to a verdict and its reason, and what is counted on the way.

use proptest::prelude::*;
use shaper_common::{
    abi::{Count, Overflow, RuleCounts, Settings},
    bucket::Limit,
    cost::Account,
    key::{Key, Per},
    packet::Link,
    siphash::SipKey,
    table::WAYS,
    verdict::{Reason, Verdict},
};
use tests::{
    frames::{ARP, Extension, Frame, Ipv4, Ipv6, Network, Upper},
    model::{
        packet::HostPacket,
        plane::{HostPlane, Outcome},
    },
};

use crate::property::{config, regressions};

const SECOND: u64 = 1_000_000_000;

/// One set, so that nine flows are too many; per flow; bytes of the frame.
pub(crate) const SETTINGS: Settings = Settings {
    epoch_base: 0,
    secret: SipKey { k0: 11, k1: 13 },
    set_mask: 0,
    overhead: 0,
    mpu: 0,
    account: Account::L2 as u8,
    per: Per::Flow as u8,
    prefix_v4: 32,
    prefix_v6: 128,
    link: Link::Ethernet as u8,
    overflow: Overflow::Shared as u8,
    features: 0,
    keying: 0,
    shard_mask: 0,
    shared_counters: 0,
    reserved: 0,
};

/// A limit that earns nothing while a test runs.
fn frozen(settings: Settings, burst: u64) -> HostPlane {
    HostPlane::new(settings, Limit::new(8, burst, 0), 0)
}

/// A UDP frame of `len` bytes from `sport`.
fn udp(sport: u16, len: usize) -> HostPacket {
    HostPacket::plain(Frame::ethernet(Network::udp(sport, 53, len - 42)).bytes())
}

fn said(outcome: Outcome) -> (Verdict, Reason) {
    (outcome.verdict, outcome.reason)
}

const CONFORM: (Verdict, Reason) = (Verdict::Pass, Reason::Conform);
const RATE: (Verdict, Reason) = (Verdict::Drop, Reason::Rate);
const OVERSIZE: (Verdict, Reason) = (Verdict::Drop, Reason::Oversize);
const EXEMPT: (Verdict, Reason) = (Verdict::Pass, Reason::Exempt);

#[test]
fn at_eight_bits_per_second_a_bucket_passes_its_burst_to_the_byte_and_then_one_byte_a_second() {
    for (size, burst) in [(60, 600), (60, 659), (100, 1000), (1514, 15_140)] {
        let mut plane = frozen(SETTINGS, burst);
        let packet = udp(1000, size);
        let fit = burst / size as u64;
        for _ in 0..fit {
            assert_eq!(said(plane.run(&packet)), CONFORM);
        }
        assert_eq!(said(plane.run(&packet)), RATE, "{fit} packets of {size} bytes are all of {burst}");
        // Until the missing bytes are earned; the clock at this rate is slow by less than a nanosecond in a second.
        let missing = size as u64 - burst % size as u64;
        plane.set_now(missing * SECOND);
        assert_eq!(said(plane.run(&packet)), RATE);
        plane.advance(missing);
        assert_eq!(said(plane.run(&packet)), CONFORM, "{missing} bytes of burst {burst}");
        assert_eq!(said(plane.run(&packet)), RATE);
    }
}

#[test]
fn a_packet_larger_than_the_burst_never_fits_and_says_so() {
    let mut plane = frozen(SETTINGS, 1000);
    assert_eq!(said(plane.run(&udp(1, 1001))), OVERSIZE);
    assert_eq!(said(plane.run(&udp(1, 1000))), CONFORM);
    assert_eq!(said(plane.run(&udp(1, 1001))), OVERSIZE, "also when the bucket is empty");
    assert_eq!(said(plane.run(&udp(1, 1000))), RATE);
    plane.set_now(u64::MAX / 2);
    assert_eq!(said(plane.run(&udp(1, 1001))), OVERSIZE, "also after centuries");
}

#[test]
fn what_is_never_limited_passes_an_empty_bucket_and_takes_no_way() {
    let mut plane = frozen(Settings { per: Per::Dev as u8, ..SETTINGS }, 100);
    assert_eq!(said(plane.run(&udp(1, 100))), CONFORM);
    assert_eq!(said(plane.run(&udp(1, 100))), RATE);
    let solicitation = Ipv6 { hop_limit: 255, ..Ipv6::new(Upper::icmpv6(135, 20)) };
    for network in [Network::Other(ARP, vec![0; 28]), Network::Other(0x88cc, vec![0; 50]), Network::V6(solicitation)] {
        let packet = HostPacket::plain(Frame::ethernet(network).bytes());
        let outcome = plane.run(&packet);
        assert_eq!((said(outcome), outcome.tracked), (EXEMPT, false));
        assert_eq!(outcome.cost.bytes, packet.bytes.len() as u64);
    }
    assert_eq!(plane.tracked().len(), 1);
}

#[test]
fn each_kind_of_key_shares_a_bucket_as_its_name_says() {
    // Source, destination and source port of a packet; the first takes all of its bucket.
    let packets: [(u8, u8, u16); 5] = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1), (17, 1, 1)];
    for (per, prefix_v4, limited) in [
        (Per::Flow, 32, [true, false, false, false, false]),
        (Per::Src, 32, [true, true, true, false, false]),
        (Per::Src, 28, [true, true, true, true, false]),
        (Per::Src, 0, [true, true, true, true, true]),
        (Per::Dst, 32, [true, true, false, true, true]),
        (Per::Dst, 24, [true, true, true, true, true]),
        (Per::Pair, 32, [true, true, false, false, false]),
        (Per::Dev, 32, [true, true, true, true, true]),
    ] {
        for ((src, dst, sport), limited) in packets.into_iter().zip(limited) {
            let mut plane = frozen(Settings { per: per as u8, prefix_v4, ..SETTINGS }, 100);
            let packet = |src, dst, sport| {
                let upper = Upper::udp(sport, 53, 58);
                let ip = Ipv4 { src: [10, 0, 0, src].into(), dst: [10, 0, 1, dst].into(), ..Ipv4::new(upper) };
                HostPacket::plain(Frame::ethernet(Network::V4(ip)).bytes())
            };
            assert_eq!(said(plane.run(&packet(1, 1, 1))), CONFORM);
            let expected = if limited { RATE } else { CONFORM };
            let case = format!("{per:?}/{prefix_v4}: 10.0.0.{src}:{sport} > 10.0.1.{dst}");
            assert_eq!(said(plane.run(&packet(src, dst, sport))), expected, "{case}");
        }
    }
}

#[test]
fn all_fragments_and_both_ip_versions_of_a_flow_pay_where_they_should() {
    let mut plane = frozen(SETTINGS, 1000);
    let fragment = |fragment| {
        let ip = Ipv4 { fragment, ..Ipv4::new(Upper::udp(1000, 53, 400)) };
        HostPacket::plain(Frame::ethernet(Network::V4(ip)).bytes())
    };
    // First, middle and last fragment are one flow, apart from the flow with ports.
    assert_eq!(said(plane.run(&fragment(0x2000))), CONFORM);
    assert_eq!(said(plane.run(&fragment(0x2032))), CONFORM);
    assert_eq!(said(plane.run(&fragment(0x0064))), RATE);
    assert_eq!(said(plane.run(&fragment(0x4000))), CONFORM);
    // An atomic fragment is none: it pays with the flow.
    let v6 = |extensions: &[Extension]| {
        let ip = Ipv6::new(Upper::udp(1000, 53, 400)).extended(extensions);
        HostPacket::plain(Frame::ethernet(Network::V6(ip)).bytes())
    };
    assert_eq!(said(plane.run(&v6(&[]))), CONFORM);
    assert_eq!(said(plane.run(&v6(&[Extension::Fragment(0)]))), CONFORM);
    assert_eq!(said(plane.run(&v6(&[]))), RATE);
    assert_eq!(said(plane.run(&v6(&[Extension::Fragment(1)]))), CONFORM);
}

#[test]
fn a_link_without_header_is_judged_like_any_other() {
    let mut plane = frozen(Settings { link: Link::Bare as u8, ..SETTINGS }, 100);
    let packet = HostPacket::plain(Frame::bare(Network::udp(1, 2, 72)).bytes());
    assert_eq!((said(plane.run(&packet)), said(plane.run(&packet))), (CONFORM, RATE));
    assert_eq!(said(plane.run(&HostPacket::plain(vec![0; 100]))), EXEMPT);
}

/// A plane whose one set is full of flows in debt.
fn crowded(overflow: Overflow) -> HostPlane {
    let mut plane = frozen(Settings { overflow: overflow as u8, ..SETTINGS }, 1000);
    for sport in 0..WAYS as u16 {
        let outcome = plane.run(&udp(1000 + sport, 60));
        assert_eq!((said(outcome), outcome.tracked), (CONFORM, true));
    }
    plane
}

#[test]
fn flows_that_find_no_way_share_a_bucket_pass_or_are_dropped_as_the_attachment_says() {
    let untracked = |verdict| (verdict, Reason::Untracked);
    let [pass, drop] = [untracked(Verdict::Pass), untracked(Verdict::Drop)];
    // Two new flows of 400 bytes and more: the shared bucket holds 1000.
    for (overflow, expected) in [
        (Overflow::Shared, [pass, pass, drop, pass, drop]),
        (Overflow::Open, [pass, pass, pass, pass, pass]),
        (Overflow::Closed, [drop, drop, drop, drop, drop]),
    ] {
        let mut plane = crowded(overflow);
        let packets = [(1, 400), (2, 400), (3, 400), (1, 200), (2, 60)];
        let outcomes = packets.map(|(sport, len)| plane.run(&udp(sport, len)));
        assert_eq!(outcomes.map(said), expected, "{overflow:?}");
        assert!(outcomes.iter().all(|outcome| !outcome.tracked));
        let bytes = packets.iter().map(|&(_, len)| len as u64).sum();
        assert_eq!(plane.counters().reasons[Reason::Untracked as usize], Count { packets: 5, bytes });
        // The flows that have a way are not touched by this.
        assert_eq!(said(plane.run(&udp(1000, 60))), CONFORM);
        assert_eq!(plane.tracked().len(), WAYS);
    }
}

#[test]
fn a_flow_gets_a_way_again_as_soon_as_one_bucket_is_full() {
    let mut plane = crowded(Overflow::Closed);
    assert_eq!(plane.run(&udp(1, 60)).reason, Reason::Untracked);
    plane.set_now(61 * SECOND);
    let outcome = plane.run(&udp(1, 60));
    assert_eq!((said(outcome), outcome.tracked), (CONFORM, true));
}

#[test]
fn neither_waiting_nor_flooding_gains_a_free_burst() {
    let mut plane = frozen(SETTINGS, 1000);
    while said(plane.run(&udp(1, 100))) == CONFORM {}
    for sport in 2..200 {
        let _whatever = plane.run(&udp(sport, 60));
    }
    plane.set_now(50 * SECOND);
    assert_eq!(said(plane.run(&udp(1, 100))), RATE, "only 50 of 100 bytes are earned");
}

#[test]
fn a_change_of_limits_leaves_levels_and_counters() {
    let mut plane = frozen(SETTINGS, 1000);
    let packet = udp(1, 100);
    for _ in 0..7 {
        assert_eq!(said(plane.run(&packet)), CONFORM);
    }
    let key = plane.tracked()[0].0;
    // The third burst does not hold the 300 bytes; they are not lost, the fourth holds them again.
    for (rate, burst, level) in [(8_000, 1000, 300), (8, 5000, 300), (16, 200, 200), (8, 1000, 300)] {
        plane.change(rate, burst);
        assert_eq!(plane.level(&key), level, "burst {burst}");
    }
    assert_eq!(plane.tracked(), [(key, 7, 0)]);
    assert_eq!([(); 4].map(|()| said(plane.run(&packet))), [CONFORM, CONFORM, CONFORM, RATE]);
    assert_eq!(plane.tracked(), [(key, 10, 1)]);
}

#[test]
fn the_key_in_the_table_is_the_one_people_will_read() {
    let mut plane = frozen(SETTINGS, 1000);
    let frame = Frame::ethernet(Network::udp(4321, 53, 10));
    let _conforms = plane.run(&HostPacket::plain(frame.bytes()));
    let shaper_common::packet::Parsed::Limited(facts) = frame.parsed() else { panic!("UDP is limited") };
    let key = Key::new(&facts, Per::Flow, shaper_common::key::Prefix { v4: 32, v6: 128 });
    assert_eq!(plane.tracked(), [(key, 1, 0)]);
}

/// What the counters must say after these outcomes.
fn counted(outcomes: &[Outcome]) -> RuleCounts {
    let mut counters = RuleCounts::default();
    for outcome in outcomes {
        let mut counts = vec![&mut counters.reasons[outcome.reason as usize]];
        if outcome.verdict == Verdict::Drop {
            counts.push(&mut counters.dropped);
        }
        for count in counts {
            count.packets += outcome.cost.packets;
            count.bytes += outcome.cost.bytes;
        }
    }
    counters
}

proptest! {
    #![proptest_config(config(regressions!("policy"), 200))]

    #[test]
    fn every_packet_is_counted_once_by_its_reason_and_once_more_if_it_was_dropped(
        burst in 100..3000_u64,
        overflow in prop::sample::select(&[Overflow::Shared, Overflow::Open, Overflow::Closed]),
        packets in prop::collection::vec((0..12_u16, 60..1600_usize, 0..40 * SECOND), 1..100),
    ) {
        let mut plane = frozen(Settings { overflow: overflow as u8, ..SETTINGS }, burst);
        let mut outcomes = Vec::new();
        for (sport, len, pause) in packets {
            plane.advance(pause);
            // One of the twelve is never limited.
            let packet = match sport {
                11 => HostPacket::plain(Frame::ethernet(Network::Other(ARP, vec![0; len])).bytes()),
                _ => udp(sport, len),
            };
            let outcome = plane.run(&packet);
            // What the reasons promise about the verdict.
            let passes = match outcome.reason {
                Reason::Conform | Reason::Exempt => true,
                Reason::Rate | Reason::Oversize => false,
                Reason::Untracked if overflow == Overflow::Shared => outcome.verdict == Verdict::Pass,
                Reason::Untracked => overflow == Overflow::Open,
                other => panic!("{other:?} without such a limit"),
            };
            prop_assert_eq!(outcome.verdict == Verdict::Pass, passes);
            prop_assert_eq!(outcome.tracked, !matches!(outcome.reason, Reason::Exempt | Reason::Untracked));
            prop_assert_eq!(outcome.reason == Reason::Oversize, outcome.tracked && outcome.cost.bytes > burst);
            outcomes.push(outcome);
        }
        prop_assert_eq!(plane.counters(), counted(&outcomes));
    }
}
