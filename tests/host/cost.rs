//! What a packet costs, to the byte: accounts, overhead and minimum, stripped tags, and the segments of GSO packets.

use proptest::prelude::*;
use shaper_common::{
    cost::{self, Account, Accounting, Cost},
    packet::{self, Offload, Packet, Parsed},
};
use tests::{
    frames::{Extension, Frame, Ipv4, Ipv6, Network, QINQ, Upper, VLAN},
    model::packet::HostPacket,
};

use crate::property::{config, magnitudes, regressions};

const L2: Accounting = Accounting { account: Account::L2, overhead: 0, mpu: 0 };
const L3: Accounting = Accounting { account: Account::L3, ..L2 };
/// Preamble, check sequence and gap; and the shortest frame with them.
const WIRE: Accounting = Accounting { account: Account::L2, overhead: 24, mpu: 84 };

fn cost(frame: &Frame, packet: &HostPacket, accounting: Accounting) -> Cost {
    match packet::parse(packet, frame.link) {
        Parsed::Limited(facts) => cost::of(packet, &facts, accounting),
        Parsed::Exempt => panic!("the frame costs nothing"),
    }
}

fn plain(frame: &Frame, accounting: Accounting) -> Cost {
    cost(frame, &HostPacket::plain(frame.bytes()), accounting)
}

const fn one(bytes: u64) -> Cost {
    Cost { bytes, packets: 1 }
}

/// A UDP datagram whose IP packet has `len` bytes.
fn udp(len: usize) -> Network {
    Network::udp(1000, 53, len - 28)
}

#[test]
fn an_ordinary_packet_costs_what_its_account_says() {
    let untagged = Frame::ethernet(udp(100));
    let tagged = Frame::ethernet(udp(100)).tagged(&[QINQ, VLAN]);
    let padded = Frame { trailer: 18, ..Frame::ethernet(udp(28)) };
    let bare = Frame::bare(udp(100));
    for (frame, l2, l3, wire) in
        [(&untagged, 114, 100, 138), (&tagged, 122, 100, 146), (&padded, 60, 46, 84), (&bare, 100, 100, 124)]
    {
        let costs = [L2, L3, WIRE].map(|accounting| plain(frame, accounting));
        assert_eq!(costs, [l2, l3, wire].map(one), "{frame:?}");
    }
}

#[test]
fn a_forged_total_length_changes_nothing() {
    let frame = Frame::ethernet(udp(500));
    for total_len in [0_u16, 1, 20, 28, 9999, u16::MAX] {
        let mut bytes = frame.bytes();
        bytes[16..18].copy_from_slice(&total_len.to_be_bytes());
        let packet = HostPacket::plain(bytes);
        assert_eq!([L2, L3].map(|accounting| cost(&frame, &packet, accounting)), [one(514), one(500)], "{total_len}");
    }
}

#[test]
fn a_tag_that_the_device_took_off_costs_what_it_cost_on_the_wire() {
    let frame = Frame::ethernet(udp(100)).tagged(&[VLAN]);
    let packet = HostPacket { stripped_tags: 1, ..HostPacket::plain(frame.bytes()) };
    assert_eq!([L2, L3, WIRE].map(|accounting| cost(&frame, &packet, accounting)), [122, 100, 146].map(one));
    assert_eq!(cost::unlimited(&packet), one(122));
}

#[test]
fn overhead_and_minimum_are_applied_in_the_order_of_tc() {
    for (overhead, mpu, len, expected) in [
        (0, 0, 100, 100),
        (24, 84, 59, 84),
        (24, 84, 60, 84),
        (24, 84, 61, 85),
        (0, 64, 46, 64),
        (-14, 0, 100, 86),
        (-14, 64, 70, 64),
        (10, 0, 1500, 1510),
    ] {
        let accounting = Accounting { overhead, mpu, ..L2 };
        assert_eq!(accounting.one(len), expected, "{len} bytes, overhead {overhead}, mpu {mpu}");
    }
}

#[test]
fn no_packet_is_free_however_negative_the_overhead() {
    // As in the kernel's qdisc_calculate_pkt_len: at least one byte.
    for overhead in [-60, -61, -10_000, i32::MIN] {
        assert_eq!(Accounting { overhead, ..L2 }.one(60), 1, "overhead {overhead}");
    }
    // An Ethernet header that promises IP, and nothing behind it.
    let headless = HostPacket::plain(Frame::ethernet(udp(28)).bytes()[..14].to_vec());
    let Parsed::Limited(facts) = packet::parse(&headless, packet::Link::Ethernet) else { panic!("it claims to be IP") };
    assert_eq!(cost::of(&headless, &facts, L3), one(1));
}

#[test]
fn a_gso_packet_costs_its_segments_with_a_header_and_an_overhead_for_each() {
    // 14 + 20 + 32 bytes of headers, 10,000 bytes of payload in segments of 1448: six full and one of 1312.
    let frame = Frame::ethernet(Network::V4(Ipv4::new(Upper::tcp(1000, 80, 3, 10_000))));
    let offload = Offload { segment_size: 1448, segment_header: 0 };
    let packet = HostPacket { offload, ..HostPacket::plain(frame.bytes()) };
    let bytes = |per_segment: u64| 10_000 + 7 * per_segment;
    for (accounting, expected) in [(L2, bytes(66)), (L3, bytes(52)), (WIRE, bytes(90))] {
        assert_eq!(cost(&frame, &packet, accounting), Cost { bytes: expected, packets: 7 });
    }
    // With a tag in the packet, and with one that the device took off.
    let tagged = frame.clone().tagged(&[VLAN]);
    let packet = HostPacket { offload, stripped_tags: 1, ..HostPacket::plain(tagged.bytes()) };
    assert_eq!(cost(&tagged, &packet, L2), Cost { bytes: bytes(74), packets: 7 });
    assert_eq!(cost(&tagged, &packet, L3), Cost { bytes: bytes(52), packets: 7 });
}

#[test]
fn the_minimum_counts_for_a_short_last_segment_alone() {
    let accounting = Accounting { mpu: 1000, ..L2 };
    assert_eq!(accounting.segments(50 + 2 * 1400 + 3, 50, 1400), Cost { bytes: 2 * 1450 + 1000, packets: 3 });
}

#[test]
fn headers_that_the_kernel_has_measured_are_believed() {
    let frame = Frame::ethernet(udp(5000));
    let offload = Offload { segment_size: 1000, segment_header: 92 };
    let packet = HostPacket { offload, ..HostPacket::plain(frame.bytes()) };
    let payload = 5014 - 92;
    assert_eq!(cost(&frame, &packet, L2), Cost { bytes: payload + 5 * 92, packets: 5 });
}

#[test]
fn udp_segments_and_ipv6_extension_headers_are_repeated_too() {
    let upper = Upper::udp(1000, 443, 3000);
    let network = Network::V6(Ipv6::new(upper).extended(&[Extension::DESTINATION]));
    let frame = Frame::ethernet(network);
    let offload = Offload { segment_size: 1200, segment_header: 0 };
    let packet = HostPacket { offload, ..HostPacket::plain(frame.bytes()) };
    assert_eq!(cost(&frame, &packet, L2), Cost { bytes: 3000 + 3 * (14 + 40 + 8 + 8), packets: 3 });
}

#[test]
fn a_gso_packet_that_is_shorter_than_its_headers_is_one_packet() {
    for len in [0, 1, 53, 54] {
        assert_eq!(L2.segments(len, 54, 1448), Cost { bytes: u64::from(len.max(1)), packets: 1 });
    }
    assert_eq!(L2.segments(55, 54, 1448), one(55));
}

#[test]
fn a_segment_that_is_exactly_full_is_not_followed_by_an_empty_one() {
    assert_eq!(L2.segments(54 + 1448, 54, 1448), one(1502));
    assert_eq!(L2.segments(54 + 2 * 1448, 54, 1448), Cost { bytes: 2 * 1502, packets: 2 });
    assert_eq!(L2.segments(54 + 2 * 1448 + 1, 54, 1448), Cost { bytes: 2 * 1502 + 55, packets: 3 });
}

/// The segments one by one.
fn naive(accounting: Accounting, len: u32, header: u32, segment_size: u32) -> Cost {
    let mut cost = Cost::default();
    let mut left = len.saturating_sub(header);
    if left == 0 {
        return one(u64::from(accounting.one(len)));
    }
    while left > 0 {
        let payload = left.min(segment_size);
        cost.bytes += u64::from(accounting.one(header + payload));
        cost.packets += 1;
        left -= payload;
    }
    cost
}

proptest! {
    #![proptest_config(config(regressions!("cost"), 1000))]

    #[test]
    fn segments_cost_what_they_cost_one_by_one(
        len in magnitudes(0..=600_000),
        header in 0..300_u32,
        segment_size in prop_oneof![1..100_u32, 500..9000_u32],
        overhead in prop_oneof![Just(0), Just(24), -100..100],
        mpu in prop_oneof![Just(0_u32), Just(84), 0..3000_u32],
    ) {
        let accounting = Accounting { overhead, mpu, ..L2 };
        let len = len as u32;
        prop_assert_eq!(
            accounting.segments(len, header, segment_size),
            naive(accounting, len, header, segment_size)
        );
    }

    #[test]
    fn the_same_traffic_costs_the_same_joined_and_apart(
        payload in 1..40_000_usize,
        segment_size in 100..9000_u32,
        options in 0..=10_u8,
        tags in prop::collection::vec(prop::sample::select(&[VLAN, QINQ]), 0..3),
        accounting in prop::sample::select(&[L2, L3, WIRE]),
    ) {
        let frame = |payload| {
            Frame::ethernet(Network::V4(Ipv4::new(Upper::tcp(1, 2, options, payload)))).tagged(&tags)
        };
        let joined = frame(payload);
        let offload = Offload { segment_size, segment_header: 0 };
        let whole = cost(&joined, &HostPacket { offload, ..HostPacket::plain(joined.bytes()) }, accounting);
        let mut apart = Cost::default();
        let mut left = payload;
        while left > 0 {
            let segment = left.min(segment_size as usize);
            let Cost { bytes, packets } = plain(&frame(segment), accounting);
            apart.bytes += bytes;
            apart.packets += packets;
            left -= segment;
        }
        prop_assert_eq!(whole, apart);
    }

    #[test]
    fn no_packet_and_no_offload_facts_make_it_panic_or_cost_nothing(
        bytes in prop::collection::vec(any::<u8>(), 14..120),
        unread in 0..(1_u32 << 24),
        segment_size in prop_oneof![Just(0), any::<u16>().prop_map(u32::from)],
        segment_header in prop_oneof![Just(0), any::<u16>().prop_map(u32::from)],
        stripped_tags in 0..=1_u32,
        accounting in prop::sample::select(&[L2, L3, WIRE]),
        link in prop::sample::select(&[packet::Link::Ethernet, packet::Link::Bare]),
    ) {
        let offload = Offload { segment_size, segment_header };
        let mut bytes = bytes;
        bytes[12..14].copy_from_slice(&[0x08, 0x00]);
        let packet = HostPacket { bytes, unread, offload, stripped_tags };
        if let Parsed::Limited(facts) = packet::parse(&packet, link) {
            let cost = cost::of(&packet, &facts, accounting);
            prop_assert!(cost.bytes >= 1 && cost.packets >= 1, "{:?}", cost);
            prop_assert!(cost.bytes >= u64::from(packet.len()) - u64::from(facts.l2_len));
        }
    }
}
