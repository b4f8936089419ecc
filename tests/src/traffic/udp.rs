//! Datagrams through sockets, where the kernel builds the packets.

use std::{
    io::ErrorKind,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
};

use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use super::Path;
use crate::topology::set_option;

/// A sending and a receiving socket at the ends of a path.
#[derive(Debug)]
pub struct UdpPair {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// Room for some ten thousand datagrams.
const BUFFER: i32 = 32 << 20;

impl Path<'_> {
    /// Opens a pair of UDP sockets over IPv4, or over IPv6.
    ///
    /// # Panics
    ///
    /// If the sockets cannot be opened.
    #[must_use]
    pub fn udp_pair(&self, v6: bool) -> UdpPair {
        let [from, to] = [self.from, self.to].map(|host| host.address(v6));
        let bind = |address: IpAddr| UdpSocket::bind((address, 0)).expect("bind a UDP socket");
        let receiver = self.to.ns.run(|| bind(to));
        receiver.set_nonblocking(true).expect("a non-blocking socket");
        set_option(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER).expect("a large buffer");
        let sender = self.from.ns.run(|| bind(from));
        sender.connect(receiver.local_addr().expect("the receiver's address")).expect("connect the sender");
        UdpPair { sender, receiver }
    }
}

impl UdpPair {
    /// Where the datagrams come from.
    ///
    /// # Panics
    ///
    /// If the kernel does not tell.
    #[must_use]
    pub fn source(&self) -> SocketAddr {
        self.sender.local_addr().expect("the sender's address")
    }

    /// Sends with this traffic class from now on, ECN bits included.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn set_class(&self, class: u8) {
        let (level, name) = match self.source() {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        set_option(self.sender.as_fd(), level, name, class.into()).expect("a traffic class");
    }

    /// Sends `count` datagrams of `len` bytes each, one by one. A drop at the egress hook is not an error to UDP.
    ///
    /// # Panics
    ///
    /// If a send fails.
    pub fn send(&self, len: usize, count: usize) {
        let payload = vec![0x5a; len];
        for _ in 0..count {
            self.send_one(&payload);
        }
    }

    /// Sends `segments` datagrams of `len` bytes in one call (`UDP_SEGMENT`), `calls` times.
    ///
    /// # Panics
    ///
    /// If a send fails.
    pub fn send_segmented(&self, len: u16, segments: usize, calls: usize) {
        setsockopt(&self.sender, UdpGsoSegment, &i32::from(len)).expect("UDP_SEGMENT");
        let payload = vec![0x5a; usize::from(len) * segments];
        for _ in 0..calls {
            self.send_one(&payload);
        }
    }

    /// Lengths of the datagrams that have arrived and were not read before.
    ///
    /// # Panics
    ///
    /// If reading fails.
    #[must_use]
    pub fn received(&self) -> Vec<usize> {
        let mut lengths = Vec::new();
        let mut buffer = [0; 65_535];
        loop {
            match self.receiver.recv(&mut buffer) {
                Ok(len) => lengths.push(len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return lengths,
                Err(error) => panic!("receive: {error}"),
            }
        }
    }

    fn send_one(&self, payload: &[u8]) {
        let len = self.sender.send(payload).expect("send a datagram");
        assert_eq!(len, payload.len());
    }
}
