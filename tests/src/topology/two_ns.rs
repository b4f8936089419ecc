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

use std::net::Ipv4Addr;

use super::{Alone, Host, NetNs, Sandbox, until};

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
        let index = near_index.map_or_else(String::new, |index| format!("index {index}"));
        near.ns.ip(&format!("link add {} {index} type veth peer name {} netns {}", near.dev, far.dev, far.ns.name()));
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
        self.near.ns.ip(&format!("link del {}", self.near.dev));
    }
}

impl Host {
    fn configure(&self) {
        let Self { ns, dev, v4, v6, .. } = self;
        ns.ip(&format!("link set {dev} address {} arp off addrgenmode none", text(self.mac)));
        ns.ip(&format!("addr add {v4}/24 dev {dev}"));
        ns.ip(&format!("addr add {v6}/64 dev {dev} nodad"));
        ns.ip(&format!("link set {dev} up"));
    }

    fn knows(&self, other: &Self) {
        for address in [other.address(false), other.address(true)] {
            let lladdr = text(other.mac);
            self.ns.ip(&format!("neigh replace {address} lladdr {lladdr} dev {} nud permanent", self.dev));
        }
    }

    /// A veth drops what is sent before the kernel has noticed that both ends are up.
    ///
    /// # Panics
    ///
    /// If the device stays down.
    pub fn wait_for_carrier(&self) {
        until("a carrier", || self.ns.ip(&format!("-o link show dev {}", self.dev)).contains("state UP").then_some(()));
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
