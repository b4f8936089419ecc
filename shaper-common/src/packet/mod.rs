//! From bytes to facts: who sent the packet to whom, and where its headers end.
//!
//! A cursor walks the headers once. It reads only what the frame holds and what the IP length field vouches for, so a
//! truncated packet, a fragment or an unknown header yields ports 0 and never a forged port. Every loop has a named
//! limit.

mod ethernet;
mod ipv4;
mod ipv6;
mod transport;

pub use ethernet::MAX_TAGS;
pub use ipv6::MAX_EXTENSION_HEADERS;
pub use transport::has_ports;

use crate::key::{Address, Family};

/// IP protocol numbers that the data plane tells apart (IANA "Assigned Internet Protocol Numbers").
pub mod proto {
    /// Hop-by-hop options (RFC 8200).
    pub const HOP_BY_HOP: u8 = 0;
    /// Transmission control protocol.
    pub const TCP: u8 = 6;
    /// User datagram protocol.
    pub const UDP: u8 = 17;
    /// Datagram congestion control protocol.
    pub const DCCP: u8 = 33;
    /// Routing header (RFC 8200).
    pub const ROUTING: u8 = 43;
    /// Fragment header (RFC 8200).
    pub const FRAGMENT: u8 = 44;
    /// Authentication header (RFC 4302).
    pub const AH: u8 = 51;
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: u8 = 58;
    /// Destination options (RFC 8200).
    pub const DESTINATION: u8 = 60;
    /// Stream control transmission protocol.
    pub const SCTP: u8 = 132;
    /// Mobility header (RFC 6275).
    pub const MOBILITY: u8 = 135;
    /// Lightweight UDP (RFC 3828).
    pub const UDP_LITE: u8 = 136;
}

/// What stands before the IP header.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// An Ethernet header (`ARPHRD_ETHER`, `ARPHRD_LOOPBACK`).
    Ethernet = 0,
    /// Nothing: tun, WireGuard, IP tunnels (`ARPHRD_NONE`, `ARPHRD_TUNNEL`, ..).
    Bare = 1,
}

/// No header that is read starts at or behind this offset: link header and eight tags, IPv6 and eight extension headers
/// of the largest size, rounded up to a power of two.
pub const MAX_OFFSET: u32 = 1 << 15;

/// A packet, wherever it lies: a slice on the host, an skb at TC, a frame at XDP.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a packet is empty")]
pub trait Packet {
    /// Bytes from the first header to the end of the packet, as one unit even if it is a GSO packet.
    fn len(&self) -> u32;

    /// The `N` bytes at `offset`, or `None` if the packet ends before.
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]>;

    /// What the device does or did to the packet.
    fn offload(&self) -> Offload {
        Offload::default()
    }

    /// The same offset, of which a verifier need only know that it is less than [`MAX_OFFSET`].
    ///
    /// A bounded walk ends at many different offsets. A verifier that follows every path would check all that comes
    /// after it once for each; an offset that it knows nothing else about makes these one.
    #[inline(always)]
    fn blur(&self, offset: u32) -> u32 {
        offset
    }

    /// VLAN tags that belong to the packet but are not among its bytes (0 or 1).
    fn stripped_tags(&self) -> u32 {
        0
    }
}

/// Segmentation and tag offload as the kernel describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Payload bytes of each segment but the last; 0 if the packet is no GSO packet.
    pub segment_size: u32,
    /// Header bytes of each segment if the kernel has worked them out, else 0.
    pub segment_header: u32,
}

impl Packet for [u8] {
    fn len(&self) -> u32 {
        u32::try_from(<[u8]>::len(self)).unwrap_or(u32::MAX)
    }

    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.get(offset as usize..)?.first_chunk().copied()
    }
}

/// What the headers of an IP packet say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Source address.
    pub src: Address,
    /// Destination address.
    pub dst: Address,
    /// Source port in host byte order, or 0.
    pub sport: u16,
    /// Destination port, likewise.
    pub dport: u16,
    /// IP protocol number, where the walk stopped.
    pub proto: u8,
    /// IP version, or none if the IP header is broken.
    pub family: Family,
    /// True for every fragment of a fragmented packet.
    pub fragment: bool,
    /// Bytes before the IP header.
    pub l2_len: u32,
    /// Bytes before the header of the transport protocol, where the walk stopped.
    pub l4_offset: u32,
}

impl Facts {
    /// A frame that claims to carry IP but whose header cannot be read: one flow of zero addresses, so that broken
    /// packets are not free.
    const fn unreadable(l2_len: u32) -> Self {
        Self {
            src: [0; 2],
            dst: [0; 2],
            sport: 0,
            dport: 0,
            proto: 0,
            family: Family::None,
            fragment: false,
            l2_len,
            l4_offset: l2_len,
        }
    }
}

/// What a frame is to a limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// Never limited.
    Exempt,
    /// Charged to the bucket of these facts.
    Limited(Facts),
}

/// What is done with the facts of a packet.
pub trait Continuation {
    /// What comes of it.
    type Output;
    /// Does it.
    fn run(&self, facts: &Facts) -> Self::Output;
}

/// Reads the headers of `packet`.
pub fn parse<P: Packet + ?Sized>(packet: &P, link: Link) -> Parsed {
    struct Copy;
    impl Continuation for Copy {
        type Output = Facts;
        fn run(&self, facts: &Facts) -> Facts {
            *facts
        }
    }
    parse_then(packet, link, &Copy).map_or(Parsed::Exempt, Parsed::Limited)
}

/// Reads the headers of `packet` and goes on with the facts; `None` for a packet that is never limited.
///
/// The continuation is compiled into each branch, so that an IPv4 packet does not carry room for IPv6 addresses through
/// the rest of its way.
#[inline(always)]
pub fn parse_then<P: Packet + ?Sized, C: Continuation>(packet: &P, link: Link, then: &C) -> Option<C::Output> {
    let (network, l2_len) = match link {
        Link::Ethernet => ethernet::walk(packet),
        Link::Bare => (ethernet::guess(packet), 0),
    };
    let facts = match network {
        ethernet::Network::V4 => match ipv4::facts(packet, l2_len) {
            Some(facts) => return Some(then.run(&facts)),
            None => Facts::unreadable(l2_len),
        },
        ethernet::Network::V6 => match ipv6::facts(packet, l2_len) {
            Some(_) if ipv6::is_exempt(packet, l2_len) => return None,
            Some(facts) => return Some(then.run(&facts)),
            None => Facts::unreadable(l2_len),
        },
        ethernet::Network::TooManyTags => Facts::unreadable(l2_len),
        ethernet::Network::Other => return None,
    };
    Some(then.run(&facts))
}

/// Bytes of header that each segment of a GSO packet repeats.
pub fn header_len<P: Packet + ?Sized>(packet: &P, facts: &Facts) -> u32 {
    facts.l4_offset + transport::header_len(packet, facts.proto, facts.l4_offset)
}
