//! Two hosts and one cable. The device under test is `near0`.
//!
//! ```text
//!   near                                        far
//!  +----------------------+                    +----------------------+
//!  | near0  192.0.2.1     |-------- veth ------| far0   192.0.2.2     |
//!  |        2001:db8::1   |                    |        2001:db8::2   |
//!  +----------------------+                    +----------------------+
//! ```
//!
//! The cable is silent: neighbours are static and the devices have ARP off, so that nobody asks for addresses or joins
//! multicast groups, and every counter stands at zero until a test sends.

use std::{net::Ipv4Addr, thread::sleep, time::Duration};

use super::{Alone, Host, NetNs, Sandbox};

/// The two hosts, in a sandbox.
#[derive(Debug)]
pub struct TwoNs {
    /// Has the device under test.
    pub near: Host,
    /// Its peer.
    pub far: Host,
    /// Where both are.
    pub sandbox: Sandbox,
    _alone: Alone,
}

/// Builds the topology in a fresh sandbox, once no other test runs.
///
/// # Panics
///
/// If the caller is not root, or has no iproute2.
#[must_use]
pub fn two_ns() -> TwoNs {
    let alone = Alone::wait();
    let sandbox = Sandbox::start();
    let net = TwoNs { near: host(&sandbox, "near", 1), far: host(&sandbox, "far", 2), sandbox, _alone: alone };
    net.plug(None);
    net
}

fn host(sandbox: &Sandbox, name: &str, n: u8) -> Host {
    Host {
        ns: NetNs::create(sandbox, name),
        dev: format!("{name}0"),
        mac: [2, 0, 0, 0, 0, n],
        v4: Ipv4Addr::new(192, 0, 2, n),
        v6: [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(n)].into(),
    }
}

impl TwoNs {
    /// Puts the cable in, near end with the given interface index if one is named.
    ///
    /// # Panics
    ///
    /// If it is in already, or the index is taken.
    pub fn plug(&self, near_index: Option<u32>) {
        let Self { near, far, .. } = self;
        let index = near_index.map(|index| index.to_string());
        let mut link = vec!["link", "add", &near.dev];
        link.extend(index.iter().flat_map(|index| ["index", index]));
        link.extend(["type", "veth", "peer", "name", &far.dev, "netns", far.ns.name()]);
        near.ns.ip(&link);
        near.configure();
        far.configure();
        near.knows(far);
        far.knows(near);
        near.wait_for_carrier();
        far.wait_for_carrier();
    }

    /// Takes the cable out: both devices vanish.
    ///
    /// # Panics
    ///
    /// If it is out already.
    pub fn unplug(&self) {
        self.near.ns.ip(&["link", "del", &self.near.dev]);
    }
}

impl Host {
    fn configure(&self) {
        let (v4, v6) = (format!("{}/24", self.v4), format!("{}/64", self.v6));
        let mac = text(self.mac);
        self.ns.ip(&["link", "set", &self.dev, "address", &mac, "arp", "off", "addrgenmode", "none"]);
        self.ns.ip(&["addr", "add", &v4, "dev", &self.dev]);
        self.ns.ip(&["addr", "add", &v6, "dev", &self.dev, "nodad"]);
        self.ns.ip(&["link", "set", &self.dev, "up"]);
    }

    fn knows(&self, other: &Self) {
        for address in [other.v4.to_string(), other.v6.to_string()] {
            self.ns.ip(&[
                "neigh",
                "replace",
                &address,
                "lladdr",
                &text(other.mac),
                "dev",
                &self.dev,
                "nud",
                "permanent",
            ]);
        }
    }

    /// A veth drops what is sent before the kernel has noticed that both ends are up.
    ///
    /// # Panics
    ///
    /// If the device stays down.
    pub fn wait_for_carrier(&self) {
        for _ in 0..1000 {
            if self.ns.ip(&["-o", "link", "show", "dev", &self.dev]).contains("state UP") {
                return;
            }
            sleep(Duration::from_millis(5));
        }
        panic!("{} has no carrier after 5 s", self.dev);
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
