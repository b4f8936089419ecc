//! A packet as a host test holds it: bytes, and what a kernel would know besides.

use shaper_common::packet::{Offload, Packet};

/// Bytes with offload facts.
#[derive(Clone, Debug, Default)]
pub struct HostPacket {
    /// From the first header on.
    pub bytes: Vec<u8>,
    /// Bytes behind the end of `bytes`, all zero, that nobody reads; keeps large packets small in memory.
    pub unread: u32,
    /// What [`Packet::offload`] says.
    pub offload: Offload,
    /// What [`Packet::stripped_tags`] says.
    pub stripped_tags: u32,
}

impl HostPacket {
    /// A packet that no device has touched.
    #[must_use]
    pub fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }
}

impl Packet for HostPacket {
    fn len(&self) -> u32 {
        Packet::len(&self.bytes[..]) + self.unread
    }

    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        self.bytes[..].read(offset)
    }

    fn offload(&self) -> Offload {
        self.offload
    }

    fn stripped_tags(&self) -> u32 {
        self.stripped_tags
    }
}
