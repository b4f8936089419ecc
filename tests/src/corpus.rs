//! Packets that are worth keeping: one file in `tests/corpus` for each oddity or find, with what must be said of it.
//!
//! ```text
//! # Why this packet is here.
//! link ethernet
//! expect ipv4 192.0.2.1 > 198.51.100.2 proto 17 ports 1 > 53 l2 14 l4 34
//! 020000000002 020000000001 0800
//! 4500 ..
//! ```
//!
//! The files are part of the test binary, so that it also runs where the source is not, in a virtual machine say.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

use shaper_common::{
    key::{Address, Family},
    packet::{Facts, Link, Parsed},
};

macro_rules! files {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../corpus/", $name, ".packet"))),)*
        ];
    };
}

// A test compares this list with the folder.
files! {
    "arp",
    "bare_ipv4",
    "bare_ipv6",
    "bare_other",
    "dccp",
    "esp",
    "fragment_ipv4_first",
    "fragment_ipv4_last",
    "fragment_ipv4_later",
    "fragment_ipv6_atomic",
    "fragment_ipv6_first",
    "fragment_ipv6_last",
    "fragment_ipv6_reserved_bits",
    "icmp_echo",
    "ip_in_ip",
    "ipv4_ah",
    "ipv4_cut",
    "ipv4_header_beyond_packet",
    "ipv4_header_too_short",
    "ipv4_length_forged",
    "ipv4_length_zero",
    "ipv4_ports_in_padding",
    "ipv4_that_says_6",
    "ipv6_ah",
    "ipv6_ah_short",
    "ipv6_chain",
    "ipv6_chain_cut",
    "ipv6_chain_eight",
    "ipv6_chain_forged_length",
    "ipv6_chain_nine",
    "ipv6_cut",
    "ipv6_hop_by_hop_late",
    "ipv6_mapped",
    "ipv6_ports_in_padding",
    "mpls",
    "neighbour_solicitation",
    "neighbour_solicitation_behind_options",
    "neighbour_solicitation_hop_64",
    "neighbour_solicitation_in_fragment",
    "qinq",
    "sctp",
    "tcp_ipv4_options",
    "udp",
    "udp_lite",
    "udp_padded",
    "vlan",
    "vlan_eight",
    "vlan_nine",
}

/// A packet of the corpus.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Name of the file, without ending.
    pub name: &'static str,
    /// What stands before the IP header.
    pub link: Link,
    /// What [`describe`] must say.
    pub expect: &'static str,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// All packets.
#[must_use]
pub fn samples() -> Vec<Sample> {
    FILES.iter().map(|&(name, text)| sample(name, text)).collect()
}

/// Reads one file.
///
/// # Panics
///
/// If the file is not written as the module's text says.
#[must_use]
pub fn sample(name: &'static str, text: &'static str) -> Sample {
    let mut link = None;
    let mut expect = None;
    let mut digits = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("link", "ethernet")) => link = Some(Link::Ethernet),
            Some(("link", "bare")) => link = Some(Link::Bare),
            Some(("expect", text)) => expect = Some(text),
            _ => digits.extend(line.bytes().filter(|byte| !byte.is_ascii_whitespace())),
        }
    }
    let (pairs, odd) = digits.as_chunks::<2>();
    assert!(odd.is_empty(), "{name}: half a byte");
    let byte = |pair: &[u8; 2]| {
        let text = str::from_utf8(pair).expect("hexadecimal digits");
        u8::from_str_radix(text, 16).unwrap_or_else(|error| panic!("{name}: {text}: {error}"))
    };
    Sample {
        name,
        link: link.unwrap_or_else(|| panic!("{name}: no link")),
        expect: expect.unwrap_or_else(|| panic!("{name}: no expectation")),
        bytes: pairs.iter().map(byte).collect(),
    }
}

/// What the parser said, in one line.
#[must_use]
pub fn describe(parsed: &Parsed) -> String {
    let Parsed::Limited(facts) = parsed else { return String::from("exempt") };
    let &Facts { proto, sport, dport, l2_len, l4_offset, .. } = facts;
    let mut text = match facts.family {
        Family::None => String::from("unreadable"),
        Family::V4 => format!("ipv4 {} > {}", v4(facts.src), v4(facts.dst)),
        Family::V6 => format!("ipv6 {} > {}", v6(facts.src), v6(facts.dst)),
    };
    let fragment = if facts.fragment { " fragment" } else { "" };
    write!(text, " proto {proto} ports {sport} > {dport}{fragment} l2 {l2_len} l4 {l4_offset}")
        .expect("a string takes everything");
    text
}

fn octets(address: Address) -> [u8; 16] {
    let [a, b] = address.map(u64::to_ne_bytes);
    std::array::from_fn(|i| if i < 8 { a[i] } else { b[i - 8] })
}

fn v4(address: Address) -> Ipv4Addr {
    let [a, b, c, d, ..] = octets(address);
    Ipv4Addr::new(a, b, c, d)
}

fn v6(address: Address) -> Ipv6Addr {
    Ipv6Addr::from(octets(address))
}
