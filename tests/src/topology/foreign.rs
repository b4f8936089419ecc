//! Somebody else's program on a hook: it drops every IPv4 packet that reaches it.
//!
//! What it does shows both whether packets get to it and whether it is still there.

use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
};

use super::{BPFFS, Host, syscall};

/// A foreign classifier; it is gone when this is dropped and no filter holds it.
#[derive(Debug)]
pub struct Foreign {
    _program: OwnedFd,
    _link: Option<OwnedFd>,
}

/// Drops IPv4 and passes the rest, in a little-endian machine's words.
const DROP_IPV4: [u64; 6] = [
    0x0000_0000_0010_1061, // r0 = skb->protocol
    0x0000_0008_0002_0055, // if r0 != htons(ETH_P_IP) goto 2 on
    0x0000_0002_0000_00b7, // r0 = TC_ACT_SHOT
    0x0000_0000_0000_0095, // exit
    0xffff_ffff_0000_00b7, // r0 = TC_ACT_UNSPEC
    0x0000_0000_0000_0095, // exit
];

impl Foreign {
    /// Attaches one to the TCX ingress hook of a host's device, behind what is there.
    ///
    /// # Panics
    ///
    /// If the kernel has no TCX (before 6.6).
    #[must_use]
    pub fn on_tcx_ingress(host: &Host) -> Self {
        const BPF_TCX_INGRESS: u32 = 46;
        let program = load();
        let ifindex = host.ifindex();
        let link = host.ns.run(|| syscall::attach_tcx(program.as_fd(), ifindex, BPF_TCX_INGRESS));
        Self { _link: Some(link.expect("attach the foreign program")), _program: program }
    }

    /// Attaches one to clsact ingress of a host's device with the given preference. The clsact qdisc must be there.
    ///
    /// # Panics
    ///
    /// If `tc` fails.
    #[must_use]
    pub fn on_clsact_ingress(host: &Host, preference: u16) -> Self {
        let program = load();
        let pin = format!("{BPFFS}/foreign-{preference}");
        let sandbox = host.ns.sandbox();
        sandbox.run(|| syscall::pin(program.as_fd(), &pin)).expect("pin the foreign program");
        let filter = format!("filter add dev {} ingress protocol all pref {preference}", host.dev);
        host.ns.tc(&format!("{filter} bpf direct-action object-pinned {pin}"));
        sandbox.run(|| fs::remove_file(&pin)).expect("the filter holds the program now");
        Self { _program: program, _link: None }
    }
}

fn load() -> OwnedFd {
    syscall::load_classifier(&DROP_IPV4, c"foreign").expect("load the foreign program")
}
