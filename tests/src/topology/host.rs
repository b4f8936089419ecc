//! One end of a cable: a namespace, its device and its addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Deserialize;

use super::NetNs;

/// A network namespace with one Ethernet device.
#[derive(Debug)]
pub struct Host {
    /// The namespace.
    pub ns: NetNs,
    /// Its device.
    pub dev: String,
    /// Address of the device.
    pub mac: [u8; 6],
    /// IPv4 address, /24.
    pub v4: Ipv4Addr,
    /// IPv6 address, /64.
    pub v6: Ipv6Addr,
}

/// What the kernel has counted on a device, bytes with Ethernet header. A GSO packet is one packet here.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct DeviceCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets that the device itself lost.
    pub dropped: u64,
}

#[derive(Deserialize)]
struct Link {
    stats64: Statistics,
}

#[derive(Deserialize)]
struct Statistics {
    rx: DeviceCounters,
    tx: DeviceCounters,
}

impl Host {
    /// Index of its device now.
    #[must_use]
    pub fn ifindex(&self) -> u32 {
        self.ns.ifindex(&self.dev)
    }

    /// What arrived at the device, before any hook.
    #[must_use]
    pub fn received(&self) -> DeviceCounters {
        self.link().stats64.rx
    }

    /// What left the device, after every hook.
    #[must_use]
    pub fn transmitted(&self) -> DeviceCounters {
        self.link().stats64.tx
    }

    /// Its IPv4 or IPv6 address.
    #[must_use]
    pub const fn address(&self, v6: bool) -> IpAddr {
        if v6 { IpAddr::V6(self.v6) } else { IpAddr::V4(self.v4) }
    }

    fn link(&self) -> Link {
        let json = self.ns.ip(&format!("-j -s link show dev {}", self.dev));
        let mut links: Vec<Link> = serde_json::from_str(&json).expect("ip -j -s link");
        links.pop().expect("the device of this host")
    }
}

impl DeviceCounters {
    /// What was counted since `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            dropped: self.dropped - before.dropped,
        }
    }
}
