//! Moving the buckets to a table of another size while packets are charged.
//!
//! Twice over the old table: once before the switch, so that every flow meets its own bucket in the new one, and once
//! after it, when no program uses the old one any more, for what was charged there in between. Nobody gets a free burst;
//! a flow that was idle in between may lose what it earned in those milliseconds.

use shaper_common::{
    abi::{Count, RuleLimits},
    atomic::{AtomicU64, Atomics as _, Native},
    bucket::debt,
    key::{KEY_WORDS, Key},
    siphash::SipKey,
    table::{self, EMPTY, FlowSet, MoreBuckets, Tally, WAYS},
};

use super::{mapping::Mapping, table::total};

/// The move between its two halves.
pub(super) struct Carry {
    old: Mapping,
    new: Mapping,
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

/// What the clocks read. One that is not in force any more still does: its limit may come back.
fn readings(limits: &RuleLimits, now: u64) -> Words {
    [&limits.rate, &limits.peak, &limits.pps].map(|limit| limit.clock.at(now))
}

/// Whether one of the buckets is not full.
fn owes(words: &Words, v: &Words) -> bool {
    words.iter().zip(v).any(|(word, v)| debt(*word, *v) != 0)
}

/// What a way held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Way {
    tag: u64,
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
    pub(super) fn start(old: Mapping, new: Mapping, secret: &SipKey, limits: &RuleLimits, now: u64) -> Self {
        let v = readings(limits, now);
        let mut seen = Vec::with_capacity(old.sets().len() * WAYS);
        for set in old.sets() {
            for way in 0..WAYS {
                let held = Way::read(set, way);
                // One that is being taken at this moment has still the key of the flow before it: not seen yet.
                let held = if settled(set, way, held.tag, secret) { held } else { Way::default() };
                seen.push(held);
                if held.tag == EMPTY {
                    continue;
                }
                if let Some(slot) = Slot::find_or_take(new.sets(), set, way, held.tag, &v, now) {
                    for (word, value) in buckets(slot.set, slot.way).into_iter().zip(held.words) {
                        Native::store(word, value);
                    }
                    held.count(&Way::default(), &slot);
                }
            }
        }
        Self { old, new, seen }
    }

    /// Adds what was charged to the old table since, once no program uses it. `limits` are the new ones and `now` the
    /// time of the switch. Returns how many flows in debt found no way in the new table.
    pub(super) fn finish(self, limits: &RuleLimits, now: u64) -> u64 {
        let v = readings(limits, now);
        let mut homeless = 0;
        let mut seen = self.seen.iter();
        for set in self.old.sets() {
            for way in 0..WAYS {
                let held = Way::read(set, way);
                let before = seen.next().copied().unwrap_or_default();
                let owes = owes(&held.words, &v);
                if held.tag == EMPTY || (held == before && !owes) {
                    continue;
                }
                let Some(slot) = Slot::find_or_take(self.new.sets(), set, way, held.tag, &v, now) else {
                    homeless += u64::from(owes);
                    continue;
                };
                // What the new way does not hold yet: all, if it has only just been taken or if the old one belonged to
                // somebody else (whose bucket was full) when it was copied.
                let before = if slot.taken || before.tag != held.tag { Way::default() } else { before };
                for (n, word) in buckets(slot.set, slot.way).into_iter().enumerate() {
                    add_charges(word, before.words[n], held.words[n], v[n]);
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
pub(super) fn recover(old: &[FlowSet], new: &[FlowSet], secret: &SipKey, limits: &RuleLimits, now: u64) {
    let v = readings(limits, now);
    for set in old {
        for way in 0..WAYS {
            let held = Way::read(set, way);
            if held.tag == EMPTY || !settled(set, way, held.tag, secret) {
                continue;
            }
            let known = table::find::<Native>(&new[held.tag as usize & (new.len() - 1)], held.tag).is_some();
            if !known && !owes(&held.words, &v) {
                continue;
            }
            let Some(slot) = Slot::find_or_take(new, set, way, held.tag, &v, now) else { continue };
            for ((word, held), v) in buckets(slot.set, slot.way).into_iter().zip(held.words).zip(v) {
                raise_debt(word, held, v);
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

fn larger(a: Count, b: Count) -> Count {
    Count { packets: a.packets.max(b.packets), bytes: a.bytes.max(b.bytes) }
}

/// Makes a bucket owe at least what `held` does when its clock reads `v`.
fn raise_debt(word: &AtomicU64, held: u64, v: u64) {
    let mut present = Native::load(word);
    while debt(present, v) < debt(held, v) {
        let found = Native::compare_exchange(word, present, held);
        if found == present {
            return;
        }
        present = found;
    }
}

/// Whether the key beside a tag is its own.
fn settled(set: &FlowSet, way: usize, tag: u64, secret: &SipKey) -> bool {
    Key::decode(&words(set, way)).is_some_and(|key| key.tag(secret) == tag)
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

impl<'a> Slot<'a> {
    /// The way of the flow that has `way` in the set `old`.
    fn find_or_take(sets: &'a [FlowSet], old: &FlowSet, way: usize, tag: u64, v: &Words, now: u64) -> Option<Self> {
        let set = &sets[tag as usize & (sets.len() - 1)];
        if let Some(way) = table::find::<Native>(set, tag) {
            return Some(Self { set, way, taken: false });
        }
        let [v, others @ ..] = *v;
        let are_full = |MoreBuckets { peak_full_at, pps_full_at }: &MoreBuckets| {
            [peak_full_at, pps_full_at].into_iter().zip(others).all(|(word, v)| debt(Native::load(word), v) == 0)
        };
        let at = table::claim::<Native>(set, tag, &words(old, way), v, now, are_full)?;
        Native::store(&set.keys[at].since, Native::load(&old.keys[way].since));
        Native::store(&set.state[at].rule, Native::load(&old.state[way].rule));
        Some(Self { set, way: at, taken: true })
    }
}

/// Adds to the new table's word, which began as `before`, what has been added to the old one's, which is now `after`.
fn add_charges(word: &AtomicU64, before: u64, after: u64, v: u64) {
    if after == before {
        return;
    }
    let mut held = Native::load(word);
    loop {
        let merged = merge(before, after, held, v);
        let found = Native::compare_exchange(word, held, merged);
        if found == held {
            return;
        }
        held = found;
    }
}

/// One word for two that began as `before` when the tables parted at clock reading `v`: the debts that both have added.
const fn merge(before: u64, after: u64, held: u64, v: u64) -> u64 {
    if held == before {
        // Nothing has been charged to the new one.
        return after;
    }
    let added = debt(held, v).saturating_sub(debt(before, v));
    v.wrapping_add(debt(after, v)).wrapping_add(added)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    const SECRET: SipKey = SipKey { k0: 1, k1: 2 };

    /// A table with room for `sets` sets.
    fn table(sets: usize) -> Vec<FlowSet> {
        (0..sets).map(|_| FlowSet::default()).collect()
    }

    /// A way for `key`, with these words and so many passed packets of a hundred bytes.
    fn fill(sets: &[FlowSet], key: &Key, words: Words, packets: u64) {
        let tag = key.tag(&SECRET);
        let set = &sets[tag as usize & (sets.len() - 1)];
        let way = table::claim::<Native>(set, tag, &key.encode(), 0, 1, |_| true).unwrap();
        for (word, value) in buckets(set, way).into_iter().zip(words) {
            Native::store(word, value);
        }
        set.state[way].passed.add::<Native>(packets, 100 * packets);
    }

    fn read(sets: &[FlowSet], key: &Key) -> Option<(Words, u64, u64)> {
        let tag = key.tag(&SECRET);
        let set = &sets[tag as usize & (sets.len() - 1)];
        let held = Way::read(set, table::find::<Native>(set, tag)?);
        Some((held.words, held.passed.packets, held.passed.bytes))
    }

    #[test]
    fn a_move_that_was_cut_short_gives_nothing_away() {
        let key = |n: u8| Key { sport: u16::from(n), ..Key::default() };
        let limits = crate::kernel::limits::next(&RuleLimits::default(), &crate::plan::example::limits(), 5);
        let now = 1_000_000_000;
        let v = readings(&limits, now);
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
            recover(&old, &new, &SECRET, &limits, now);
            assert_eq!(read(&new, &key(1)), Some((ahead([500, 70, 5]), 9, 900)));
            assert_eq!(read(&new, &key(2)), Some((ahead([300, 0, 0]), 4, 400)));
            let (words, ..) = read(&new, &key(3)).unwrap();
            assert_eq!(debt(words[0], v[0]), 40);
            assert_eq!(read(&new, &key(4)), None);
        }
    }

    const V: u64 = 1 << 41;

    #[test]
    fn charges_of_both_tables_add_up() {
        let before = V + 100;
        assert_eq!(merge(before, before + 30, before, V), before + 30, "only the old one was charged");
        assert_eq!(merge(before, before + 30, before + 5, V), before + 35, "both were");
    }

    #[test]
    fn a_bucket_that_was_full_owes_what_was_charged() {
        assert_eq!(merge(0, V + 30, 0, V), V + 30);
        assert_eq!(merge(0, V + 30, V + 5, V), V + 35);
        assert_eq!(merge(V - 7, V + 30, V + 5, V), V + 35);
    }

    #[test]
    fn nothing_is_given_away_when_the_new_one_was_charged_later() {
        // The old one's debt of 30 was paid at V + 30, then 5 bytes were charged at V + 40: the true word is V + 45, and
        // the merged one may be higher but not lower.
        assert!(merge(0, V + 30, V + 45, V) >= V + 45);
    }
}
