//! Moving the buckets to a table of another size while packets are charged.
//!
//! Twice over the old table: once before the switch, so that every flow meets its own bucket in the new one, and once
//! after it, when no program uses the old one any more, for what was charged there in between. Nobody gets a free burst;
//! a flow that was idle in between may lose what it earned in those milliseconds.

use shaper_common::{
    abi::{Count, Keying, RuleLimits, RuleState},
    atomic::{AtomicU64, Atomics as _, Native},
    bucket::debt,
    key::KEY_WORDS,
    table::{self, Clocks, EMPTY, FlowSet, MoreBuckets, Newcomer, Tally, WAYS, stamp},
};

use super::{
    mapping::Mapping,
    rulebook,
    table::{is_own, total},
};
use crate::state::Record;

/// The move between its two halves.
pub(super) struct Carry {
    old: Mapping<FlowSet>,
    new: Mapping<FlowSet>,
    record: Record,
    /// What was in each way of the old table, in its order.
    seen: Vec<Way>,
}

/// A word, or a clock's reading, for each bucket of a key: `rate`, `peak`, `pps`.
type Words = [u64; 3];

/// The bucket words of a way.
fn buckets(set: &FlowSet, way: usize) -> [&AtomicU64; 3] {
    let MoreBuckets { peak_full_at, pps_full_at } = &set.state[way].more;
    [&set.full_at[way], peak_full_at, pps_full_at]
}

/// The clocks of all rules.
struct Readings<'a> {
    limits: &'a [RuleLimits],
    now: u64,
}

impl Readings<'_> {
    /// What the clocks of a way with this stamp read. One that is not in force any more still does: its limit may come
    /// back.
    fn of(&self, stamp: u64) -> Words {
        // A stamp with no such rule has been written by nobody.
        let limits = self.limits.get(stamp::rule(stamp) as usize).unwrap_or(&self.limits[0]);
        [&limits.rate, &limits.peak, &limits.pps].map(|limit| limit.clock.at(self.now))
    }
}

/// Whether one of the buckets is not full.
fn owes(words: &Words, v: &Words) -> bool {
    words.iter().zip(v).any(|(word, v)| debt(*word, *v) != 0)
}

/// What a way held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    tag: u64,
    stamp: u64,
    words: Words,
    passed: Count,
    dropped: Count,
    marked_packets: u64,
}

impl Way {
    fn read(set: &FlowSet, way: usize) -> Self {
        let state = &set.state[way];
        Self {
            tag: Native::load(&set.tags[way]),
            stamp: Native::load(&state.rule),
            words: buckets(set, way).map(Native::load),
            passed: total(&state.passed),
            dropped: total(&state.dropped),
            marked_packets: Native::load(&state.marked_packets),
        }
    }

    /// Adds to the counters of a slot what this way has counted since it was `before`.
    fn count(&self, before: &Self, slot: &Slot<'_>) {
        let state = &slot.set.state[slot.way];
        add(&state.passed, self.passed, before.passed);
        add(&state.dropped, self.dropped, before.dropped);
        Native::add(&state.marked_packets, self.marked_packets.wrapping_sub(before.marked_packets));
    }
}

fn add(tally: &Tally, now: Count, before: Count) {
    tally.add::<Native>(now.packets.wrapping_sub(before.packets), now.bytes.wrapping_sub(before.bytes));
}

impl Carry {
    /// Copies every flow of `old` to `new`, which no program uses yet. `limits` are those in force, `now` the time.
    pub(super) fn start(
        old: Mapping<FlowSet>,
        new: Mapping<FlowSet>,
        record: Record,
        limits: &[RuleLimits],
        now: u64,
    ) -> Self {
        let clocks = Readings { limits, now };
        let mut seen = Vec::with_capacity(old.len() * WAYS);
        for set in old.all() {
            for way in 0..WAYS {
                let held = Way::read(set, way);
                // One that is being taken or moved at this moment is not what it says: not seen yet.
                let settled = is_own(set, way, held.tag, held.stamp, &record, limits) && !stamp::is_moving(held.stamp);
                let held = if settled { held } else { Way::default() };
                seen.push(held);
                if held.tag == EMPTY {
                    continue;
                }
                if let Some(slot) = Slot::find_or_take(new.all(), set, way, &held, &clocks, &record) {
                    for (word, value) in buckets(slot.set, slot.way).into_iter().zip(held.words) {
                        Native::store(word, value);
                    }
                    held.count(&Way::default(), &slot);
                }
            }
        }
        Self { old, new, record, seen }
    }

    /// Adds what was charged to the old table since, once no program uses it. `limits` are the new ones and `now` the
    /// time of the switch. Returns how many flows in debt found no way in the new table.
    pub(super) fn finish(self, limits: &[RuleLimits], now: u64) -> u64 {
        let clocks = Readings { limits, now };
        let mut homeless = 0;
        let mut seen = self.seen.iter();
        for set in self.old.all() {
            for way in 0..WAYS {
                let held = Way::read(set, way);
                let before = seen.next().copied().unwrap_or_default();
                let v = clocks.of(held.stamp);
                let owes = owes(&held.words, &v);
                if held.tag == EMPTY || (held == before && !owes) {
                    continue;
                }
                let Some(slot) = Slot::find_or_take(self.new.all(), set, way, &held, &clocks, &self.record) else {
                    homeless += u64::from(owes);
                    continue;
                };
                // What the new way does not hold yet: all, if it has only just been taken or if the old one belonged to
                // somebody else (whose bucket was full) when it was copied.
                let before = if slot.taken || before.tag != held.tag { Way::default() } else { before };
                let of_new = clocks.of(slot.stamp());
                let of_before = clocks.of(before.stamp);
                for (n, word) in buckets(slot.set, slot.way).into_iter().enumerate() {
                    let charged = Charged {
                        before: before.words[n],
                        debt_before: debt(before.words[n], of_before[n]),
                        after: held.words[n],
                        debt_after: debt(held.words[n], v[n]),
                        same_clock: stamp::rule(before.stamp) == stamp::rule(held.stamp)
                            && stamp::rule(held.stamp) == stamp::rule(slot.stamp()),
                    };
                    charged.add_to(word, of_new[n]);
                }
                held.count(&before, &slot);
            }
        }
        homeless
    }
}

/// Finishes a move whose tool was killed after the switch. What the old table held when it was copied is forgotten, so
/// that what was charged to it since cannot be told from what was charged before: each flow gets the larger debt of the
/// two tables, for each of its buckets, and the larger counters.
///
/// Lost is, for a flow that was charged to both tables in that moment, the smaller of the two charges. Nothing is
/// charged twice, except that a flow whose way was taken by another one meanwhile, and which has come back, counts again
/// what it had counted before. Done twice, or after [`Carry::finish`], it changes nothing.
pub(super) fn recover(old: &[FlowSet], new: &[FlowSet], record: &Record, limits: &[RuleLimits], now: u64) {
    let clocks = Readings { limits, now };
    for set in old {
        for way in 0..WAYS {
            let held = Way::read(set, way);
            if held.tag == EMPTY || !is_own(set, way, held.tag, held.stamp, record, limits) {
                continue;
            }
            let v = clocks.of(held.stamp);
            let known = table::find::<Native>(&new[held.tag as usize & (new.len() - 1)], held.tag).is_some();
            if !known && !owes(&held.words, &v) {
                continue;
            }
            let Some(slot) = Slot::find_or_take(new, set, way, &held, &clocks, record) else { continue };
            let of_new = clocks.of(slot.stamp());
            for ((word, (held, v)), of_new) in
                buckets(slot.set, slot.way).into_iter().zip(held.words.into_iter().zip(v)).zip(of_new)
            {
                raise_debt(word, debt(held, v), of_new);
            }
            let present = Way::read(slot.set, slot.way);
            let larger = Way {
                passed: larger(present.passed, held.passed),
                dropped: larger(present.dropped, held.dropped),
                marked_packets: present.marked_packets.max(held.marked_packets),
                ..present
            };
            larger.count(&present, &slot);
        }
    }
}

/// Copies the words that all packets of a rule share to a map that no program uses yet. Returns what they were.
pub(super) fn start_states(old: &[RuleState], new: &[RuleState]) -> Vec<[u64; 5]> {
    let copy = |(old, new)| {
        let held = rulebook::words(old).map(Native::load);
        rulebook::words(new).into_iter().zip(held).for_each(|(word, held)| Native::store(word, held));
        held
    };
    old.iter().zip(new).map(copy).collect()
}

/// Adds what was charged to the old words since, once no program uses them. `limits` are the new ones and `now` the time
/// of the switch.
pub(super) fn finish_states(seen: &[[u64; 5]], old: &[RuleState], new: &[RuleState], limits: &[RuleLimits], now: u64) {
    for ((before, (old, new)), limits) in seen.iter().zip(old.iter().zip(new)).zip(limits) {
        let v = readings_of_state(limits, now);
        for (n, (old, new)) in rulebook::words(old).into_iter().zip(rulebook::words(new)).enumerate() {
            let (before, after) = (before[n], Native::load(old));
            let (debt_before, debt_after) = (debt(before, v[n]), debt(after, v[n]));
            Charged { before, debt_before, after, debt_after, same_clock: true }.add_to(new, v[n]);
        }
    }
}

/// As [`recover`], for the words that all packets of a rule share.
pub(super) fn recover_states(old: &[RuleState], new: &[RuleState], limits: &[RuleLimits], now: u64) {
    for ((old, new), limits) in old.iter().zip(new).zip(limits) {
        let v = readings_of_state(limits, now);
        for ((old, new), v) in rulebook::words(old).into_iter().zip(rulebook::words(new)).zip(v) {
            raise_debt(new, debt(Native::load(old), v), v);
        }
    }
}

/// What the clocks of [`rulebook::words`] read.
fn readings_of_state(limits: &RuleLimits, now: u64) -> [u64; 5] {
    let RuleLimits { rate, peak, pps, total, device_total, .. } = limits;
    [rate, peak, pps, total, device_total].map(|limit| limit.clock.at(now))
}

fn larger(a: Count, b: Count) -> Count {
    Count { packets: a.packets.max(b.packets), bytes: a.bytes.max(b.bytes) }
}

/// Makes a bucket owe at least `owed` when its clock reads `v`.
fn raise_debt(word: &AtomicU64, owed: u64, v: u64) {
    let mut present = Native::load(word);
    while debt(present, v) < owed {
        let found = Native::compare_exchange(word, present, v.wrapping_add(owed));
        if found == present {
            return;
        }
        present = found;
    }
}

fn words(set: &FlowSet, way: usize) -> [u64; KEY_WORDS] {
    set.keys[way].words.each_ref().map(Native::load)
}

/// A way of the new table.
struct Slot<'a> {
    set: &'a FlowSet,
    way: usize,
    /// It was not there and has a full bucket now.
    taken: bool,
}

/// The clocks by which a way of the new table is taken for a flow.
struct FlowClocks<'a> {
    all: &'a Readings<'a>,
    /// What those of the flow read.
    v: Words,
    stamp: Option<u64>,
}

impl Clocks for FlowClocks<'_> {
    fn full_for(
        &self,
        stamp: u64,
        full_at: u64,
        MoreBuckets { peak_full_at, pps_full_at }: &MoreBuckets,
    ) -> Option<u64> {
        if stamp::is_moving(stamp) {
            return None;
        }
        let v = self.all.of(stamp);
        let words = [full_at, Native::load(peak_full_at), Native::load(pps_full_at)];
        (!owes(&words, &v)).then(|| v[0].wrapping_sub(full_at))
    }

    fn full(&self) -> u64 {
        self.v[0]
    }

    fn stamp(&self) -> Option<u64> {
        self.stamp
    }
}

impl<'a> Slot<'a> {
    /// The way of the flow that has `way` in the set `old`.
    fn find_or_take(
        sets: &'a [FlowSet],
        old: &FlowSet,
        way: usize,
        held: &Way,
        clocks: &Readings<'_>,
        record: &Record,
    ) -> Option<Self> {
        let tag = held.tag;
        let set = &sets[tag as usize & (sets.len() - 1)];
        if let Some(way) = table::find::<Native>(set, tag) {
            return Some(Self { set, way, taken: false });
        }
        let stamp = (record.keying != Keying::Single).then_some(held.stamp);
        let clocks = FlowClocks { all: clocks, v: clocks.of(held.stamp), stamp };
        let newcomer = Newcomer { tag, key: &words(old, way), now: Native::load(&old.keys[way].since) };
        let at = table::claim::<Native>(set, &newcomer, &clocks)?;
        Some(Self { set, way: at, taken: true })
    }

    /// Whose clocks its buckets are on.
    fn stamp(&self) -> u64 {
        Native::load(&self.set.state[self.way].rule)
    }
}

/// What has become of a bucket of the old table since it was copied.
struct Charged {
    before: u64,
    debt_before: u64,
    after: u64,
    debt_after: u64,
    /// The new table's bucket is on the clock that this one has always been on.
    same_clock: bool,
}

impl Charged {
    /// Adds it to the new table's word, whose clock reads `v`.
    fn add_to(&self, word: &AtomicU64, v: u64) {
        if self.after == self.before && self.same_clock {
            return;
        }
        let mut held = Native::load(word);
        loop {
            let merged = self.merge(held, v);
            let found = Native::compare_exchange(word, held, merged);
            if found == held {
                return;
            }
            held = found;
        }
    }

    /// One word for two that began as `before` when the tables parted: the debts that both have added.
    const fn merge(&self, held: u64, v: u64) -> u64 {
        if held == self.before && self.same_clock {
            // Nothing has been charged to the new one.
            return self.after;
        }
        let added = self.debt_after.saturating_sub(self.debt_before);
        if added == 0 { held } else { v.wrapping_add(debt(held, v)).wrapping_add(added) }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use shaper_common::key::Key;

    use super::*;

    /// Of an attachment with one rule.
    fn record() -> Record {
        crate::state::example::record()
    }

    /// A table with room for `sets` sets.
    fn table(sets: usize) -> Vec<FlowSet> {
        (0..sets).map(|_| FlowSet::default()).collect()
    }

    /// A way for `key`, with these words and so many passed packets of a hundred bytes.
    fn fill(sets: &[FlowSet], key: &Key, words: Words, packets: u64) {
        let tag = key.tag(&record().secret);
        let set = &sets[tag as usize & (sets.len() - 1)];
        let way = set.tags.iter().position(|tag| Native::load(tag) == EMPTY).unwrap();
        Native::store(&set.tags[way], tag);
        set.keys[way].words.iter().zip(key.encode()).for_each(|(word, value)| Native::store(word, value));
        for (word, value) in buckets(set, way).into_iter().zip(words) {
            Native::store(word, value);
        }
        set.state[way].passed.add::<Native>(packets, 100 * packets);
    }

    fn read(sets: &[FlowSet], key: &Key) -> Option<(Words, u64, u64)> {
        let tag = key.tag(&record().secret);
        let set = &sets[tag as usize & (sets.len() - 1)];
        let held = Way::read(set, table::find::<Native>(set, tag)?);
        Some((held.words, held.passed.packets, held.passed.bytes))
    }

    #[test]
    fn a_move_that_was_cut_short_gives_nothing_away() {
        let key = |n: u8| Key { sport: u16::from(n), ..Key::default() };
        let mut record = record();
        record.config.limits = crate::plan::example::limits();
        let limits = crate::kernel::limits::next_all(&[RuleLimits::default()], &record, 5);
        let now = 1_000_000_000;
        let v = Readings { limits: &limits, now }.of(0);
        let ahead = |debts: Words| [v[0] + debts[0], v[1] + debts[1], v[2] + debts[2]];
        let (old, new) = (table(4), table(16));
        // Charged to the old table after the copy; to the new one; only to the old one; long paid.
        fill(&old, &key(1), ahead([500, 50, 5]), 9);
        fill(&new, &key(1), ahead([100, 70, 1]), 7);
        fill(&old, &key(2), ahead([100, 0, 0]), 3);
        fill(&new, &key(2), ahead([300, 0, 0]), 4);
        fill(&old, &key(3), ahead([40, 0, 0]), 1);
        fill(&old, &key(4), [1, 1, 1], 1);
        for _ in 0..2 {
            recover(&old, &new, &record, &limits, now);
            assert_eq!(read(&new, &key(1)), Some((ahead([500, 70, 5]), 9, 900)));
            assert_eq!(read(&new, &key(2)), Some((ahead([300, 0, 0]), 4, 400)));
            let (words, ..) = read(&new, &key(3)).unwrap();
            assert_eq!(debt(words[0], v[0]), 40);
            assert_eq!(read(&new, &key(4)), None);
        }
    }

    const V: u64 = 1 << 41;

    fn merge(before: u64, after: u64, held: u64) -> u64 {
        let (debt_before, debt_after) = (debt(before, V), debt(after, V));
        Charged { before, debt_before, after, debt_after, same_clock: true }.merge(held, V)
    }

    #[test]
    fn charges_of_both_tables_add_up() {
        let before = V + 100;
        assert_eq!(merge(before, before + 30, before), before + 30, "only the old one was charged");
        assert_eq!(merge(before, before + 30, before + 5), before + 35, "both were");
    }

    #[test]
    fn a_bucket_that_was_full_owes_what_was_charged() {
        assert_eq!(merge(0, V + 30, 0), V + 30);
        assert_eq!(merge(0, V + 30, V + 5), V + 35);
        assert_eq!(merge(V - 7, V + 30, V + 5), V + 35);
    }

    #[test]
    fn nothing_is_given_away_when_the_new_one_was_charged_later() {
        // The old one's debt of 30 was paid at V + 30, then 5 bytes were charged at V + 40: the true word is V + 45, and
        // the merged one may be higher but not lower.
        assert!(merge(0, V + 30, V + 45) >= V + 45);
    }

    #[test]
    fn charges_go_to_the_clock_that_the_flow_is_on_now() {
        // On its old clock, which read V, the flow was charged 30 bytes; on its new one, which reads W, 5.
        const W: u64 = 7 << 41;
        let charged = Charged { before: V + 100, debt_before: 100, after: V + 130, debt_after: 130, same_clock: false };
        assert_eq!(charged.merge(W + 105, W), W + 135);
        assert_eq!(Charged { after: V + 100, debt_after: 100, ..charged }.merge(W + 105, W), W + 105);
    }
}
