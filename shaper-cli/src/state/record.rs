//! The record in the OWNER map: who owns the attachment, what was asked for, and what the tool must know to change it.

use serde::{Deserialize, Serialize};
use shaper_common::{
    abi::{self, OWNER_TEXT, OwnerRecord},
    siphash::SipKey,
};

use crate::{
    error::{Error, Result},
    model::{Config, Direction, Hook},
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
    /// What was asked for.
    pub(crate) config: Config,
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
