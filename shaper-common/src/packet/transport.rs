//! Ports and header lengths of the transport protocols.

use super::{Packet, proto};

const PORTS_LEN: u32 = 4;
const UDP_HEADER_LEN: u32 = 8;
const TCP_MIN_HEADER_LEN: u32 = 20;
/// Offset of the byte whose upper half is the TCP header's length in 32-bit words (RFC 9293, section 3.1).
const TCP_DATA_OFFSET: u32 = 12;

/// Source and destination port of the transport header at `offset`, or zeros.
///
/// The header must lie inside the packet as the IP header gives it: `before` bytes of `ip_len` precede it. The length of
/// a GSO packet may be zero: the field could not hold it (BIG TCP), and only the frame bounds it.
#[inline(always)]
pub(super) fn ports<P: Packet + ?Sized>(packet: &P, protocol: u8, offset: u32, before: u32, ip_len: u32) -> (u16, u16) {
    if !has_ports(protocol) || ip_len < before + PORTS_LEN && (ip_len != 0 || packet.offload().segment_size == 0) {
        return (0, 0);
    }
    match packet.read::<{ PORTS_LEN as usize }>(offset) {
        Some([s0, s1, d0, d1]) => (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])),
        None => (0, 0),
    }
}

/// Length of the transport header at `offset`, as far as a GSO packet can have one.
#[inline(never)]
pub(super) fn header_len<P: Packet + ?Sized>(packet: &P, protocol: u8, offset: u32) -> u32 {
    match protocol {
        proto::TCP => match packet.read::<1>(offset + TCP_DATA_OFFSET) {
            Some([byte]) => (u32::from(byte >> 4) * 4).max(TCP_MIN_HEADER_LEN),
            None => TCP_MIN_HEADER_LEN,
        },
        proto::UDP => UDP_HEADER_LEN,
        _ => 0,
    }
}

/// Whether packets of this protocol have ports.
#[inline(always)]
#[must_use]
pub const fn has_ports(protocol: u8) -> bool {
    matches!(protocol, proto::TCP | proto::UDP | proto::UDP_LITE | proto::SCTP | proto::DCCP)
}
