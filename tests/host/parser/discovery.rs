//! Neighbour and router discovery is free, and nothing else that looks like it.

use shaper_common::packet::{Link, Parsed, parse, proto};
use tests::frames::{Extension, Frame, Ipv6, Network, Upper, VLAN};

fn is_exempt(ip: Ipv6) -> bool {
    let frame = Frame::ethernet(Network::V6(ip));
    let tagged = frame.clone().tagged(&[VLAN]);
    let [plain, tagged] = [frame, tagged].map(|frame| parse(&frame.bytes()[..], frame.link) == Parsed::Exempt);
    assert_eq!(plain, tagged, "a tag makes no difference");
    plain
}

fn message(kind: u8) -> Ipv6 {
    Ipv6 { hop_limit: 255, ..Ipv6::new(Upper::icmpv6(kind, 20)) }
}

#[test]
fn of_all_icmpv6_types_and_hop_limits_only_133_to_137_with_255_are_exempt() {
    for kind in 0..=255 {
        for hop_limit in 0..=255 {
            let expected = (133..=137).contains(&kind) && hop_limit == 255;
            assert_eq!(is_exempt(Ipv6 { hop_limit, ..message(kind) }), expected, "type {kind}, hop limit {hop_limit}");
        }
    }
}

#[test]
fn behind_an_extension_header_it_is_limited() {
    for extension in [
        Extension::HOP_BY_HOP,
        Extension::ROUTING,
        Extension::DESTINATION,
        Extension::MOBILITY,
        Extension::Auth(4),
        Extension::Fragment(0),
        Extension::Fragment(1),
    ] {
        assert!(!is_exempt(message(135).extended(&[extension])), "{extension:?}");
    }
}

#[test]
fn another_protocol_that_starts_with_its_type_is_limited() {
    for number in (0..=255).filter(|&number| number != proto::ICMPV6) {
        let upper = Upper::new(number, vec![135; 24]);
        assert!(!is_exempt(Ipv6 { hop_limit: 255, ..Ipv6::new(upper) }), "protocol {number}");
    }
}

#[test]
fn a_message_without_a_first_byte_is_limited() {
    let upper = Upper::new(proto::ICMPV6, Vec::new());
    assert!(!is_exempt(Ipv6 { hop_limit: 255, ..Ipv6::new(upper) }));
}

#[test]
fn a_header_that_does_not_say_version_6_announces_no_discovery() {
    let bytes = Frame::ethernet(Network::V6(message(135))).bytes();
    for version in (0..16).filter(|&version| version != 6) {
        let mut bytes = bytes.clone();
        bytes[14] = version << 4;
        assert_ne!(parse(&bytes[..], Link::Ethernet), Parsed::Exempt, "version {version}");
    }
}

#[test]
fn a_header_that_is_cut_off_announces_no_discovery() {
    let bytes = Frame::ethernet(Network::V6(message(135))).bytes();
    for len in 14..bytes.len() {
        // All that has to be read is the IP header and the type.
        let expected = len > 14 + 40;
        assert_eq!(parse(&bytes[..len], Link::Ethernet) == Parsed::Exempt, expected, "{len} bytes");
    }
}
