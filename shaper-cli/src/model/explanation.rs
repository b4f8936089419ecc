//! What a packet would meet, asked and answered.

use std::net::IpAddr;

use shaper_common::{
    key::Key,
    verdict::{Reason, Verdict},
};

use super::Per;

/// A packet that somebody asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same IP version.
    pub dst: IpAddr,
    /// IP protocol number.
    pub proto: u8,
    /// Source port; 0 for protocols without ports and for fragments.
    pub sport: u16,
    /// Destination port, likewise.
    pub dport: u16,
    /// Bytes of the frame, its Ethernet header included where the device has one.
    pub bytes: u32,
}

/// What the data plane would do with such a packet now. Nothing is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Name of the rule.
    pub rule: String,
    /// What the bucket is keyed by.
    pub per: Per,
    /// The key.
    pub key: Key,
    /// Whether the flow table has a bucket for the key; if not, it would be a new one, which is full.
    pub tracked: bool,
    /// The limits that the packet has to fit, in the order in which they are looked at.
    pub layers: Vec<Layer>,
    /// What the packet costs, bytes as the attachment accounts them.
    pub cost_bytes: u64,
    /// What would happen.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Whether it would pass with a mark.
    pub marked: bool,
}

/// One limit and what is left of its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// `rate`, `peak`, `pps`, `total` or `device_total`, as the reasons are called.
    pub reason: Reason,
    /// What the bucket holds now: bytes, or packets for `pps`.
    pub level: u64,
    /// What it can hold.
    pub burst: u64,
}
