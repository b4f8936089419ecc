//! The flow table as people see it: who has a bucket and what is in it.
//!
//! The programs change the table while it is read. A way is believed if its tag is the hash of the key beside it, before
//! and after its other words were read.

use shaper_common::{
    abi::{Count, Keying, RuleLimits, feature},
    atomic::{Atomics as _, Native},
    bucket,
    key::Key,
    table::{EMPTY, FlowSet, Tally, WAYS, stamp},
};

use super::{mapping::Mapping, rulebook::Book};
use crate::state::Record;

/// How often a way that is changing is read again before it is left out.
const TRIES: u32 = 4;

/// A flow and its bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// That of its rule.
    pub(super) slot: u32,
    pub(super) key: Key,
    pub(super) passed: Count,
    pub(super) dropped: Count,
    pub(super) marked_packets: u64,
    pub(super) level_bytes: u64,
}

/// Ways that hold a flow.
pub(super) fn count(table: &Mapping<FlowSet>) -> u64 {
    let used = |set: &FlowSet| set.tags.iter().filter(|tag| Native::load(tag) != EMPTY).count() as u64;
    table.all().iter().map(used).sum()
}

/// Every flow, with the level of its bucket at `now` in configuration number `config`.
pub(super) fn rows(table: &Mapping<FlowSet>, record: &Record, book: &Book, config: u64, now: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for set in table.all() {
        let first = rows.len();
        for way in 0..WAYS {
            let Some(read) = read(set, way, record, &book.limits) else { continue };
            let row = read.row(record, book, config, now);
            // Two CPUs that see a flow's first packets at once may each take a way for it. Packets find the first.
            match rows[first..].iter_mut().find(|known: &&mut Row| (known.slot, known.key) == (row.slot, row.key)) {
                Some(known) => known.add(&row),
                None => rows.push(row),
            }
        }
    }
    rows
}

/// A way that belongs to whom it says.
struct Read {
    row: Row,
    full_at: u64,
    stamp: u64,
}

fn read(set: &FlowSet, way: usize, record: &Record, limits: &[RuleLimits]) -> Option<Read> {
    let state = &set.state[way];
    for _ in 0..TRIES {
        let tag = Native::load(&set.tags[way]);
        if tag == EMPTY {
            return None;
        }
        let stamp = Native::load(&state.rule);
        let words = set.keys[way].words.each_ref().map(Native::load);
        let Some(key) = Key::decode(&words) else { continue };
        if stamp::is_moving(stamp) || tag_of(&key, stamp::rule(stamp), record, limits) != Some(tag) {
            continue;
        }
        let full_at = Native::load(&set.full_at[way]);
        let row = Row {
            slot: stamp::rule(stamp),
            key,
            passed: total(&state.passed),
            dropped: total(&state.dropped),
            marked_packets: Native::load(&state.marked_packets),
            level_bytes: 0,
        };
        if Native::load(&set.tags[way]) == tag && Native::load(&state.rule) == stamp {
            return Some(Read { row, full_at, stamp });
        }
    }
    None
}

/// The tag of a key under the rule in a slot; `None` if there is no such rule.
pub(super) fn tag_of(key: &Key, slot: u32, record: &Record, limits: &[RuleLimits]) -> Option<u64> {
    match record.keying {
        Keying::ByRule => limits.get(slot as usize).map(|limits| key.tag_under(limits.id, &record.secret)),
        _ => Some(key.tag(&record.secret)),
    }
}

/// Whether the key beside a tag is the one that the tag is the hash of.
pub(super) fn is_own(set: &FlowSet, way: usize, tag: u64, stamp: u64, record: &Record, limits: &[RuleLimits]) -> bool {
    let words = set.keys[way].words.each_ref().map(Native::load);
    Key::decode(&words).is_some_and(|key| tag_of(&key, stamp::rule(stamp), record, limits) == Some(tag))
}

impl Read {
    /// What people see: a flow that has not been seen since its rule changed shows the rule that it will meet.
    fn row(self, record: &Record, book: &Book, config: u64, now: u64) -> Row {
        let Self { mut row, full_at, stamp } = self;
        let held = book.limits(stamp::rule(stamp));
        row.slot = match record.keying {
            Keying::Single => 0,
            Keying::Cached if !stamp::is_of(stamp, config) => book.lookup(&row.key.encode()),
            _ => stamp::rule(stamp),
        };
        let limits = book.limits(row.slot);
        let moves = row.slot != stamp::rule(stamp) && record.keying != Keying::Single;
        let kept = !moves || held.features & limits.features & feature::RATE != 0;
        let debt = if kept { bucket::debt(full_at, held.rate.clock.at(now)) } else { 0 };
        row.level_bytes = limits.rate.burst.saturating_sub(debt);
        row
    }
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
