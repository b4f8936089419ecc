//! Packets that are worth keeping: one file in `tests/corpus` for each oddity or find, with what must be said of it.
//!
//! ```text
//! # Why this packet is here.
//! link ethernet
//! expect ipv4 192.0.2.1 > 198.51.100.2 proto 17 ports 1 > 53 l2 14 l4 34
//! charge flow 50
//! 020000000002 020000000001 0800
//! 4500 ..
//! ```
//!
//! `expect` says what the parser makes of it, and thereby its key under `--per flow`: family, addresses, protocol and
//! ports; of an unreadable packet, zeros. `charge` says who pays how many bytes of `--account l2`. Under 8 bit/s and a
//! burst of just these bytes, what is charged to its `flow` passes once as `conform` and is then dropped as `rate`; what
//! is `exempt` always passes and is counted as that.
//!
//! The files are part of the test binary, so that it also runs where the source is not, in a virtual machine say.

use std::{
    fmt::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use shaper_common::{
    key::{Address, Family, Key},
    packet::{Facts, Link, Parsed},
    verdict::{Reason, Verdict},
};

use crate::frames;

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
    "bare_hop_by_hop",
    "bare_ipv4",
    "bare_ipv4_cut",
    "bare_ipv6",
    "bare_neighbour_solicitation",
    "bare_noise",
    "bare_other",
    "dccp",
    "esp",
    "fragment_ipv4_first",
    "fragment_ipv4_last",
    "fragment_ipv4_later",
    "fragment_ipv4_offset_one",
    "fragment_ipv4_reserved_bit",
    "fragment_ipv4_tiny",
    "fragment_ipv6_atomic",
    "fragment_ipv6_behind_atomic",
    "fragment_ipv6_behind_options",
    "fragment_ipv6_cut",
    "fragment_ipv6_first",
    "fragment_ipv6_last",
    "fragment_ipv6_later",
    "fragment_ipv6_reserved_bits",
    "gre",
    "icmp_echo",
    "icmpv6_echo",
    "igmp",
    "ip_in_ip",
    "ipv4_ah",
    "ipv4_cut",
    "ipv4_header_beyond_packet",
    "ipv4_header_too_short",
    "ipv4_in_ipv6",
    "ipv4_length_forged",
    "ipv4_length_zero",
    "ipv4_missing",
    "ipv4_ports_in_padding",
    "ipv4_that_says_6",
    "ipv6_ah",
    "ipv6_ah_short",
    "ipv6_ah_tcp",
    "ipv6_chain",
    "ipv6_chain_cut",
    "ipv6_chain_eight",
    "ipv6_chain_forged_length",
    "ipv6_chain_nine",
    "ipv6_cut",
    "ipv6_destination_options",
    "ipv6_esp",
    "ipv6_hop_by_hop",
    "ipv6_hop_by_hop_cut",
    "ipv6_hop_by_hop_late",
    "ipv6_jumbogram",
    "ipv6_mapped",
    "ipv6_mobility",
    "ipv6_no_next_header",
    "ipv6_ports_in_padding",
    "ipv6_routing",
    "ipv6_that_says_4",
    "ipv6_without_payload",
    "lldp",
    "mpls",
    "multicast_listener_report",
    "neighbour_advertisement",
    "neighbour_advertisement_hop_254",
    "neighbour_solicitation",
    "neighbour_solicitation_behind_options",
    "neighbour_solicitation_hop_254",
    "neighbour_solicitation_hop_64",
    "neighbour_solicitation_in_fragment",
    "neighbour_solicitation_no_payload",
    "neighbour_solicitation_tagged",
    "pppoe_discovery",
    "pppoe_session",
    "qinq",
    "rarp",
    "redirect",
    "redirect_hop_254",
    "router_advertisement",
    "router_advertisement_hop_254",
    "router_solicitation",
    "router_solicitation_hop_254",
    "sctp",
    "stp",
    "tcp",
    "tcp_ipv4_options",
    "tcp_ports_cut",
    "udp",
    "udp_empty",
    "udp_ipv4_options",
    "udp_ipv6",
    "udp_lite",
    "udp_padded",
    "udp_port_zero",
    "vlan",
    "vlan_cut",
    "vlan_eight",
    "vlan_ipv4_cut",
    "vlan_nine",
    "vlan_three",
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
    /// Who is charged.
    pub charge: Charge,
    /// Bytes that it costs.
    pub cost: u64,
    /// The packet.
    pub bytes: Vec<u8>,
}

/// Who is charged for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// Its flow.
    Flow,
    /// Nobody: it is never limited.
    Exempt,
}

impl Charge {
    /// What must come of the packet each time, under a limit that does not refill and that it fits once.
    pub const fn answers(self) -> [(Verdict, Reason); 3] {
        match self {
            Self::Flow => {
                [(Verdict::Pass, Reason::Conform), (Verdict::Drop, Reason::Rate), (Verdict::Drop, Reason::Rate)]
            }
            Self::Exempt => [(Verdict::Pass, Reason::Exempt); 3],
        }
    }
}

impl Sample {
    /// Its key under `--per flow`, which no packet has that is exempt.
    ///
    /// # Panics
    ///
    /// If the expectation is not written as [`describe`] writes.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        let words: Vec<&str> = self.expect.split(' ').collect();
        let fail = |word: &str| -> ! { panic!("{}: {word} in `{}`", self.name, self.expect) };
        let number = |word: &str| word.parse().unwrap_or_else(|_no_number| fail(word));
        let address = |word: &str| match word.parse() {
            Ok(IpAddr::V4(address)) => (Family::V4, frames::v4(address)),
            Ok(IpAddr::V6(address)) => (Family::V6, frames::v6(address)),
            Err(_no_address) => fail(word),
        };
        match words[..] {
            ["exempt"] => None,
            ["unreadable", "proto", "0", "ports", "0", ">", "0", ..] => Some(Key::default()),
            ["ipv4" | "ipv6", src, ">", dst, "proto", proto, "ports", sport, ">", dport, ..] => {
                let ((family, src), (_, dst)) = (address(src), address(dst));
                let proto = proto.parse().unwrap_or_else(|_no_number| fail(proto));
                Some(Key { src, dst, sport: number(sport), dport: number(dport), proto, family })
            }
            _ => fail("no key"),
        }
    }
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
    let mut charge = None;
    let mut digits = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ') {
            Some(("link", "ethernet")) => link = Some(Link::Ethernet),
            Some(("link", "bare")) => link = Some(Link::Bare),
            Some(("expect", text)) => expect = Some(text),
            Some(("charge", text)) => charge = Some(text),
            _ => digits.extend(line.bytes().filter(|byte| !byte.is_ascii_whitespace())),
        }
    }
    let (pairs, odd) = digits.as_chunks::<2>();
    assert!(odd.is_empty(), "{name}: half a byte");
    let byte = |pair: &[u8; 2]| {
        let text = str::from_utf8(pair).expect("hexadecimal digits");
        u8::from_str_radix(text, 16).unwrap_or_else(|error| panic!("{name}: {text}: {error}"))
    };
    let (charge, cost) = match charge.and_then(|text| text.split_once(' ')) {
        Some(("flow", cost)) => (Charge::Flow, cost),
        Some(("exempt", cost)) => (Charge::Exempt, cost),
        _ => panic!("{name}: charge {charge:?}"),
    };
    Sample {
        name,
        link: link.unwrap_or_else(|| panic!("{name}: no link")),
        expect: expect.unwrap_or_else(|| panic!("{name}: no expectation")),
        charge,
        cost: cost.parse().unwrap_or_else(|error| panic!("{name}: {cost}: {error}")),
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
