//! Quantities that people type and read: rates, sizes, bursts, times, packets and shares.
//!
//! The grammar is `digits[.digits]unit`, units are tc's and case-insensitive but for the capital `B` of bytes per
//! second. Decimals are read exactly, and nothing is rounded: what is not a whole number of the base unit, or is out of
//! range, is an error that says what to write instead. A value of one of these types is always in range.

mod burst;
mod bytes;
mod echo;
mod error;
mod number;
mod packets;
mod rate;
mod share;
mod time;

pub use self::{
    burst::Burst,
    bytes::Bytes,
    error::{Error, Problem, Quantity},
    packets::{PacketBurst, PacketRate, Packets},
    rate::Rate,
    share::{Share, Uneven},
    time::Time,
};
