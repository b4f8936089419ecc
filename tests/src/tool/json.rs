//! The tool's JSON, the fields that DESIGN promises. A missing field is an error, a field that may be null is an `Option`.

use serde::{Deserialize, Deserializer};

use crate::traffic::Direction;

#[derive(Deserialize)]
pub(super) struct Status {
    #[serde(rename = "schema")]
    _schema: Schema,
    pub(super) attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
pub(super) struct Stats {
    #[serde(rename = "schema")]
    _schema: Schema,
    pub(super) stats: Vec<RuleStats>,
}

#[derive(Deserialize)]
pub(super) struct Flows {
    #[serde(rename = "schema")]
    _schema: Schema,
    pub(super) flows: Vec<Flow>,
}

#[derive(Deserialize)]
pub(super) struct Explanations {
    #[serde(rename = "schema")]
    _schema: Schema,
    pub(super) explanations: Vec<Explanation>,
}

#[derive(Deserialize)]
pub(super) struct Rules {
    #[serde(rename = "schema")]
    _schema: Schema,
    pub(super) rules: Vec<Rule>,
}

/// The version of the JSON, which is 1.
struct Schema;

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u64::deserialize(from)? {
            1 => Ok(Self),
            other => Err(serde::de::Error::custom(format!("schema {other}"))),
        }
    }
}

/// An attachment in `status`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Attachment {
    /// Namespace as named with `-n`.
    #[serde(deserialize_with = "nullable")]
    pub netns: Option<String>,
    /// Device.
    pub dev: String,
    /// Index of the device.
    pub ifindex: u32,
    /// Direction.
    pub direction: Direction,
    /// Hook.
    pub hook: String,
    /// `active` or `gone`.
    pub state: String,
    /// Who shares a bucket.
    pub per: String,
    /// Rate.
    #[serde(deserialize_with = "nullable")]
    pub rate_bits_per_second: Option<u64>,
    /// Burst.
    #[serde(deserialize_with = "nullable")]
    pub burst_bytes: Option<u64>,
    /// What happens above the rate.
    pub action: String,
    /// Which bytes count.
    pub account: String,
    /// Capacity of the flow table.
    pub max_flows: u64,
    /// Flows in it.
    pub flows: u64,
    /// Packets that found their set full.
    pub untracked_packets: u64,
}

/// Counters of a rule in `stats`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct RuleStats {
    /// Device.
    pub dev: String,
    /// Direction.
    pub direction: Direction,
    /// Rule.
    pub rule: String,
    /// Passed packets.
    pub passed_packets: u64,
    /// Passed bytes.
    pub passed_bytes: u64,
    /// Dropped packets.
    pub dropped_packets: u64,
    /// Dropped bytes.
    pub dropped_bytes: u64,
    /// Marked packets.
    pub marked_packets: u64,
    /// Marked bytes.
    pub marked_bytes: u64,
    /// Exempt packets.
    pub exempt_packets: u64,
    /// Exempt bytes.
    pub exempt_bytes: u64,
    /// The same by reason.
    pub reasons: Reasons,
}

/// All reasons; zeros are listed too.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of shaper_common::verdict::Reason, where they are explained")]
pub struct Reasons {
    pub conform: Count,
    pub rate: Count,
    pub pps: Count,
    pub peak: Count,
    pub total: Count,
    pub device_total: Count,
    pub oversize: Count,
    pub untracked: Count,
    pub blocked: Count,
    pub delay: Count,
    pub exempt: Count,
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A flow in `flows`. What is not in its key is null.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Flow {
    /// Device.
    pub dev: String,
    /// Direction.
    pub direction: Direction,
    /// Rule.
    pub rule: String,
    /// Source address or CIDR.
    #[serde(deserialize_with = "nullable")]
    pub src: Option<String>,
    /// Destination address or CIDR.
    #[serde(deserialize_with = "nullable")]
    pub dst: Option<String>,
    /// Protocol.
    #[serde(deserialize_with = "nullable")]
    pub proto: Option<String>,
    /// Source port.
    #[serde(deserialize_with = "nullable")]
    pub sport: Option<u16>,
    /// Destination port.
    #[serde(deserialize_with = "nullable")]
    pub dport: Option<u16>,
    /// Passed packets.
    pub passed_packets: u64,
    /// Passed bytes.
    pub passed_bytes: u64,
    /// Dropped packets.
    pub dropped_packets: u64,
    /// Dropped bytes.
    pub dropped_bytes: u64,
    /// Marked packets.
    pub marked_packets: u64,
    /// What its bucket holds; null where there is no rate.
    #[serde(deserialize_with = "nullable")]
    pub level_bytes: Option<u64>,
}

/// What `explain` says of a packet.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Explanation {
    /// Direction.
    pub direction: Direction,
    /// The rule it meets.
    pub rule: String,
    /// What its bucket is keyed by.
    pub per: String,
    /// Whether it has one.
    pub tracked: bool,
    /// The limits it has to fit.
    pub layers: Vec<Layer>,
    /// What it costs.
    pub cost_bytes: u64,
    /// `pass` or `drop`.
    pub verdict: String,
    /// Why.
    pub reason: String,
    /// Whether it would pass with a mark.
    pub marked: bool,
}

/// A limit, and what its bucket holds.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Layer {
    /// The reason of what it refuses.
    pub reason: String,
    /// Bytes or packets in it.
    pub level: u64,
    /// The most it holds.
    pub burst: u64,
}

/// A rule in `rule list`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Rule {
    /// Device.
    pub dev: String,
    /// Direction.
    pub direction: Direction,
    /// Name.
    pub name: String,
    /// Prefixes.
    pub r#match: Vec<String>,
    /// Whose address; null for the default.
    #[serde(deserialize_with = "nullable")]
    pub side: Option<String>,
    /// Protocol.
    #[serde(deserialize_with = "nullable")]
    pub proto: Option<String>,
    /// Source or destination port.
    #[serde(deserialize_with = "nullable")]
    pub port: Option<String>,
    /// Source port.
    #[serde(deserialize_with = "nullable")]
    pub sport: Option<String>,
    /// Destination port.
    #[serde(deserialize_with = "nullable")]
    pub dport: Option<String>,
    /// Who shares a bucket.
    pub per: String,
    /// Rate.
    #[serde(deserialize_with = "nullable")]
    pub rate_bits_per_second: Option<u64>,
    /// Burst.
    #[serde(deserialize_with = "nullable")]
    pub burst_bytes: Option<u64>,
    /// Packets per second.
    #[serde(deserialize_with = "nullable")]
    pub rate_packets_per_second: Option<u64>,
    /// Total of the rule.
    #[serde(deserialize_with = "nullable")]
    pub total_bits_per_second: Option<u64>,
    /// What happens above the rate.
    pub action: String,
    /// Whether everything is dropped.
    pub block: bool,
}

impl<'de> Deserialize<'de> for Direction {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let word = String::deserialize(from)?;
        let known = Self::ALL.into_iter().find(|direction| direction.word() == word);
        known.ok_or_else(|| serde::de::Error::custom(format!("direction `{word}`")))
    }
}

/// An `Option` that must be there, as null at least: serde lets a plain one be missing.
fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

impl RuleStats {
    /// Packets that were judged: everything but exempt ones.
    #[must_use]
    pub const fn judged_packets(&self) -> u64 {
        self.passed_packets + self.dropped_packets
    }

    /// Bytes that were judged.
    #[must_use]
    pub const fn judged_bytes(&self) -> u64 {
        self.passed_bytes + self.dropped_bytes
    }
}

impl Reasons {
    /// What has this reason.
    ///
    /// # Panics
    ///
    /// If there is no such reason.
    #[must_use]
    pub fn of(&self, reason: &str) -> Count {
        let Self { conform, rate, pps, peak, total, device_total, oversize, untracked, blocked, delay, exempt } = self;
        let all = [conform, rate, pps, peak, total, device_total, oversize, untracked, blocked, delay, exempt];
        let at = shaper_common::verdict::Reason::ALL.iter().position(|known| known.name() == reason);
        *all[at.unwrap_or_else(|| panic!("no reason `{reason}`"))]
    }

    /// Sum of all but `exempt`.
    #[must_use]
    pub fn judged(&self) -> Count {
        let Self { conform, rate, pps, peak, total, device_total, oversize, untracked, blocked, delay, exempt: _ } =
            self;
        let all = [conform, rate, pps, peak, total, device_total, oversize, untracked, blocked, delay];
        all.into_iter().fold(Count::default(), |sum, count| Count {
            packets: sum.packets + count.packets,
            bytes: sum.bytes + count.bytes,
        })
    }
}
