//! The flow table as people see it: who has a bucket and what is in it.
//!
//! The programs change the table while it is read. A way is believed if its tag is the hash of the key beside it, before
//! and after its other words were read.

use shaper_common::{
    abi::Count,
    atomic::{Atomics as _, Native},
    bucket::{self, Limit},
    key::Key,
    siphash::SipKey,
    table::{EMPTY, FlowSet, Tally, WAYS},
};

use super::mapping::Mapping;

/// How often a way that is changing is read again before it is left out.
const TRIES: u32 = 4;

/// A flow and its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) passed: Count,
    pub(super) dropped: Count,
    pub(super) marked_packets: u64,
    pub(super) level_bytes: u64,
}

/// Ways that hold a flow.
pub(super) fn count(table: &Mapping) -> u64 {
    let used = |set: &FlowSet| set.tags.iter().filter(|tag| Native::load(tag) != EMPTY).count() as u64;
    table.sets().iter().map(used).sum()
}

/// Every flow, with the level of its bucket under `limit` at `now`.
pub(super) fn rows(table: &Mapping, secret: &SipKey, limit: &Limit, now: u64) -> Vec<Row> {
    let v = limit.clock.at(now);
    let mut rows = Vec::new();
    for set in table.sets() {
        let first = rows.len();
        for way in 0..WAYS {
            let Some((key, full_at, row)) = read(set, way, secret) else { continue };
            // Two CPUs that see a flow's first packets at once may each take a way for it. Packets find the first.
            match rows[first..].iter_mut().find(|row: &&mut Row| row.key == key) {
                Some(known) => known.add(&row),
                None => rows.push(Row { level_bytes: bucket::level(full_at, v, limit.burst), ..row }),
            }
        }
    }
    rows
}

fn read(set: &FlowSet, way: usize, secret: &SipKey) -> Option<(Key, u64, Row)> {
    for _ in 0..TRIES {
        let tag = Native::load(&set.tags[way]);
        if tag == EMPTY {
            return None;
        }
        let words = set.keys[way].words.each_ref().map(Native::load);
        let Some(key) = Key::decode(&words).filter(|key| key.tag(secret) == tag) else { continue };
        let full_at = Native::load(&set.full_at[way]);
        let state = &set.state[way];
        let row = Row {
            key,
            passed: total(&state.passed),
            dropped: total(&state.dropped),
            marked_packets: Native::load(&state.marked_packets),
            level_bytes: 0,
        };
        if Native::load(&set.tags[way]) == tag {
            return Some((key, full_at, row));
        }
    }
    None
}

/// What a tally holds.
pub(super) fn total(tally: &Tally) -> Count {
    Count { packets: Native::load(&tally.packets), bytes: Native::load(&tally.bytes) }
}

impl Row {
    fn add(&mut self, other: &Self) {
        for (count, more) in [(&mut self.passed, other.passed), (&mut self.dropped, other.dropped)] {
            count.packets = count.packets.wrapping_add(more.packets);
            count.bytes = count.bytes.wrapping_add(more.bytes);
        }
        self.marked_packets = self.marked_packets.wrapping_add(other.marked_packets);
    }
}
