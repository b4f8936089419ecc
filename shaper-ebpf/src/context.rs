//! A packet as the kernel hands it over.

use core::{arch::asm, mem::MaybeUninit};

use aya_ebpf::{
    bindings::{__sk_buff, BPF_F_RECOMPUTE_CSUM},
    helpers::{bpf_skb_load_bytes, bpf_skb_pull_data, bpf_skb_store_bytes},
    programs::TcContext,
};
use shaper_common::{
    packet::{MAX_OFFSET, Offload, Packet},
    remark::Rewrite,
};

/// Which way a packet crosses the device.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// It was received.
    Ingress,
    /// It is being sent.
    Egress,
}

/// A socket buffer at a TC hook.
pub(crate) struct Skb {
    skb: *mut __sk_buff,
    data: usize,
    data_end: usize,
    direction: Direction,
}

/// Reads a field of the context; the verifier turns it into a load from the socket buffer.
macro_rules! field {
    ($self:ident.$field:ident) => {
        // SAFETY: the kernel passes a valid context for the whole run of the program.
        unsafe { (&raw const (*$self.skb).$field).read_volatile() }
    };
}

/// Bytes that are made contiguous if they are not: link header with all its tags and the IP header.
const CONTIGUOUS: u32 = 128;
/// Longest read that is worth a copy from where the packet is not contiguous.
const COPIED: usize = 4;

impl Skb {
    #[inline(always)]
    pub(crate) fn new(ctx: &TcContext, direction: Direction) -> Self {
        let mut packet = Self { skb: ctx.skb.skb, data: ctx.data(), data_end: ctx.data_end(), direction };
        let contiguous = packet.data_end - packet.data;
        if contiguous < CONTIGUOUS as usize && contiguous < packet.len() as usize {
            // The network stack would do the same a little later. If there is no memory for it, the packet stays as it
            // is, and headers that cannot be read are charged as such.
            // SAFETY: the helper takes the context; all pointers into the packet are read anew below.
            unsafe { bpf_skb_pull_data(packet.skb, packet.len().min(CONTIGUOUS)) };
            packet.data = ctx.data();
            packet.data_end = ctx.data_end();
        }
        packet
    }

    /// The packet again in another function, which reads no more than a few bytes at a time and changes them.
    #[inline(always)]
    pub(crate) fn revisit(skb: *mut __sk_buff) -> Self {
        let ctx = TcContext::new(skb);
        // Ingress or egress makes a difference only to what a packet costs.
        Self { skb, data: ctx.data(), data_end: ctx.data_end(), direction: Direction::Ingress }
    }

    /// As the kernel passed it.
    #[inline(always)]
    pub(crate) fn context(&self) -> *mut __sk_buff {
        self.skb
    }

    /// Headers of each segment as the kernel has worked them out, tunnels included: at egress it has added them to
    /// `wire_len` for every segment but the first (`qdisc_pkt_len_init`). At ingress it has not, and after
    /// segmentation by a virtual machine it does not know the number of segments.
    #[inline(always)]
    fn segment_header(&self) -> u32 {
        let segments = field!(self.gso_segs);
        if matches!(self.direction, Direction::Egress) && segments > 1 {
            field!(self.wire_len).saturating_sub(field!(self.len)) / (segments - 1)
        } else {
            0
        }
    }
}

impl Packet for Skb {
    #[inline(always)]
    fn len(&self) -> u32 {
        field!(self.len)
    }

    #[inline(always)]
    fn read<const N: usize>(&self, offset: u32) -> Option<[u8; N]> {
        let start = opaque(self.data + offset as usize);
        if start + N <= self.data_end {
            // SAFETY: the verifier has seen the comparison and proves the bounds again; a byte array has no alignment.
            return Some(unsafe { *(start as *const [u8; N]) });
        }
        if N > COPIED {
            return None;
        }
        let mut bytes = MaybeUninit::<[u8; N]>::uninit();
        // SAFETY: the helper writes exactly N bytes to a buffer of N bytes, or fails.
        let result = unsafe { bpf_skb_load_bytes(self.skb.cast(), offset, bytes.as_mut_ptr().cast(), N as u32) };
        if result != 0 {
            return None;
        }
        // SAFETY: the helper has filled the buffer.
        Some(unsafe { bytes.assume_init() })
    }

    #[inline(always)]
    fn offload(&self) -> Offload {
        let segment_size = field!(self.gso_size);
        if segment_size == 0 {
            return Offload::default();
        }
        Offload { segment_size, segment_header: self.segment_header() }
    }

    #[inline(always)]
    fn blur(&self, offset: u32) -> u32 {
        // Both are the packet's length, so the difference is nothing; the verifier takes it for anything.
        let nothing = field!(self.len) ^ opaque(self.len() as usize) as u32;
        (offset ^ nothing) & (MAX_OFFSET - 1)
    }

    #[inline(always)]
    fn stripped_tags(&self) -> u32 {
        field!(self.vlan_present)
    }
}

impl Rewrite for Skb {
    #[inline(always)]
    fn write<const N: usize>(&self, offset: u32, bytes: [u8; N]) -> bool {
        // Where the device has summed the whole packet, the sum follows the change.
        let flags = u64::from(BPF_F_RECOMPUTE_CSUM);
        // SAFETY: the helper reads N bytes from a buffer of N bytes. Pointers into the packet are not used afterwards.
        let result = unsafe { bpf_skb_store_bytes(self.skb.cast(), offset, bytes.as_ptr().cast(), N as u32, flags) };
        result == 0
    }

    #[inline(always)]
    fn set_mark(&self, mark: u32) -> bool {
        // SAFETY: the kernel passes a valid context for the whole run of the program.
        let field = unsafe { &raw mut (*self.skb).mark };
        // SAFETY: a writable field of the context.
        unsafe { field.write(mark) };
        true
    }
}

/// The same number, about which the compiler knows nothing.
///
/// The verifier believes a bounds check only for the register that was compared. Without this the compiler may compare
/// one sum and dereference another that is equal. It is not declared pure, so that it is not duplicated either, and it is
/// a move to itself, because line information for no instruction at all is refused when the program is loaded.
#[inline(always)]
pub(crate) fn opaque(mut n: usize) -> usize {
    // SAFETY: the register keeps its value.
    unsafe { asm!("{n} = {n}", n = inout(reg) n, options(nomem, nostack)) };
    n
}
