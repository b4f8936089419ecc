//! Frames built from a description, and what the parser must say about each.
//!
//! A [`Frame`] is written down layer by layer; [`Frame::bytes`] fills in lengths and next-header fields, and
//! [`Frame::parsed`] derives the facts from the description, never from the bytes.

use std::net::{Ipv4Addr, Ipv6Addr};

use shaper_common::{
    key::{Address, Family},
    packet::{Facts, Link, MAX_EXTENSION_HEADERS, MAX_TAGS, Parsed, proto},
};

/// Ethertype of IPv4.
pub const IPV4: u16 = 0x0800;
/// Ethertype of IPv6.
pub const IPV6: u16 = 0x86dd;
/// Ethertype of an IEEE 802.1Q tag.
pub const VLAN: u16 = 0x8100;
/// Ethertype of an IEEE 802.1ad tag.
pub const QINQ: u16 = 0x88a8;
/// Ethertype of an outer tag before 802.1ad.
pub const QINQ_OLD: u16 = 0x9100;
/// Ethertype of ARP.
pub const ARP: u16 = 0x0806;

/// The flag "don't fragment" in [`Ipv4::fragment`].
pub const DONT_FRAGMENT: u16 = 0x4000;
/// The flag "more fragments" in [`Ipv4::fragment`].
pub const MORE_FRAGMENTS: u16 = 0x2000;

const MACS: [u8; 12] = [0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1];
const IPV6_LEN: usize = 40;

/// A frame, or a bare IP packet.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What stands before the IP header.
    pub link: Link,
    /// Ethertypes of the VLAN tags, the outermost first; none on a bare link.
    pub tags: Vec<u16>,
    /// What is inside.
    pub network: Network,
    /// Bytes behind the network packet, as Ethernet pads short frames.
    pub trailer: usize,
}

/// The network layer.
#[derive(Clone, Debug)]
pub enum Network {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
    /// An ethertype that is not IP, with its payload.
    Other(u16, Vec<u8>),
}

/// An IPv4 packet.
#[derive(Clone, Debug)]
pub struct Ipv4 {
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// 32-bit words of options, 0 to 10.
    pub options: u8,
    /// Flags and fragment offset as they stand in the header.
    pub fragment: u16,
    /// The payload.
    pub upper: Upper,
}

/// An IPv6 packet.
#[derive(Clone, Debug)]
pub struct Ipv6 {
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
    /// Hop limit.
    pub hop_limit: u8,
    /// In the order in which they stand.
    pub extensions: Vec<Extension>,
    /// The payload.
    pub upper: Upper,
}

/// An IPv6 extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// One that counts its length in units of eight bytes behind the first: its number and that count.
    Sized(u8, u8),
    /// A fragment header: offset and flags as they stand in it.
    Fragment(u16),
    /// An authentication header: four-byte units less two.
    Auth(u8),
}

/// What IP carries.
#[derive(Clone, Debug)]
pub struct Upper {
    /// Protocol number.
    pub proto: u8,
    /// Header and payload.
    pub bytes: Vec<u8>,
}

impl Upper {
    /// Payload of a protocol that needs no more description.
    #[must_use]
    pub fn new(proto: u8, bytes: Vec<u8>) -> Self {
        Self { proto, bytes }
    }

    /// A UDP datagram with `payload` bytes.
    #[must_use]
    pub fn udp(sport: u16, dport: u16, payload: usize) -> Self {
        let len = u16::try_from(8 + payload).expect("a UDP datagram of less than 64 KiB");
        Self::new(proto::UDP, [words(&[sport, dport, len, 0]), vec![0; payload]].concat())
    }

    /// A TCP segment with `options` words of options (0 to 10) and `payload` bytes.
    #[must_use]
    pub fn tcp(sport: u16, dport: u16, options: u8, payload: usize) -> Self {
        let data_offset = u16::from(5 + options) << 12;
        let header = words(&[sport, dport, 0, 1, 0, 1, data_offset | 0x10, 0xffff, 0, 0]);
        // No-operation options.
        Self::new(proto::TCP, [header, vec![1; usize::from(options) * 4], vec![0; payload]].concat())
    }

    /// A packet of another protocol that starts with two ports.
    #[must_use]
    pub fn ports(proto: u8, sport: u16, dport: u16, rest: usize) -> Self {
        Self::new(proto, [words(&[sport, dport]), vec![0; rest]].concat())
    }

    /// An ICMPv6 message.
    #[must_use]
    pub fn icmpv6(kind: u8, payload: usize) -> Self {
        Self::new(proto::ICMPV6, [vec![kind, 0, 0, 0], vec![0; payload]].concat())
    }

    fn claimed_ports(&self) -> (u16, u16) {
        let has_ports = [proto::TCP, proto::UDP, proto::UDP_LITE, proto::SCTP, proto::DCCP].contains(&self.proto);
        match self.bytes[..] {
            [s0, s1, d0, d1, ..] if has_ports => (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])),
            _ => (0, 0),
        }
    }
}

impl Extension {
    /// Hop-by-hop options of the smallest size.
    pub const HOP_BY_HOP: Self = Self::Sized(proto::HOP_BY_HOP, 0);
    /// A routing header of the smallest size.
    pub const ROUTING: Self = Self::Sized(proto::ROUTING, 0);
    /// Destination options of the smallest size.
    pub const DESTINATION: Self = Self::Sized(proto::DESTINATION, 0);
    /// A mobility header of the smallest size.
    pub const MOBILITY: Self = Self::Sized(proto::MOBILITY, 0);

    /// The number by which the header before announces it.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Sized(number, _) => number,
            Self::Fragment(_) => proto::FRAGMENT,
            Self::Auth(_) => proto::AH,
        }
    }

    /// True for the header of a fragmented packet; an atomic fragment is none.
    #[must_use]
    pub const fn fragments(self) -> bool {
        matches!(self, Self::Fragment(bits) if bits & 0xfff9 != 0)
    }

    fn bytes(self, next: u8) -> Vec<u8> {
        let (len, field, b2, b3) = match self {
            Self::Sized(_, units) => ((usize::from(units) + 1) * 8, units, 0, 0),
            Self::Fragment(bits) => (8, 0, (bits >> 8) as u8, bits as u8),
            Self::Auth(units) => ((usize::from(units) + 2) * 4, units, 0, 0),
        };
        let mut bytes = vec![0; len];
        bytes[..4].copy_from_slice(&[next, field, b2, b3]);
        bytes
    }
}

impl Frame {
    /// An untagged, unpadded Ethernet frame.
    #[must_use]
    pub fn ethernet(network: Network) -> Self {
        Self { link: Link::Ethernet, tags: Vec::new(), network, trailer: 0 }
    }

    /// A packet on a link without header.
    #[must_use]
    pub fn bare(network: Network) -> Self {
        Self { link: Link::Bare, ..Self::ethernet(network) }
    }

    /// The same with these VLAN tags.
    #[must_use]
    pub fn tagged(self, tags: &[u16]) -> Self {
        Self { tags: tags.to_vec(), ..self }
    }

    /// The frame as it is sent.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.link == Link::Ethernet {
            bytes.extend(MACS);
            for (i, &tag) in self.tags.iter().enumerate() {
                bytes.extend(words(&[tag, 100 + i as u16]));
            }
            bytes.extend(self.network.ethertype().to_be_bytes());
        }
        bytes.extend(self.network.bytes());
        bytes.resize(bytes.len() + self.trailer, 0);
        bytes
    }

    /// Bytes before the network header.
    #[must_use]
    pub fn l2_len(&self) -> u32 {
        match self.link {
            Link::Ethernet => 14 + 4 * self.tags.len() as u32,
            Link::Bare => 0,
        }
    }

    /// What the parser must say.
    #[must_use]
    pub fn parsed(&self) -> Parsed {
        let l2_len = self.l2_len();
        if self.tags.len() > MAX_TAGS as usize {
            // Read up to the eighth tag and not further.
            let l2_len = 14 + 4 * MAX_TAGS;
            return Parsed::Limited(Facts { l2_len, l4_offset: l2_len, ..Facts::default() });
        }
        match &self.network {
            Network::V4(ip) => Parsed::Limited(ip.facts(l2_len)),
            Network::V6(ip) if ip.is_discovery() => Parsed::Exempt,
            Network::V6(ip) => Parsed::Limited(ip.facts(l2_len)),
            Network::Other(..) => Parsed::Exempt,
        }
    }
}

impl Network {
    /// A UDP packet between two documentation addresses.
    #[must_use]
    pub fn udp(sport: u16, dport: u16, payload: usize) -> Self {
        Self::V4(Ipv4::new(Upper::udp(sport, dport, payload)))
    }

    fn ethertype(&self) -> u16 {
        match self {
            Self::V4(_) => IPV4,
            Self::V6(_) => IPV6,
            &Self::Other(ethertype, _) => ethertype,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::V4(ip) => ip.bytes(),
            Self::V6(ip) => ip.bytes(),
            Self::Other(_, payload) => payload.clone(),
        }
    }
}

impl Ipv4 {
    /// From 192.0.2.1 to 198.51.100.2.
    #[must_use]
    pub fn new(upper: Upper) -> Self {
        let [src, dst] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2)];
        Self { src, dst, options: 0, fragment: DONT_FRAGMENT, upper }
    }

    fn header_len(&self) -> u32 {
        20 + 4 * u32::from(self.options)
    }

    fn bytes(&self) -> Vec<u8> {
        let total = u16::try_from(self.header_len() as usize + self.upper.bytes.len()).expect("an IPv4 packet");
        let mut header = vec![0x45 + self.options, 0];
        header.extend(words(&[total, 0, self.fragment]));
        header.extend([64, self.upper.proto, 0, 0]);
        header.extend(self.src.octets());
        header.extend(self.dst.octets());
        // No-operation options.
        header.resize(self.header_len() as usize, 1);
        let sum = checksum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [header, self.upper.bytes.clone()].concat()
    }

    fn facts(&self, l2_len: u32) -> Facts {
        let fragment = self.fragment & !(DONT_FRAGMENT | 0x8000) != 0;
        let (sport, dport) = if fragment { (0, 0) } else { self.upper.claimed_ports() };
        Facts {
            src: v4(self.src),
            dst: v4(self.dst),
            sport,
            dport,
            proto: self.upper.proto,
            family: Family::V4,
            fragment,
            l2_len,
            l4_offset: l2_len + self.header_len(),
        }
    }
}

impl Ipv6 {
    /// From 2001:db8::1 to 2001:db8::2.
    #[must_use]
    pub fn new(upper: Upper) -> Self {
        let [src, dst] = [1, 2].map(|host| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host));
        Self { src, dst, hop_limit: 64, extensions: Vec::new(), upper }
    }

    /// The same with these extension headers.
    #[must_use]
    pub fn extended(self, extensions: &[Extension]) -> Self {
        Self { extensions: extensions.to_vec(), ..self }
    }

    fn numbers(&self) -> Vec<u8> {
        self.extensions.iter().map(|extension| extension.number()).chain([self.upper.proto]).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let numbers = self.numbers();
        let mut payload = Vec::new();
        for (extension, &next) in self.extensions.iter().zip(&numbers[1..]) {
            payload.extend(extension.bytes(next));
        }
        payload.extend(&self.upper.bytes);
        let mut bytes = vec![0x60, 0, 0, 0];
        bytes.extend(u16::try_from(payload.len()).expect("an IPv6 packet").to_be_bytes());
        bytes.extend([numbers[0], self.hop_limit]);
        bytes.extend(self.src.octets());
        bytes.extend(self.dst.octets());
        bytes.extend(payload);
        bytes
    }

    fn is_discovery(&self) -> bool {
        self.extensions.is_empty()
            && self.upper.proto == proto::ICMPV6
            && self.hop_limit == 255
            && matches!(self.upper.bytes[..], [133..=137, ..])
    }

    fn facts(&self, l2_len: u32) -> Facts {
        let numbers = self.numbers();
        // The walk ends behind a fragment header, or before the header that is one too many.
        let fragment = self.extensions.iter().take(MAX_EXTENSION_HEADERS).position(|header| header.fragments());
        let walked = fragment.map_or(self.extensions.len().min(MAX_EXTENSION_HEADERS), |at| at + 1);
        let lengths = self.extensions[..walked].iter().map(|extension| extension.bytes(0).len());
        let at_upper = walked == self.extensions.len() && fragment.is_none();
        let (sport, dport) = if at_upper { self.upper.claimed_ports() } else { (0, 0) };
        Facts {
            src: v6(self.src),
            dst: v6(self.dst),
            sport,
            dport,
            proto: numbers[walked],
            family: Family::V6,
            fragment: fragment.is_some(),
            l2_len,
            l4_offset: l2_len + (IPV6_LEN + lengths.sum::<usize>()) as u32,
        }
    }
}

/// An IPv4 address as the data plane holds it.
#[must_use]
pub fn v4(address: Ipv4Addr) -> Address {
    let [a, b, c, d] = address.octets();
    [u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0]), 0]
}

/// An IPv6 address as the data plane holds it.
#[must_use]
pub fn v6(address: Ipv6Addr) -> Address {
    let bits = address.to_bits();
    [((bits >> 64) as u64).to_be(), (bits as u64).to_be()]
}

/// The bytes of 16-bit words in network byte order.
fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The Internet checksum of a header whose checksum field is zero (RFC 1071).
#[must_use]
pub fn checksum(header: &[u8]) -> u16 {
    let (words, _) = header.as_chunks::<2>();
    let mut sum: u32 = words.iter().map(|&word| u32::from(u16::from_be_bytes(word))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}
