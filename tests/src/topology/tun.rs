//! A device without Ethernet header, with the test at its other end.

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
};

use super::{NetNs, syscall};

/// A tun device; it vanishes when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes one, up, with this IPv4 address and prefix length.
    ///
    /// # Panics
    ///
    /// If the kernel has no tun devices.
    #[must_use]
    pub fn create(ns: &NetNs, dev: &str, address: &str) -> Self {
        let file = ns.run(|| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            let file = options.open("/dev/net/tun").expect("open /dev/net/tun");
            syscall::make_tun(file.as_fd(), dev).expect("make a tun device");
            file
        });
        ns.ip(&format!("link set {dev} addrgenmode none"));
        ns.ip(&format!("addr add {address} dev {dev}"));
        ns.ip(&format!("link set {dev} up"));
        Self { file }
    }

    /// Lets the device receive a packet.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn receive(&mut self, packet: &[u8]) {
        let len = self.file.write(packet).expect("write a packet to the tun device");
        assert_eq!(len, packet.len());
    }

    /// The packets that the device has sent and that were not read before.
    ///
    /// # Panics
    ///
    /// If reading fails.
    #[must_use]
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        loop {
            let mut packet = vec![0; 2048];
            match self.file.read(&mut packet) {
                Ok(len) => {
                    packet.truncate(len);
                    packets.push(packet);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return packets,
                Err(error) => panic!("read from the tun device: {error}"),
            }
        }
    }
}
