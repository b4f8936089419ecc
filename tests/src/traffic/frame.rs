//! UDP frames of an exact length.

use std::net::IpAddr;

use super::ethertype;
use crate::frames::{Frame, Ipv4, Ipv6, Network, Upper, VLAN};

/// A UDP datagram in an Ethernet frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpFrame {
    /// Ethernet source and destination.
    pub macs: [[u8; 6]; 2],
    /// True for a frame with an IEEE 802.1Q tag.
    pub tagged: bool,
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same family.
    pub dst: IpAddr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// Bytes of the whole frame, tag included, check sequence not.
    pub len: usize,
}

impl UdpFrame {
    /// The frame as it is sent.
    ///
    /// # Panics
    ///
    /// If the length leaves no room for the headers, or the addresses are of two families.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let payload = self.len.checked_sub(self.headers()).expect("room for the headers");
        let upper = Upper::udp(self.sport, self.dport, payload);
        let network = match (self.src, self.dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Network::V4(Ipv4 { src, dst, ..Ipv4::new(upper) }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Network::V6(Ipv6 { src, dst, ..Ipv6::new(upper) }),
            (src, dst) => panic!("no packet goes from {src} to {dst}"),
        };
        let tags: &[u16] = if self.tagged { &[VLAN] } else { &[] };
        let mut bytes = Frame::ethernet(network).tagged(tags).bytes();
        let [source, destination] = self.macs;
        bytes[..6].copy_from_slice(&destination);
        bytes[6..12].copy_from_slice(&source);
        assert_eq!(bytes.len(), self.len, "length of the frame");
        bytes
    }

    /// EtherType of its network layer.
    #[must_use]
    pub const fn ethertype(&self) -> u16 {
        if self.src.is_ipv4() { ethertype::IPV4 } else { ethertype::IPV6 }
    }

    const fn headers(&self) -> usize {
        let tag = if self.tagged { 4 } else { 0 };
        let ip = if self.src.is_ipv4() { 20 } else { 40 };
        14 + tag + ip + 8
    }
}
