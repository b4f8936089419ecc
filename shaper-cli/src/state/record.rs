//! The record in the OWNER map: who owns the attachment, what was asked for, and what the tool must know to change it.

use serde::{Deserialize, Serialize};
use shaper_common::{
    abi::{self, Keying, OWNER_TEXT, OwnerRecord},
    siphash::SipKey,
};

use crate::{
    error::{Error, Result},
    model::{Config, Direction, Hook},
    state::Room,
};

/// What is remembered, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Name of the device when the configuration was applied.
    pub(crate) dev: String,
    /// Name the namespace was given with `-n`.
    pub(crate) netns: Option<String>,
    /// Index of the device.
    pub(crate) ifindex: u32,
    /// Direction.
    pub(crate) direction: Direction,
    /// Where the program runs.
    pub(crate) hook: Hook,
    /// Whether the clsact qdisc was ours to add, and so is to remove.
    pub(crate) clsact_added: bool,
    /// Whether packets were taken to begin with an Ethernet header.
    pub(crate) ethernet: bool,
    /// Fingerprint of the object the program comes from.
    pub(crate) object: u64,
    /// Secret of the flow table; it stays when the program is replaced, for the tags are hashes under it.
    #[serde(with = "secret")]
    pub(crate) secret: SipKey,
    /// How packets find rule and bucket. It does not go back when rules go away: flows have been stamped with rules.
    #[serde(with = "keying")]
    pub(crate) keying: Keying,
    /// How large the maps are.
    pub(crate) room: Room,
    /// Bytes of text that tell the rules.
    pub(crate) rules_len: u64,
    /// The number that the next new rule gets.
    pub(crate) next_id: u32,
    /// What was asked for; the rules stand elsewhere.
    pub(crate) config: Config,
    /// Where the data plane has each rule.
    #[serde(skip)]
    pub(crate) slots: Vec<Slot>,
}

/// Where the data plane has a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slot {
    /// The rule's place in the maps, 1 or more.
    pub(crate) slot: u32,
    /// [`abi::RuleLimits::id`].
    pub(crate) id: u32,
}

/// A record and the program it belongs to.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    /// Kernel id of that program.
    pub(crate) program_id: u32,
    /// `epoch_base` of that program.
    pub(crate) epoch_base: u64,
    /// The record.
    pub(crate) record: Record,
}

impl Owner {
    /// The element of the OWNER map.
    pub(crate) fn encode(&self) -> Result<OwnerRecord> {
        let json = serde_json::to_vec(&self.record).map_err(|error| Error::State {
            what: format!("the owner record cannot be written: {error}"),
            hint: "report this".into(),
        })?;
        let mut text = [0; OWNER_TEXT];
        text.get_mut(..json.len())
            .ok_or_else(|| Error::State {
                what: format!("the owner record needs {} bytes and has {OWNER_TEXT}", json.len()),
                hint: "use shorter names".into(),
            })?
            .copy_from_slice(&json);
        Ok(OwnerRecord {
            version: abi::VERSION,
            program_id: self.program_id,
            epoch_base: self.epoch_base,
            text_len: json.len() as u64,
            text,
        })
    }

    /// Reads an element of the OWNER map back; what is wrong with it otherwise.
    pub(crate) fn decode(element: &OwnerRecord) -> Result<Self, String> {
        let OwnerRecord { version, program_id, epoch_base, text_len, ref text } = *element;
        if version != abi::VERSION {
            return Err(format!("its owner record is of version {version} and not {}", abi::VERSION));
        }
        let len = usize::try_from(text_len).map_err(|error| format!("its owner record is damaged: {error}"))?;
        let text = text.get(..len).ok_or("its owner record is damaged: no such length")?;
        let record = serde_json::from_slice(text).map_err(|error| format!("its owner record is damaged: {error}"))?;
        Ok(Self { program_id, epoch_base, record })
    }
}

/// A keying as its number.
mod keying {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use shaper_common::abi::Keying;

    pub(super) fn serialize<S: Serializer>(keying: &Keying, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*keying as u8)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Keying, D::Error> {
        Keying::from_u8(u8::deserialize(from)?).ok_or_else(|| D::Error::custom("no such keying"))
    }
}

/// A secret as two numbers.
mod secret {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use shaper_common::siphash::SipKey;

    pub(super) fn serialize<S: Serializer>(key: &SipKey, to: S) -> Result<S::Ok, S::Error> {
        (key.k0, key.k1).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SipKey, D::Error> {
        let (k0, k1) = Deserialize::deserialize(from)?;
        Ok(SipKey { k0, k1 })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use shaper_common::{
        units::{Bytes, PacketRate, Packets, Rate, Share},
        verdict::Action,
    };

    use super::*;
    use crate::{
        model::{ByteLimit, Limits, PacketLimit},
        plan::example,
    };

    /// The longest text there can be.
    fn longest() -> Owner {
        let bytes = ByteLimit { rate: Rate::MAX, burst: Bytes::MAX, burst_given: false };
        let limits = Limits {
            rate: Some(bytes),
            peak: Some(bytes),
            soft: Share::parse("100000.000001%").ok(),
            pps: Some(PacketLimit { rate: PacketRate::MAX, burst: Packets::MAX, burst_given: false }),
            total: Some(bytes),
            exceed: Action::Mark(u32::MAX),
            violate: Action::Mark(u32::MAX),
            block: false,
        };
        let record = Record {
            dev: "\u{1}".repeat(15),
            netns: Some("\u{1}".repeat(255)),
            ifindex: u32::MAX,
            direction: Direction::Ingress,
            hook: Hook::Clsact,
            clsact_added: false,
            ethernet: false,
            object: u64::MAX,
            secret: SipKey { k0: u64::MAX, k1: u64::MAX },
            config: Config {
                limits,
                per: "src/32,128".parse().unwrap(),
                max_flows: Config::MOST_FLOWS,
                overhead: -64,
                mpu: 256,
                ..example::config()
            },
            keying: Keying::ByRule,
            room: Room { rules: u32::MAX, boundaries: u32::MAX, links: u32::MAX, text: u32::MAX, shard_mask: u16::MAX },
            rules_len: u64::MAX,
            next_id: u32::MAX,
            slots: Vec::new(),
        };
        Owner { program_id: u32::MAX, epoch_base: u64::MAX, record }
    }

    #[test]
    fn the_longest_record_fits_and_is_read_back() {
        let owner = longest();
        let element = owner.encode().unwrap();
        let read = Owner::decode(&element).unwrap();
        assert_eq!((read.program_id, read.epoch_base, read.record), (u32::MAX, u64::MAX, owner.record));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let good = longest().encode().unwrap();
        for bad in [
            OwnerRecord { version: abi::VERSION - 1, ..good },
            OwnerRecord { text_len: good.text_len - 1, ..good },
            OwnerRecord { text_len: u64::MAX, ..good },
        ] {
            assert!(Owner::decode(&bad).is_err());
        }
    }
}
