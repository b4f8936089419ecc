//! Which way traffic crosses the device under test.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Arrivals, Injector, UdpFrame};
use crate::topology::{Host, TwoNs};

/// Direction as the device under test sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Packets go from far to near.
    Ingress,
    /// Packets go from near to far.
    Egress,
}

impl Direction {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    /// The word on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    /// The path of packets that cross the device under test this way.
    #[must_use]
    pub const fn of(self, net: &TwoNs) -> Path<'_> {
        match self {
            Self::Ingress => Path { direction: self, from: &net.far, to: &net.near },
            Self::Egress => Path { direction: self, from: &net.near, to: &net.far },
        }
    }
}

/// A sending and a receiving host.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    /// Direction at the device under test.
    pub direction: Direction,
    /// Who sends.
    pub from: &'a Host,
    /// Who receives.
    pub to: &'a Host,
}

impl<'a> Path<'a> {
    /// A source of frames along this path.
    ///
    /// # Panics
    ///
    /// If the socket cannot be opened.
    #[must_use]
    pub fn injector(&self) -> Injector<'a> {
        Injector::new(*self)
    }

    /// A count of the frames that reach the end of this path, after the receiving device's ingress hook.
    ///
    /// # Panics
    ///
    /// If the socket cannot be opened.
    #[must_use]
    pub fn arrivals(&self, ethertype: u16) -> Arrivals {
        Arrivals::listen(&self.to.ns, &self.to.dev, ethertype)
    }

    /// A 64-byte UDP frame over IPv4. Its destination is nobody's address, so no host ever answers it.
    #[must_use]
    pub const fn udp4(&self) -> UdpFrame {
        self.udp(IpAddr::V4(self.from.v4), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)))
    }

    /// A 64-byte UDP frame over IPv6, likewise.
    #[must_use]
    pub const fn udp6(&self) -> UdpFrame {
        self.udp(IpAddr::V6(self.from.v6), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1)))
    }

    /// A 64-byte UDP frame whose other end, seen from the device under test, has this address.
    #[must_use]
    pub const fn with_remote(&self, remote: IpAddr) -> UdpFrame {
        let frame = if remote.is_ipv4() { self.udp4() } else { self.udp6() };
        match self.direction {
            Direction::Ingress => UdpFrame { src: remote, ..frame },
            Direction::Egress => UdpFrame { dst: remote, ..frame },
        }
    }

    /// Sends `count` of these frames and says how many arrive.
    ///
    /// # Panics
    ///
    /// If a frame cannot be sent.
    #[must_use]
    pub fn passes(&self, frame: &UdpFrame, count: usize) -> u64 {
        let arrivals = self.arrivals(frame.ethertype());
        self.injector().send(frame, count);
        arrivals.count()
    }

    const fn udp(&self, src: IpAddr, dst: IpAddr) -> UdpFrame {
        UdpFrame { macs: [self.from.mac, self.to.mac], tagged: false, src, dst, sport: 40_000, dport: 9, len: 64 }
    }
}
