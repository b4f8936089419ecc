//! The contract between the BPF object and the tool: map names and layouts, and the number that stands for them.
//!
//! Values in maps are plain integers: no `bool`, enum or `Option`, no padding that is not named. Sizes and offsets are
//! asserted here; [`FINGERPRINT`] changes when they do, and a test then asks for a new [`VERSION`].

use core::mem::{align_of, offset_of, size_of};

use crate::{
    atomic::AtomicU64,
    bucket::Limit,
    clock::Clock,
    rule::{Boundary, Index, Link, Table},
    siphash::SipKey,
    table::{self, MoreBuckets, Tally},
    verdict::{Action, Reason},
};

/// Version of everything in this module and of [`crate::table::FlowSet`]. The object carries it in the section
/// [`VERSION_SECTION`]; the tool loads no other, and pins live under `v<VERSION>`.
pub const VERSION: u32 = 3;

/// ELF section of the object that holds [`VERSION`] as a little-endian `u32`.
pub const VERSION_SECTION: &str = ".shaper.abi";

/// Names of the programs in the object.
pub mod program {
    /// Classifier for TC ingress (TCX or clsact).
    pub const TC_INGRESS: &str = "shaper_ingress";
    /// Classifier for TC egress.
    pub const TC_EGRESS: &str = "shaper_egress";
}

/// Names of the maps and of the read-only global in the object.
pub mod map {
    /// Array of [`crate::table::FlowSet`], mappable.
    pub const FLOWS: &str = "FLOWS";
    /// Array of one [`super::Control`].
    pub const CONTROL: &str = "CONTROL";
    /// Array of two [`super::RuleLimits`] for each rule, mappable: `2 * rule + half`.
    pub const RULES: &str = "RULES";
    /// Array of one [`super::RuleState`] for each rule, mappable.
    pub const STATES: &str = "STATES";
    /// Array of several [`super::RuleCounters`] for each rule, mappable: [`super::Settings::counters_of`].
    pub const COUNTERS: &str = "COUNTERS";
    /// Array of two [`crate::rule::Index`]es, one for each half.
    pub const INDEX: &str = "INDEX";
    /// Array of [`crate::rule::Boundary`]s, mappable; an index says which are whose.
    pub const BOUNDARIES: &str = "BOUNDARIES";
    /// Array of [`crate::rule::Link`]s, mappable. The first is used by nobody: its number ends a chain.
    pub const LINKS: &str = "LINKS";
    /// Array of bytes, mappable: what rules were asked for, in two halves. The programs do not use it.
    pub const TEXT: &str = "TEXT";
    /// Array of two [`super::OwnerRecord`]s. The programs do not use it; it is pinned with the others.
    pub const OWNER: &str = "OWNER";
    /// All of these, which are pinned.
    pub const PINNED: [&str; 10] = [FLOWS, CONTROL, RULES, STATES, COUNTERS, INDEX, BOUNDARIES, LINKS, TEXT, OWNER];
    /// The read-only [`super::Settings`].
    pub const SETTINGS: &str = "SETTINGS";
}

/// Index of the rule that matches everything no other rule does.
pub const DEFAULT_RULE: u32 = 0;

/// What a program knows when it is loaded. The verifier sees these as constants and removes what they switch off.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Added to [`Control::epoch`]; see there.
    pub epoch_base: u64,
    /// Secret of the flow table's hash.
    pub secret: SipKey,
    /// Number of sets less one; the number of sets is a power of two.
    pub set_mask: u32,
    /// [`crate::cost::Accounting::overhead`].
    pub overhead: i32,
    /// [`crate::cost::Accounting::mpu`].
    pub mpu: u32,
    /// [`crate::cost::Account`].
    pub account: u8,
    /// [`crate::key::Per`].
    pub per: u8,
    /// [`crate::key::Prefix::v4`].
    pub prefix_v4: u8,
    /// [`crate::key::Prefix::v6`].
    pub prefix_v6: u8,
    /// [`crate::packet::Link`].
    pub link: u8,
    /// [`Overflow`].
    pub overflow: u8,
    /// Bits of [`feature`]: those of all rules together.
    pub features: u8,
    /// [`Keying`].
    pub keying: u8,
    /// Number of counters that the processors share for each rule, less one; the number is a power of two.
    pub shard_mask: u16,
    /// 1 if there are more processors than counters for each rule.
    pub shared_counters: u8,
    /// Zero.
    pub reserved: u8,
}

impl Settings {
    /// Elements of [`map::COUNTERS`] for each rule: one for each shard, and one to which the tool adds what was counted
    /// in a map that this one has replaced.
    #[inline(always)]
    #[must_use]
    pub const fn counters_of(shard_mask: u16) -> u32 {
        shard_mask as u32 + 2
    }
}

/// How a packet finds its rule and its bucket.
#[repr(u8)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keying {
    /// There is one rule, [`DEFAULT_RULE`].
    #[default]
    Single = 0,
    /// All rules have the attachment's key, and the key decides about the rule: a way of the flow table remembers it.
    Cached = 1,
    /// The rule is looked up for each packet, and says what the key is.
    ByRule = 2,
}

impl Keying {
    /// The way with this number.
    #[must_use]
    pub const fn from_u8(n: u8) -> Option<Self> {
        Some(match n {
            0 => Self::Single,
            1 => Self::Cached,
            2 => Self::ByRule,
            _ => return None,
        })
    }
}

/// What happens to a packet whose flow finds no way in its set.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// All such packets of a rule share one bucket of the rule's rate and burst.
    Shared = 0,
    /// It passes.
    Open = 1,
    /// It is dropped.
    Closed = 2,
}

impl Overflow {
    /// The policy with this number.
    #[must_use]
    pub const fn from_u8(n: u8) -> Option<Self> {
        Some(match n {
            0 => Self::Shared,
            1 => Self::Open,
            2 => Self::Closed,
            _ => return None,
        })
    }
}

/// The word that switches the configuration.
///
/// `epoch_base + epoch` is the number of the configuration in force; its lowest bit says which half of [`map::RULES`]
/// and [`map::OWNER`] holds it. A change of limits is written to the other half and takes effect when `epoch` grows by
/// one. A change that needs another program is written to the other half too, and takes effect when the program whose
/// `epoch_base` is larger by one replaces the old: either way one switch, and everything is old before it and new
/// after.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Changes of limits so far.
    pub epoch: u64,
}

/// The limits of a rule. `features` says which of them count; the others may hold clocks that once did.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleLimits {
    /// Bytes of each key.
    pub rate: Limit,
    /// Bytes of each key at the second, higher rate.
    pub peak: Limit,
    /// Packets of each key: the clock and the burst count packets.
    pub pps: Limit,
    /// Bytes of all keys of the rule together.
    pub total: Limit,
    /// In [`DEFAULT_RULE`]: bytes of everything that crosses the device in the attachment's direction.
    pub device_total: Limit,
    /// What happens above `rate` or `pps`.
    pub exceed: ActionWord,
    /// What happens above `peak`.
    pub violate: ActionWord,
    /// A number that no other rule of the attachment has or had: two rules never share a bucket.
    pub id: u32,
    /// Bits of [`feature`] that this rule needs.
    pub features: u8,
    /// [`crate::key::Per`], under [`Keying::ByRule`].
    pub per: u8,
    /// [`crate::key::Prefix::v4`], likewise.
    pub prefix_v4: u8,
    /// [`crate::key::Prefix::v6`], likewise.
    pub prefix_v6: u8,
}

/// An [`Action`] as a number: its kind in the lowest byte, its argument in the upper half.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActionWord(u64);

impl From<Action> for ActionWord {
    fn from(action: Action) -> Self {
        let (kind, argument) = match action {
            Action::Drop => (0, 0),
            Action::Pass => (1, 0),
            Action::Dscp(dscp) => (2, u32::from(dscp)),
            Action::Ecn => (3, 0),
            Action::Mark(mark) => (4, mark),
        };
        Self(kind | u64::from(argument) << 32)
    }
}

impl ActionWord {
    /// The action; a word that was never made from one drops.
    #[inline(always)]
    #[must_use]
    pub const fn action(self) -> Action {
        let argument = (self.0 >> 32) as u32;
        match self.0 as u8 {
            1 => Action::Pass,
            2 => Action::Dscp(argument as u8),
            3 => Action::Ecn,
            4 => Action::Mark(argument),
            _ => Action::Drop,
        }
    }
}

/// What limits are made of. What a configuration does not ask for, no packet pays for.
pub mod feature {
    /// [`super::RuleLimits::rate`].
    pub const RATE: u8 = 1;
    /// [`super::RuleLimits::peak`].
    pub const PEAK: u8 = 2;
    /// [`super::RuleLimits::pps`].
    pub const PPS: u8 = 4;
    /// [`super::RuleLimits::device_total`].
    pub const DEVICE_TOTAL: u8 = 8;
    /// An action other than to drop.
    pub const ACTION: u8 = 16;
    /// Everything is dropped.
    pub const BLOCK: u8 = 32;
    /// [`super::RuleLimits::total`].
    pub const TOTAL: u8 = 64;
    /// Anything that a packet has to fit.
    pub const LIMITS: u8 = RATE | PEAK | PPS | TOTAL | DEVICE_TOTAL;
}

/// Words that all packets of a rule share.
#[repr(C)]
#[derive(Debug, Default)]
pub struct RuleState {
    /// `rate` bucket of the flows that found no way, under [`Overflow::Shared`].
    pub untracked_full_at: AtomicU64,
    /// Their `peak` and `pps` buckets.
    pub untracked_more: MoreBuckets,
    /// Bucket of the rule's total.
    pub total_full_at: AtomicU64,
    /// In [`DEFAULT_RULE`]: bucket of the device's total.
    pub device_total_full_at: AtomicU64,
    /// Keeps two rules out of one cache line.
    pub reserved: [AtomicU64; 3],
}

/// Packets and bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets on the wire (segments).
    pub packets: u64,
    /// Bytes as the attachment accounts them.
    pub bytes: u64,
}

/// What a rule has done to packets, on one CPU or on some that share a counter. What passed is the sum of the reasons
/// but `exempt`, less `dropped`.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct RuleCounters {
    /// By [`Reason`].
    pub reasons: [Tally; Reason::COUNT],
    /// What was dropped, whatever the reason.
    pub dropped: Tally,
    /// What passed with a mark.
    pub marked: Tally,
    /// Keeps two processors out of one cache line.
    pub reserved: [AtomicU64; 6],
}

/// What a rule has counted, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// By [`Reason`].
    pub reasons: [Count; Reason::COUNT],
    /// What was dropped, whatever the reason.
    pub dropped: Count,
    /// What passed with a mark.
    pub marked: Count,
}

/// Bytes of text in an [`OwnerRecord`].
pub const OWNER_TEXT: usize = 4096 - 24;

/// Who owns an attachment and what was asked for, written by the tool.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerRecord {
    /// [`VERSION`] of the tool that wrote it.
    pub version: u32,
    /// Kernel id of the program this configuration belongs to.
    pub program_id: u32,
    /// `epoch_base` of that program.
    pub epoch_base: u64,
    /// Bytes of `text` in use.
    pub text_len: u64,
    /// JSON.
    pub text: [u8; OWNER_TEXT],
}

macro_rules! layout {
    ($($kind:ty { $($field:ident),* } = $size:literal, $align:literal;)*) => {
        const _: () = {
            $(assert!(size_of::<$kind>() == $size && align_of::<$kind>() == $align, stringify!($kind));)*
        };

        /// A number that changes when a size, an alignment or an offset in the contract does.
        pub const FINGERPRINT: u64 = {
            let mut print = 0xcbf2_9ce4_8422_2325;
            $(
                print = mix(print, size_of::<$kind>());
                print = mix(print, align_of::<$kind>());
                $(print = mix(print, offset_of!($kind, $field));)*
            )*
            print
        };
    };
}

/// One step of FNV-1a over a 64-bit word.
const fn mix(print: u64, n: usize) -> u64 {
    (print ^ n as u64).wrapping_mul(0x0000_0100_0000_01b3)
}

layout! {
    Clock { t0, v0, mult, shift } = 24, 8;
    Limit { clock, burst } = 32, 8;
    Settings {
        epoch_base, secret, set_mask, overhead, mpu, account, per, prefix_v4, prefix_v6, link, overflow, features,
        keying, shard_mask, shared_counters, reserved
    } = 48, 8;
    Control { epoch } = 8, 8;
    RuleLimits {
        rate, peak, pps, total, device_total, exceed, violate, id, features, per, prefix_v4, prefix_v6
    } = 184, 8;
    RuleState { untracked_full_at, untracked_more, total_full_at, device_total_full_at, reserved } = 64, 8;
    Count { packets, bytes } = 16, 8;
    Tally { packets, bytes } = 16, 8;
    RuleCounters { reasons, dropped, marked, reserved } = 256, 64;
    OwnerRecord { version, program_id, epoch_base, text_len, text } = 4096, 8;
    Index { tables } = 32, 4;
    Table { first, len } = 8, 4;
    Boundary { start, link } = 24, 8;
    Link { rank, rule, next, sport, dport, proto, kind, reserved } = 32, 8;
    table::FlowSet { tags, full_at, state, keys } = 1024, 64;
    table::FlowState { rule, passed, dropped, marked_packets, more } = 64, 8;
    MoreBuckets { peak_full_at, pps_full_at } = 16, 8;
    table::FlowKey { words, since } = 48, 8;
}
