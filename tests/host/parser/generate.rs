//! Frames at random, from the ordinary to the absurd, all well-formed.

use proptest::{collection::vec, prelude::*, sample::select};
use shaper_common::packet::{Link, proto};
use tests::frames::{
    ARP, DONT_FRAGMENT, Extension, Frame, Ipv4, Ipv6, MORE_FRAGMENTS, Network, QINQ, QINQ_OLD, Upper, VLAN,
};

/// Frames with up to `tags` VLAN tags and up to `extensions` extension headers.
pub(super) fn frames(tags: usize, extensions: usize) -> impl Strategy<Value = Frame> {
    let link = prop_oneof![4 => Just(Link::Ethernet), 1 => Just(Link::Bare)];
    let tags = prop_oneof![2 => Just(Vec::new()), 3 => vec(select(&[VLAN, QINQ, QINQ_OLD]), 0..=tags)];
    let trailer = prop_oneof![3 => Just(0), 1 => 1..50_usize];
    (link, tags, networks(extensions), trailer).prop_map(|(link, tags, network, trailer)| {
        let tags = if link == Link::Bare { Vec::new() } else { tags };
        Frame { link, tags, network, trailer }
    })
}

fn networks(extensions: usize) -> impl Strategy<Value = Network> {
    prop_oneof![
        10 => ipv4().prop_map(Network::V4),
        10 => ipv6(extensions).prop_map(Network::V6),
        // The first byte says neither 4 nor 6, for links on which it is all there is to go by.
        1 => (select(&[ARP, 0x0800 - 1, 0x8847, 0x88cc]), vec(any::<u8>(), 0..60)).prop_map(|(ethertype, mut payload)| {
            if let Some(first) = payload.first_mut() {
                *first &= 0x0f;
            }
            Network::Other(ethertype, payload)
        }),
    ]
}

fn ipv4() -> impl Strategy<Value = Ipv4> {
    let fragment = prop_oneof![
        3 => Just(0),
        3 => Just(DONT_FRAGMENT),
        1 => Just(MORE_FRAGMENTS),
        2 => (1..0x2000_u16, select(&[0, MORE_FRAGMENTS])).prop_map(|(offset, more)| offset | more),
    ];
    (any::<u32>(), any::<u32>(), 0..=10_u8, fragment, uppers()).prop_map(|(src, dst, options, fragment, upper)| {
        let [src, dst] = [src, dst].map(std::net::Ipv4Addr::from_bits);
        Ipv4 { src, dst, options, fragment, upper }
    })
}

fn ipv6(extensions: usize) -> impl Strategy<Value = Ipv6> {
    let hop_limit = select(&[1, 64, 254, 255]);
    let extensions = prop_oneof![2 => Just(Vec::new()), 3 => vec(extension(), 0..=extensions)];
    (any::<u128>(), any::<u128>(), hop_limit, extensions, uppers()).prop_map(
        |(src, dst, hop_limit, extensions, upper)| {
            let [src, dst] = [src, dst].map(std::net::Ipv6Addr::from_bits);
            Ipv6 { src, dst, hop_limit, extensions, upper }
        },
    )
}

fn extension() -> impl Strategy<Value = Extension> {
    let number = select(&[proto::HOP_BY_HOP, proto::ROUTING, proto::DESTINATION, proto::MOBILITY]);
    let units = prop_oneof![3 => Just(0), 2 => 0..4_u8, 1 => any::<u8>()];
    prop_oneof![
        5 => (number, units).prop_map(|(number, units)| Extension::Sized(number, units)),
        1 => select(&[0, 2, 4, 6]).prop_map(Extension::Fragment),
        1 => any::<u16>().prop_map(Extension::Fragment),
        // At least the twelve bytes that every authentication header has (RFC 4302).
        1 => (1..20_u8).prop_map(Extension::Auth),
    ]
}

fn uppers() -> impl Strategy<Value = Upper> {
    let ports = (any::<u16>(), any::<u16>());
    prop_oneof![
        3 => (ports, 0..200_usize).prop_map(|((s, d), payload)| Upper::udp(s, d, payload)),
        3 => (ports, 0..=10_u8, 0..200_usize)
            .prop_map(|((s, d), options, payload)| Upper::tcp(s, d, options, payload)),
        2 => (select(&[proto::UDP_LITE, proto::SCTP, proto::DCCP]), ports, 0..40_usize)
            .prop_map(|(proto, (s, d), rest)| Upper::ports(proto, s, d, rest)),
        2 => (prop_oneof![130..140_u8, any::<u8>()], 4..40_usize)
            .prop_map(|(kind, payload)| Upper::icmpv6(kind, payload)),
        // ICMP, IGMP, IP in IP, GRE, ESP, no next header, OSPF; bytes that would make a fine transport header.
        2 => (select(&[1, 2, 4, 41, 47, 50, 59, 89]), vec(any::<u8>(), 0..60))
            .prop_map(|(proto, bytes)| Upper::new(proto, bytes)),
        // Transport headers that are cut off.
        1 => (select(&[proto::TCP, proto::UDP, proto::SCTP]), vec(any::<u8>(), 0..8))
            .prop_map(|(proto, bytes)| Upper::new(proto, bytes)),
    ]
}
