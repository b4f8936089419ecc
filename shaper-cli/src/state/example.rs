//! A record for tests to start from.

use shaper_common::{abi::Keying, siphash::SipKey};

use super::{Record, Room};
use crate::{
    model::{Direction, Hook},
    plan::example,
};

/// Of [`example::config`], with one rule.
pub(crate) fn record() -> Record {
    Record {
        dev: "eth0".to_owned(),
        netns: None,
        ifindex: 2,
        direction: Direction::Ingress,
        hook: Hook::Tcx,
        clsact_added: false,
        ethernet: true,
        object: 0,
        secret: SipKey { k0: 1, k1: 2 },
        keying: Keying::Single,
        room: Room::least(2),
        rules_len: 0,
        next_id: 1,
        config: example::config(),
        slots: Vec::new(),
    }
}
