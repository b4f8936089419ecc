//! What an attachment is, in the tool's own terms: what was asked for, where, and what is there.
//!
//! The front (arguments, plans, rendering) and the back (kernel, pins, namespaces) meet in these types and nowhere else.

pub mod action;
mod explanation;
mod limits;
mod net;
mod numbers;
mod per;
mod ports;
pub mod protocol;
pub mod rule;

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shaper_common::{
    abi,
    cost::{Account, Accounting},
    key,
};

pub use self::{
    explanation::{Explanation, Layer, Question},
    limits::{ByteLimit, Limits, PacketLimit},
    net::Net,
    per::Per,
    ports::{PortRange, Ports},
    rule::{Match, Part, Rule, Side},
};

/// Which way packets cross the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Received packets.
    Ingress,
    /// Sent packets.
    Egress,
}

/// Where a program runs. `auto` of the command line is resolved before one of these is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hook {
    /// TCX link (Linux 6.6).
    Tcx,
    /// cls_bpf filter on a clsact qdisc.
    Clsact,
}

/// The hook as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum HookChoice {
    /// TCX where the kernel has it, else clsact.
    #[default]
    Auto,
    /// TCX or an error.
    Tcx,
    /// clsact.
    Clsact,
}

/// Where among other programs of the hook ours runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Before all others that are there now.
    First,
    /// After all others that are there now.
    #[default]
    Last,
}

/// Which bytes count, as asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AccountChoice {
    /// The Ethernet frame without check sequence.
    #[default]
    L2,
    /// Without link header.
    L3,
    /// L2 + 24, at least 84.
    Wire,
}

/// Everything that was asked for, complete: this is what the owner record stores and what `status` shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// What limits, and what happens above.
    pub limits: Limits,
    /// Who shares a bucket.
    #[serde(with = "per::text")]
    pub per: Per,
    /// Flows that are tracked at once.
    pub max_flows: u32,
    /// What happens to the others.
    #[serde(with = "overflow_text")]
    pub overflow: abi::Overflow,
    /// Which bytes count.
    pub account: AccountChoice,
    /// Bytes added per packet.
    pub overhead: i32,
    /// Least bytes per packet.
    pub mpu: u32,
    /// The hook as asked for.
    pub hook: HookChoice,
    /// Position among other programs.
    pub order: Order,
    /// The rules besides the default, the oldest first. They are stored apart, for there may be many.
    #[serde(skip)]
    pub rules: Vec<Rule>,
}

/// A device in the selected network namespace, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Current name.
    pub name: String,
    /// Current index.
    pub ifindex: u32,
    /// False for devices without Ethernet header (by ARPHRD type).
    pub ethernet: bool,
    /// False for devices whose packets start with a header that is neither: InfiniBand, 802.11 monitors and the like.
    pub readable: bool,
    /// `lo`: both hooks see each packet.
    pub loopback: bool,
}

/// What a changing command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was no attachment.
    Created,
    /// There was one with another configuration.
    Updated,
    /// There was one with this configuration.
    Unchanged,
}

/// Whether an attachment limits anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its program runs on its device.
    Active,
    /// Its device, or its program on the device, has vanished.
    Gone,
}

/// An attachment as found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Name the namespace was given with `-n`, if it was.
    pub netns: Option<String>,
    /// Current name of the device; the recorded one if it is gone.
    pub dev: String,
    /// Index it is or was attached to.
    pub ifindex: u32,
    /// Direction.
    pub direction: Direction,
    /// Where it runs.
    pub hook: Hook,
    /// Whether it does.
    pub state: State,
    /// The configuration in force.
    pub config: Config,
    /// Ways of the flow table that hold a flow.
    pub flows: u64,
    /// Packets that met a full set.
    pub untracked_packets: u64,
}

/// Counters of one rule, all CPUs added up.
#[derive(Clone, Debug)]
pub struct RuleStats {
    /// Device.
    pub dev: String,
    /// Direction.
    pub direction: Direction,
    /// Name of the rule.
    pub rule: String,
    /// The counters.
    pub counters: abi::RuleCounts,
}

/// One tracked flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Device.
    pub dev: String,
    /// Direction.
    pub direction: Direction,
    /// Name of the rule.
    pub rule: String,
    /// What its bucket is keyed by.
    pub per: Per,
    /// Its identity.
    pub key: key::Key,
    /// Packets and bytes that passed.
    pub passed: abi::Count,
    /// Packets and bytes that were dropped.
    pub dropped: abi::Count,
    /// Packets that passed with a mark.
    pub marked_packets: u64,
    /// What the bucket of its rate holds now, bytes; `None` without a rate.
    pub level_bytes: Option<u64>,
}

impl Config {
    /// Flows that are tracked at once if nobody says otherwise.
    pub const MAX_FLOWS: u32 = 1 << 16;
    /// Most flows that can be tracked at once.
    pub const MOST_FLOWS: u32 = 1 << 24;

    /// These limits, without rules, and everything else at its default.
    #[must_use]
    pub const fn of(limits: Limits) -> Self {
        Self {
            limits,
            per: Per::FLOW,
            max_flows: Self::MAX_FLOWS,
            overflow: abi::Overflow::Shared,
            account: AccountChoice::L2,
            overhead: 0,
            mpu: 0,
            hook: HookChoice::Auto,
            order: Order::Last,
            rules: Vec::new(),
        }
    }

    /// How the data plane counts: `wire` is a frame with preamble, check sequence and gap, at least a minimum frame.
    #[must_use]
    pub fn accounting(&self) -> Accounting {
        let (account, overhead, mpu) = match self.account {
            AccountChoice::L2 => (Account::L2, 0, 0),
            AccountChoice::L3 => (Account::L3, 0, 0),
            AccountChoice::Wire => (Account::L2, 24, 84),
        };
        Accounting { account, overhead: overhead + self.overhead, mpu: mpu.max(self.mpu) }
    }
}

impl Direction {
    /// Both, in the order they are shown.
    pub const ALL: [Self; 2] = [Self::Ingress, Self::Egress];
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        })
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        })
    }
}

mod overflow_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use shaper_common::abi::Overflow;

    pub(super) fn serialize<S: Serializer>(overflow: &Overflow, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(super::overflow_name(*overflow))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Overflow, D::Error> {
        let text = String::deserialize(from)?;
        super::overflow_named(&text).ok_or_else(|| D::Error::custom(format!("unknown overflow policy `{text}`")))
    }
}

/// The policies for flows that are not tracked.
pub const OVERFLOWS: [abi::Overflow; 3] = [abi::Overflow::Shared, abi::Overflow::Open, abi::Overflow::Closed];

/// The policy with this spelling.
#[must_use]
pub fn overflow_named(name: &str) -> Option<abi::Overflow> {
    OVERFLOWS.into_iter().find(|overflow| overflow_name(*overflow) == name)
}

/// The spelling of `--overflow`.
#[must_use]
pub const fn overflow_name(overflow: abi::Overflow) -> &'static str {
    match overflow {
        abi::Overflow::Shared => "shared",
        abi::Overflow::Open => "open",
        abi::Overflow::Closed => "closed",
    }
}
