//! Programs to measure the data plane against: nothing at all, and the least that a limiter can do.
#![no_std]
#![no_main]

use aya_ebpf::{
    bindings::TC_ACT_UNSPEC,
    helpers::bpf_ktime_get_ns,
    macros::{classifier, map},
    maps::Array,
    programs::TcContext,
};

#[map]
static FLOOR: Array<u64> = Array::with_max_entries(1, 0);

/// Costs what calling a program costs.
#[classifier]
fn yardstick_empty(_: TcContext) -> i32 {
    TC_ACT_UNSPEC
}

/// Reads the addresses and ports of an IPv4 packet without options, one array element and the clock.
#[classifier]
fn yardstick_floor(ctx: TcContext) -> i32 {
    const ADDRESSES: usize = 26;
    const END: usize = 38;
    let data = ctx.data();
    if data + END > ctx.data_end() {
        return TC_ACT_UNSPEC;
    }
    let Some(word) = FLOOR.get_ptr_mut(0) else { return TC_ACT_UNSPEC };
    let mut mixed = 0;
    for offset in [ADDRESSES, ADDRESSES + 4, ADDRESSES + 8] {
        // SAFETY: within the bounds checked above; the BPF target allows misaligned loads.
        mixed ^= unsafe { ((data + offset) as *const u32).read_unaligned() };
    }
    // SAFETY: the helper takes nothing and returns a number.
    let now = unsafe { bpf_ktime_get_ns() };
    // SAFETY: the element lives as long as the program; a lost update is of no consequence here.
    unsafe { *word = now ^ u64::from(mixed) };
    TC_ACT_UNSPEC
}

#[used]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
