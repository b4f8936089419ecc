//! The limits of an attachment: any set of them, and what happens above.

use serde::{Deserialize, Serialize};
use shaper_common::{
    units::{Bytes, PacketRate, Packets, Rate, Share},
    verdict::Action,
};

use super::{action, numbers};

/// What limits traffic. One that is absent limits nothing; at least one is there, or everything is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ByteLimit>,
    /// Bytes of each key at a second rate, above that of `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<ByteLimit>,
    /// If the peak was given as a share of the rate: it follows the rate.
    #[serde(default, with = "share", skip_serializing_if = "Option::is_none")]
    pub soft: Option<Share>,
    /// Packets of each key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pps: Option<PacketLimit>,
    /// Bytes of everything that crosses the device in the attachment's direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<ByteLimit>,
    /// What happens above `rate` or `pps`.
    #[serde(default, with = "action", skip_serializing_if = "action::is_default")]
    pub exceed: Action,
    /// What happens above `peak`.
    #[serde(default, with = "action", skip_serializing_if = "action::is_default")]
    pub violate: Action,
    /// Everything is dropped but what is exempt; there are no limits then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub block: bool,
}

/// Bytes per time, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteLimit {
    /// The rate.
    #[serde(with = "numbers::rate")]
    pub rate: Rate,
    /// Depth of each bucket.
    #[serde(with = "numbers::bytes")]
    pub burst: Bytes,
    /// False if nobody gave a burst: then it follows the rate.
    pub burst_given: bool,
}

/// Packets per time, and how many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketLimit {
    /// The rate.
    #[serde(with = "numbers::packet_rate")]
    pub rate: PacketRate,
    /// Depth of each bucket.
    #[serde(with = "numbers::packets")]
    pub burst: Packets,
    /// False if nobody gave a burst: then it follows the rate.
    pub burst_given: bool,
}

impl Limits {
    /// Everything is blocked.
    pub const BLOCK: Self = Self {
        rate: None,
        peak: None,
        soft: None,
        pps: None,
        total: None,
        exceed: Action::Drop,
        violate: Action::Drop,
        block: true,
    };
}

/// A share as the text of `--soft`.
mod share {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use shaper_common::units::Share;

    pub(super) fn serialize<S: Serializer>(share: &Option<Share>, to: S) -> Result<S::Ok, S::Error> {
        share.map(|share| share.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Share>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        Share::parse(&text).map(Some).map_err(|error| D::Error::custom(error.to_string()))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::plan::example;

    #[test]
    fn limits_are_read_back() {
        let soft = Share::parse("12.5%").ok();
        for limits in [
            Limits::default(),
            Limits::BLOCK,
            example::limits(),
            Limits { soft, violate: Action::Mark(u32::MAX), ..example::limits() },
        ] {
            let json = serde_json::to_string(&limits).unwrap();
            assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), limits, "{json}");
        }
    }

    #[test]
    fn what_is_not_there_is_no_limit() {
        assert_eq!(serde_json::from_str::<Limits>("{}").unwrap(), Limits::default());
        for bad in [
            r#"{"rate":{"rate":7,"burst":1,"burst_given":true}}"#,
            r#"{"pps":{"rate":1,"burst":0,"burst_given":true}}"#,
            r#"{"exceed":"reject"}"#,
            r#"{"soft":"10"}"#,
        ] {
            assert!(serde_json::from_str::<Limits>(bad).is_err(), "{bad}");
        }
    }
}
