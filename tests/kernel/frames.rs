//! Frames that several tests send.

use tests::frames::{Frame, Ipv4, Ipv6, Network, Upper};

/// An Ethernet frame of `len` bytes with IPv4 and UDP between these ports.
pub(crate) fn udp4(sport: u16, dport: u16, len: usize) -> Vec<u8> {
    const HEADERS: usize = 14 + 20 + 8;
    Frame::ethernet(Network::V4(Ipv4::new(Upper::udp(sport, dport, len - HEADERS)))).bytes()
}

/// The same with IPv6.
pub(crate) fn udp6(sport: u16, dport: u16, len: usize) -> Vec<u8> {
    const HEADERS: usize = 14 + 40 + 8;
    Frame::ethernet(Network::V6(Ipv6::new(Upper::udp(sport, dport, len - HEADERS)))).bytes()
}
