//! Verdicts and reasons, as a table of what must happen; the rig compares each packet with the host as well.

use shaper_common::{
    abi::Settings,
    bucket::Limit,
    cost::Account,
    key::Per,
    packet::Link,
    verdict::{Reason, Verdict},
};
use tests::frames::{ARP, Extension, Frame, Ipv4, Ipv6, Network, Upper};

use crate::{
    frames::{udp4, udp6},
    rig::{Rig, now, settings, standing},
    skb::Skb,
};

const PASS: (Verdict, Reason) = (Verdict::Pass, Reason::Conform);
const RATE: (Verdict, Reason) = (Verdict::Drop, Reason::Rate);
const EXEMPT: (Verdict, Reason) = (Verdict::Pass, Reason::Exempt);

/// Half a packet more than `packets` of `size` bytes, so that a second or ten of a byte a second change nothing.
fn burst(packets: u64, size: u64) -> Limit {
    standing(packets * size + size / 2)
}

#[test]
fn a_bucket_passes_burst_over_size_packets_and_not_one_more() {
    for rig in [Rig::ingress, Rig::egress] {
        for frame in [udp4(1, 2, 60), udp4(1, 2, 1514), udp6(1, 2, 62), udp6(1, 2, 1514)] {
            let mut rig = rig(settings(1), burst(10, frame.len() as u64));
            for _ in 0..10 {
                assert_eq!(rig.frame(&frame), PASS);
            }
            for _ in 0..10 {
                assert_eq!(rig.frame(&frame), RATE);
            }
            rig.assert_same_tables();
        }
    }
}

#[test]
fn a_packet_larger_than_the_burst_never_fits() {
    let mut rig = Rig::ingress(settings(1), standing(1000));
    assert_eq!(rig.frame(&udp4(1, 2, 1514)), (Verdict::Drop, Reason::Oversize));
    assert_eq!(rig.frame(&udp4(1, 2, 900)), PASS, "and takes nothing from the bucket");
    assert_eq!(rig.frame(&udp4(1, 2, 900)), RATE);
    rig.assert_same_tables();
}

#[test]
fn a_packet_of_exactly_the_burst_fits_a_full_bucket() {
    let mut rig = Rig::ingress(settings(1), standing(1514));
    assert_eq!(rig.frame(&udp4(1, 2, 1514)), PASS);
}

#[test]
fn a_high_rate_refills_faster_than_packets_come() {
    let rig = Rig::ingress(settings(1), Limit::new(1_000_000_000_000, 1514, now()));
    // Only the kernel has a clock that runs by itself. A system call takes longer than the 12 ns of 1514 bytes.
    for _ in 0..100 {
        assert_eq!(rig.kernel(&Skb::plain(&udp4(1, 2, 1514))).0, Verdict::Pass);
    }
}

#[test]
fn what_is_not_ip_and_what_keeps_the_link_working_is_exempt() {
    let discovery = |kind| Frame::ethernet(Network::V6(Ipv6 { hop_limit: 255, ..Ipv6::new(Upper::icmpv6(kind, 16)) }));
    let mut rig = Rig::ingress(settings(1), standing(1));
    assert_eq!(rig.frame(&Frame::ethernet(Network::Other(ARP, vec![0; 46])).bytes()), EXEMPT);
    assert_eq!(rig.frame(&Frame::ethernet(Network::Other(0x88cc, vec![0; 46])).bytes()), EXEMPT);
    for kind in 133..=137 {
        assert_eq!(rig.frame(&discovery(kind).bytes()), EXEMPT, "ICMPv6 type {kind}");
    }
    for kind in [128, 132, 138] {
        assert_eq!(rig.frame(&discovery(kind).bytes()), (Verdict::Drop, Reason::Oversize), "ICMPv6 type {kind}");
    }
    let forwarded = Ipv6 { hop_limit: 254, ..Ipv6::new(Upper::icmpv6(135, 16)) };
    assert_eq!(rig.frame(&Frame::ethernet(Network::V6(forwarded)).bytes()), (Verdict::Drop, Reason::Oversize));
    let behind_options =
        Ipv6 { hop_limit: 255, ..Ipv6::new(Upper::icmpv6(135, 16)).extended(&[Extension::HOP_BY_HOP]) };
    assert_eq!(rig.frame(&Frame::ethernet(Network::V6(behind_options)).bytes()), (Verdict::Drop, Reason::Oversize));
    rig.assert_same_tables();
}

#[test]
fn who_shares_a_bucket() {
    let from = |src: [u8; 4], dst: [u8; 4], sport| {
        let ip = Ipv4 { src: src.into(), dst: dst.into(), ..Ipv4::new(Upper::udp(sport, 53, 58)) };
        Frame::ethernet(Network::V4(ip)).bytes()
    };
    let first = from([10, 0, 0, 1], [10, 0, 1, 1], 1000);
    let other_port = from([10, 0, 0, 1], [10, 0, 1, 1], 1001);
    let other_dst = from([10, 0, 0, 1], [10, 0, 2, 1], 1000);
    let same_net = from([10, 0, 0, 2], [10, 0, 1, 1], 1000);
    let other_net = from([10, 9, 0, 1], [10, 0, 1, 1], 1000);
    // Which of the four others finds the bucket of the first used up.
    for (per, prefix_v4, shared) in [
        (Per::Flow, 32, [false, false, false, false]),
        (Per::Src, 32, [true, true, false, false]),
        (Per::Src, 24, [true, true, true, false]),
        (Per::Dst, 32, [true, false, true, true]),
        (Per::Dst, 16, [true, true, true, true]),
        (Per::Pair, 32, [true, false, false, false]),
        (Per::Dev, 32, [true, true, true, true]),
    ] {
        let settings = Settings { per: per as u8, prefix_v4, ..settings(16) };
        for (frame, shared) in [&other_port, &other_dst, &same_net, &other_net].into_iter().zip(shared) {
            let mut rig = Rig::ingress(settings, burst(1, 100));
            assert_eq!(rig.frame(&first), PASS);
            assert_eq!(rig.frame(frame), if shared { RATE } else { PASS }, "{per:?}/{prefix_v4}");
            rig.assert_same_tables();
        }
    }
}

#[test]
fn fragments_share_a_bucket_whatever_they_carry() {
    let piece = |fragment, sport| {
        let ip = Ipv4 { fragment, ..Ipv4::new(Upper::udp(sport, 53, 58)) };
        Frame::ethernet(Network::V4(ip)).bytes()
    };
    let mut rig = Rig::ingress(settings(1), burst(1, 100));
    assert_eq!(rig.frame(&piece(0x2000, 1000)), PASS);
    assert_eq!(rig.frame(&piece(0x2001, 1000)), RATE);
    assert_eq!(rig.frame(&piece(0x0002, 7777)), RATE);
    assert_eq!(rig.frame(&piece(0x0000, 1000)), PASS, "the same packet whole has its own");
    rig.assert_same_tables();
}

#[test]
fn a_tag_costs_its_bytes_and_changes_no_key() {
    let plain = Frame::ethernet(Network::udp(1, 2, 58));
    let mut rig = Rig::ingress(settings(1), burst(2, 100));
    assert_eq!(rig.frame(&plain.bytes()), PASS);
    assert_eq!(rig.frame(&plain.clone().tagged(&[0x88a8, 0x8100]).bytes()), PASS);
    assert_eq!(rig.frame(&plain.tagged(&[0x8100]).bytes()), RATE);
    assert_eq!(rig.counters().reasons[Reason::Conform as usize].bytes, 208);
    rig.assert_same_tables();
}

#[test]
fn a_device_without_link_header_has_ip_at_the_first_byte() {
    let settings = Settings { link: Link::Bare as u8, ..settings(1) };
    let mut rig = Rig::egress(settings, burst(1, 86));
    let packet = Frame::bare(Network::udp(1, 2, 58)).bytes();
    assert_eq!(rig.frame(&packet), PASS);
    assert_eq!(rig.frame(&packet), RATE);
    assert_eq!(rig.frame(&[0x11; 40]), EXEMPT);
}

#[test]
fn layer_three_accounting_leaves_out_link_header_and_tags() {
    let settings = Settings { account: Account::L3 as u8, overhead: 10, mpu: 120, ..settings(1) };
    let mut rig = Rig::ingress(settings, standing(1 << 20));
    let frame = Frame::ethernet(Network::udp(1, 2, 172));
    assert_eq!(rig.frame(&frame.bytes()), PASS);
    assert_eq!(rig.frame(&frame.tagged(&[0x8100]).bytes()), PASS);
    assert_eq!(rig.counters().reasons[Reason::Conform as usize].bytes, 2 * 210);
    assert_eq!(rig.frame(&udp4(1, 2, 60)), PASS);
    assert_eq!(rig.counters().reasons[Reason::Conform as usize].bytes, 2 * 210 + 120);
}
