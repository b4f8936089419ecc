//! A packet as `BPF_PROG_TEST_RUN` takes it: bytes, and the fields of the context that it lets a caller set.

use shaper_common::packet::Offload;

/// Size of `struct __sk_buff` (`include/uapi/linux/bpf.h`).
const CONTEXT_LEN: usize = 192;
const ETHERNET_LEN: usize = 14;
const MARK: usize = 8;
const WIRE_LEN: usize = 160;
const GSO_SEGS: usize = 164;
const GSO_SIZE: usize = 176;

/// The packet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Skb {
    pub(crate) bytes: Vec<u8>,
    pub(crate) wire_len: u32,
    pub(crate) gso_segs: u32,
    pub(crate) gso_size: u32,
    /// The firewall mark it leaves with.
    pub(crate) mark: u32,
}

impl Skb {
    /// One packet on the wire.
    pub(crate) fn plain(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), ..Self::default() }
    }

    /// The same packet so that `BPF_PROG_TEST_RUN` takes it: it refuses frames shorter than an Ethernet header, and those
    /// whose ethertype promises an IP header that is not there whole (`net/bpf/test_run.c`). The former get zeros, the
    /// latter a VLAN tag, behind which it does not look.
    pub(crate) fn acceptable(mut self) -> Self {
        if self.bytes.len() < ETHERNET_LEN {
            self.bytes.resize(ETHERNET_LEN, 0);
        }
        let header = match self.bytes[12..ETHERNET_LEN] {
            [0x08, 0x00] => 20,
            [0x86, 0xdd] => 40,
            _ => 0,
        };
        if self.bytes.len() < ETHERNET_LEN + header {
            self.bytes.splice(12..12, [0x81, 0x00, 0x00, 0x64]);
        }
        self
    }

    /// The firewall mark in a context.
    pub(crate) fn mark_of(context: &[u8; CONTEXT_LEN]) -> u32 {
        u32::from_ne_bytes(*context[MARK..].first_chunk().unwrap())
    }

    /// The context.
    pub(crate) fn context(&self) -> [u8; CONTEXT_LEN] {
        let mut context = [0; CONTEXT_LEN];
        for (offset, value) in [(WIRE_LEN, self.wire_len), (GSO_SEGS, self.gso_segs), (GSO_SIZE, self.gso_size)] {
            context[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
        }
        context
    }

    /// What the data plane should make of the context at a hook: at egress the kernel has counted the headers.
    pub(crate) fn offload(&self, egress: bool) -> Offload {
        if self.gso_size == 0 {
            return Offload::default();
        }
        let len = u32::try_from(self.bytes.len()).unwrap();
        let known = egress && self.gso_segs > 1;
        let segment_header = if known { self.wire_len.saturating_sub(len) / (self.gso_segs - 1) } else { 0 };
        Offload { segment_size: self.gso_size, segment_header }
    }
}
