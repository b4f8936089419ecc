//! The data plane. A packet enters through a hook, becomes a [`context`], is judged by `shaper_common::policy` with the
//! [`maps`] and [`settings`] of its attachment, and leaves through the one counted [`exit`].
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod atomic;
mod context;
mod exit;
mod maps;
mod plane;
mod settings;

use aya_ebpf::{macros::classifier, programs::TcContext};
use context::{Direction, Skb};
use plane::Attachment;
use shaper_common::{abi, policy};

/// TC ingress, TCX or clsact.
#[classifier]
fn shaper_ingress(ctx: TcContext) -> i32 {
    classify(&Skb::new(&ctx, Direction::Ingress))
}

/// TC egress, TCX or clsact.
#[classifier]
fn shaper_egress(ctx: TcContext) -> i32 {
    classify(&Skb::new(&ctx, Direction::Egress))
}

#[inline(always)]
fn classify(packet: &Skb) -> i32 {
    exit::tc(&policy::judge(&Attachment::new(packet), packet))
}

#[used]
#[unsafe(link_section = ".shaper.abi")]
static ABI_VERSION: [u8; 4] = abi::VERSION.to_le_bytes();

#[used]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
