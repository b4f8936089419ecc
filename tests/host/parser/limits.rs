//! Where the walks end: eight tags, eight extension headers, and headers that cannot be read.

use shaper_common::{
    key::{Key, Per, Prefix},
    packet::{Facts, Link, MAX_EXTENSION_HEADERS, MAX_OFFSET, MAX_TAGS, Offload, Parsed, parse, proto},
};
use tests::{
    frames::{ARP, Extension, Frame, Ipv4, Ipv6, Network, QINQ, QINQ_OLD, Upper, VLAN},
    model::packet::HostPacket,
};

fn limited(frame: &Frame) -> Facts {
    match parse(&frame.bytes()[..], frame.link) {
        Parsed::Limited(facts) => facts,
        Parsed::Exempt => panic!("exempt: {frame:?}"),
    }
}

fn key(facts: &Facts) -> Key {
    Key::new(facts, Per::Flow, Prefix { v4: 32, v6: 128 })
}

#[test]
fn up_to_eight_tags_do_not_change_the_key_and_what_lies_deeper_is_one_flow() {
    assert_eq!(MAX_TAGS, 8);
    for tag in [VLAN, QINQ, QINQ_OLD] {
        for tags in 0..=12 {
            let frame = Frame::ethernet(Network::udp(1000, 53, 20)).tagged(&vec![tag; tags]);
            let expected =
                if tags <= 8 { key(&limited(&Frame::ethernet(Network::udp(1000, 53, 20)))) } else { Key::default() };
            assert_eq!(key(&limited(&frame)), expected, "{tags} tags {tag:#x}");
        }
    }
    // Not even ARP is free there: nobody has looked.
    let deep = Frame::ethernet(Network::Other(ARP, vec![0; 28])).tagged(&[VLAN; 9]);
    assert_eq!(key(&limited(&deep)), Key::default());
}

#[test]
fn a_tag_that_the_device_took_off_is_one_of_the_eight() {
    for (tags, readable) in [(0, true), (1, true), (7, true), (8, false), (9, false)] {
        let frame = Frame::ethernet(Network::udp(1000, 53, 20)).tagged(&vec![VLAN; tags]);
        let packet = HostPacket { stripped_tags: 1, ..HostPacket::plain(frame.bytes()) };
        let Parsed::Limited(facts) = parse(&packet, Link::Ethernet) else { panic!("{tags} tags are exempt") };
        assert_eq!(key(&facts) != Key::default(), readable, "{tags} tags and one that was taken off");
    }
}

#[test]
fn a_frame_that_ends_within_its_tags_carries_nothing() {
    let bytes = Frame::ethernet(Network::udp(1000, 53, 20)).tagged(&[VLAN, QINQ]).bytes();
    for len in 0..22 {
        assert_eq!(parse(&bytes[..len], Link::Ethernet), Parsed::Exempt, "{len} bytes");
    }
    assert_ne!(parse(&bytes[..22], Link::Ethernet), Parsed::Exempt, "from here on it claims to be IP");
}

#[test]
fn eight_extension_headers_are_walked_and_the_ninth_is_the_protocol() {
    assert_eq!(MAX_EXTENSION_HEADERS, 8);
    for headers in 0..=12 {
        let chain = vec![Extension::DESTINATION; headers];
        let facts = limited(&Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(1000, 53, 8)).extended(&chain))));
        let expected = if headers <= 8 { (proto::UDP, 1000, 53) } else { (proto::DESTINATION, 0, 0) };
        assert_eq!((facts.proto, facts.sport, facts.dport), expected, "{headers} headers");
        assert_eq!(facts.l4_offset as usize, 14 + 40 + 8 * headers.min(8));
        assert!(!facts.fragment);
    }
}

#[test]
fn each_kind_of_extension_header_is_walked_at_every_length() {
    for number in [proto::HOP_BY_HOP, proto::ROUTING, proto::DESTINATION, proto::MOBILITY, proto::AH] {
        for units in 0..=255 {
            let extension = if number == proto::AH { Extension::Auth(units) } else { Extension::Sized(number, units) };
            let frame = Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(1000, 53, 8)).extended(&[extension])));
            assert_eq!(Parsed::Limited(limited(&frame)), frame.parsed(), "{extension:?}");
        }
    }
}

#[test]
fn no_header_starts_behind_the_largest_offset() {
    let longest = vec![Extension::Sized(proto::DESTINATION, 255); 8];
    let ip = Ipv6::new(Upper::udp(1000, 53, 8)).extended(&longest);
    let facts = limited(&Frame::ethernet(Network::V6(ip)).tagged(&[VLAN; 8]));
    assert_eq!((facts.sport, facts.l4_offset), (1000, 14 + 8 * 4 + 40 + 8 * 2048));
    assert!(facts.l4_offset < MAX_OFFSET);
}

#[test]
fn a_fragment_header_ends_the_walk_unless_it_is_atomic() {
    for bits in 0..=u16::MAX {
        // Offset, two reserved bits, more fragments.
        let atomic = bits >> 3 == 0 && bits & 1 == 0;
        let ip = Ipv6::new(Upper::udp(1000, 53, 8)).extended(&[Extension::Fragment(bits)]);
        let facts = limited(&Frame::bare(Network::V6(ip)));
        let ports = if atomic { (1000, 53) } else { (0, 0) };
        assert_eq!((facts.fragment, facts.sport, facts.dport), (!atomic, ports.0, ports.1), "{bits:#x}");
        assert_eq!((facts.proto, facts.l4_offset), (proto::UDP, 48));
    }
}

#[test]
fn ip_headers_that_cannot_be_read_are_one_flow_whatever_else_they_say() {
    let readable = Frame::ethernet(Network::udp(1000, 53, 20)).bytes();
    let mut flows = Vec::new();
    for (what, first) in [("version 5", 0x55), ("version 6", 0x65), ("a header of 16 bytes", 0x44), ("none", 0x40)] {
        let mut bytes = readable.clone();
        bytes[14] = first;
        flows.push((what, bytes));
    }
    flows.push(("a header cut off", readable[..33].to_vec()));
    flows.push(("no header", readable[..14].to_vec()));
    for (what, bytes) in flows {
        let parsed = parse(&bytes[..], Link::Ethernet);
        let Parsed::Limited(facts) = parsed else { panic!("{what} is exempt") };
        assert_eq!(key(&facts), Key::default(), "{what}");
    }
}

#[test]
fn padding_that_the_ip_header_does_not_vouch_for_has_no_ports() {
    // A UDP header stands in the frame, behind the end of the IP packet.
    for (total_len, ports) in [(20, 0), (23, 0), (24, 1000), (48, 1000)] {
        let mut bytes = Frame::ethernet(Network::udp(1000, 53, 20)).bytes();
        bytes[16..18].copy_from_slice(&u16::to_be_bytes(total_len));
        let Parsed::Limited(facts) = parse(&bytes[..], Link::Ethernet) else { panic!("exempt") };
        assert_eq!(facts.sport, ports, "total length {total_len}");
    }
    for (payload_len, ports) in [(1, 0), (3, 0), (4, 1000), (28, 1000)] {
        let mut bytes = Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(1000, 53, 20)))).bytes();
        bytes[18..20].copy_from_slice(&u16::to_be_bytes(payload_len));
        let Parsed::Limited(facts) = parse(&bytes[..], Link::Ethernet) else { panic!("exempt") };
        assert_eq!(facts.sport, ports, "payload length {payload_len}");
    }
}

#[test]
fn a_length_of_zero_is_that_of_a_gso_packet_too_big_to_say_it() {
    for (what, network, length) in [
        ("IPv4", Network::udp(1000, 53, 20), 16..18),
        ("IPv6", Network::V6(Ipv6::new(Upper::udp(1000, 53, 20))), 18..20),
    ] {
        let mut bytes = Frame::ethernet(network).bytes();
        bytes[length].fill(0);
        for (segment_size, ports) in [(0, (0, 0)), (1448, (1000, 53))] {
            let offload = Offload { segment_size, segment_header: 0 };
            let packet = HostPacket { bytes: bytes.clone(), offload, ..HostPacket::default() };
            let Parsed::Limited(facts) = parse(&packet, Link::Ethernet) else { panic!("exempt") };
            assert_eq!((facts.sport, facts.dport), ports, "{what}, segments of {segment_size}");
        }
    }
}

#[test]
fn an_authentication_header_over_ipv4_hides_ports_and_over_ipv6_does_not() {
    let inside = Extension::Auth(4);
    let facts = limited(&Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(1000, 53, 8)).extended(&[inside]))));
    assert_eq!((facts.proto, facts.sport, facts.dport), (proto::UDP, 1000, 53));
    // The same bytes: next header UDP, length 4, and a UDP header behind.
    let authenticated = [&[proto::UDP, 4][..], &[0; 22], &Upper::udp(1000, 53, 8).bytes].concat();
    let facts = limited(&Frame::ethernet(Network::V4(Ipv4::new(Upper::new(proto::AH, authenticated)))));
    assert_eq!((facts.proto, facts.sport, facts.dport), (proto::AH, 0, 0));
}
