//! Frames that a host receives, as a packet socket sees them: after its device's ingress hooks.
//!
//! The kernel runs TC ingress before it hands a packet to sockets that ask for one EtherType, so what is counted here has
//! passed. The count is the kernel's own and does not depend on how fast anybody reads.

use std::{
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use nix::{
    errno::Errno,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, bind, recv, socket},
};

use crate::{
    frames::checksum,
    topology::{NetNs, link_address, packet_statistics, set_option, until},
};

/// EtherTypes (IEEE 802 numbers) that tests use.
pub mod ethertype {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// Address resolution.
    pub const ARP: u16 = 0x0806;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// Local experimental 1: nobody's protocol.
    pub const EXPERIMENTAL: u16 = 0x88b5;
}

/// Room for a few thousand frames.
const BUFFER: i32 = 8 << 20;

/// Counts the frames of one EtherType that a device receives from now on.
#[derive(Debug)]
pub struct Arrivals {
    socket: OwnedFd,
    packets: AtomicU64,
    lost: AtomicU64,
}

impl Arrivals {
    /// Starts to count.
    ///
    /// # Panics
    ///
    /// If the socket cannot be opened.
    #[must_use]
    pub fn listen(ns: &NetNs, dev: &str, ethertype: u16) -> Self {
        let ifindex = ns.ifindex(dev);
        let socket = ns.run(|| {
            // No protocol yet: nothing is heard until the socket is bound to its device.
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None).expect("a packet socket");
            set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER).expect("a large buffer");
            bind(socket.as_raw_fd(), &link_address(ifindex, ethertype)).expect("bind the packet socket");
            socket
        });
        Self { socket, packets: AtomicU64::new(0), lost: AtomicU64::new(0) }
    }

    /// How many have arrived.
    ///
    /// # Panics
    ///
    /// If the kernel does not tell.
    #[must_use]
    pub fn count(&self) -> u64 {
        let new = packet_statistics(self.socket.as_fd()).expect("packet statistics");
        self.lost.fetch_add(new.drops.into(), Relaxed);
        self.packets.fetch_add(new.packets.into(), Relaxed) + u64::from(new.packets)
    }

    /// The frames that have arrived and were not read before, without VLAN tags.
    ///
    /// # Panics
    ///
    /// If the socket's buffer overflowed, so that some are missing.
    #[must_use]
    pub fn frames(&self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next() {
            frames.push(frame);
        }
        let _counted = self.count();
        assert_eq!(self.lost.load(Relaxed), 0, "the packet socket lost frames");
        frames
    }

    /// Traffic classes (RFC 2474, RFC 3168) of the IP packets without VLAN tag that have arrived and were not read before.
    ///
    /// # Panics
    ///
    /// As [`Arrivals::frames`], and if the checksum of an IPv4 header is wrong.
    #[must_use]
    pub fn classes(&self) -> Vec<u8> {
        let class = |frame: Vec<u8>| match frame[14..] {
            [0x45, class, ..] => {
                assert_eq!(checksum(&frame[14..34]), 0, "the checksum of the IPv4 header {:02x?}", &frame[14..34]);
                class
            }
            [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
            _ => panic!("not IP: {frame:02x?}"),
        };
        self.frames().into_iter().map(class).collect()
    }

    /// Waits for a frame that is `wanted`, and reads all before it.
    ///
    /// # Panics
    ///
    /// If none comes in time.
    pub fn wait_for(&self, what: &str, wanted: impl Fn(&[u8]) -> bool) {
        until(what, || self.next().filter(|frame| wanted(frame)));
    }

    fn next(&self) -> Option<Vec<u8>> {
        let mut frame = vec![0; 2048];
        match recv(self.socket.as_raw_fd(), &mut frame, MsgFlags::MSG_TRUNC) {
            Ok(len) => {
                frame.truncate(len);
                Some(frame)
            }
            Err(Errno::EAGAIN) => None,
            Err(error) => panic!("packet socket: {error}"),
        }
    }
}
