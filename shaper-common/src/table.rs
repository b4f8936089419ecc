//! The flow table: sets of eight ways, and only a full bucket is ever forgotten.
//!
//! A full bucket behaves exactly as a new one, so forgetting it loses nothing: there is no timer and no sweeper, and
//! waiting, reconnecting or flooding with other flows gains nobody a free burst. A set whose eight buckets are all in
//! debt takes no ninth flow; what happens to that one is the attachment's overflow policy.
//!
//! A way is taken in two compare-and-swaps: first the bucket word, from the full value that was seen to "full now",
//! then the tag. If two CPUs want the same way, one of the four words differs and the loser looks again. What remains is
//! charged to the wrong bucket, not lost: a packet of the forgotten flow between the two swaps is charged to the new one,
//! and if two CPUs bring the first packets of one flow at the same instant to different ways, one packet each. A CPU that
//! is held up between its swaps (by a hypervisor, say) lets as many packets of the forgotten flow through to the new one's
//! bucket as come meanwhile, at most a burst.

use core::mem::{offset_of, size_of};

use crate::{
    atomic::{AtomicU64, Atomics},
    bucket::debt,
    key::KEY_WORDS,
};

/// Ways of a set.
pub const WAYS: usize = 8;

/// Tag of a way that was never used. [`crate::key::Key::tag`] is never this.
pub const EMPTY: u64 = 0;

/// How often a set is searched for a way to take before the flow counts as untracked.
const CLAIM_TRIES: u32 = 3;

/// Eight flows whose tags hash to the same set: 1024 bytes, so that a set never crosses a page.
///
/// A packet of a known flow touches three cache lines: the tags, the bucket words and its way's state. The readable
/// keys lie apart, written once and read by people.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct FlowSet {
    /// Keyed hash of the flow in each way, or [`EMPTY`].
    pub tags: [AtomicU64; WAYS],
    /// Reading of the rule's clock at which each way's bucket is full.
    pub full_at: [AtomicU64; WAYS],
    /// What else a packet needs.
    pub state: [FlowState; WAYS],
    /// Whose ways they are.
    pub keys: [FlowKey; WAYS],
}

/// What a packet of a known flow reads and counts, in one cache line.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FlowState {
    /// The matched rule.
    pub rule: AtomicU64,
    /// What has passed.
    pub passed: Tally,
    /// What was dropped.
    pub dropped: Tally,
    /// Packets that passed with a mark.
    pub marked_packets: AtomicU64,
    /// Its other buckets, where the rule has such limits.
    pub more: MoreBuckets,
}

/// The buckets of a key besides that of its `rate`: words like [`FlowSet::full_at`], each on its own clock.
#[repr(C)]
#[derive(Debug, Default)]
pub struct MoreBuckets {
    /// Of `peak`.
    pub peak_full_at: AtomicU64,
    /// Of `pps`; the clock counts packets.
    pub pps_full_at: AtomicU64,
}

/// Packets and bytes.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Tally {
    /// Packets on the wire (segments).
    pub packets: AtomicU64,
    /// Bytes as the attachment accounts them.
    pub bytes: AtomicU64,
}

/// The readable identity of a way.
#[repr(C)]
#[derive(Debug, Default)]
pub struct FlowKey {
    /// [`crate::key::Key::encode`].
    pub words: [AtomicU64; KEY_WORDS],
    /// When the way was taken, nanoseconds of `CLOCK_MONOTONIC`.
    pub since: AtomicU64,
}

const _: () = {
    assert!(size_of::<FlowSet>() == 1024);
    assert!(size_of::<FlowState>() == 64 && size_of::<FlowKey>() == 48);
    assert!(
        offset_of!(FlowSet, full_at) == 64 && offset_of!(FlowSet, state) == 128 && offset_of!(FlowSet, keys) == 640
    );
};

impl Tally {
    /// Adds `packets` and `bytes`.
    #[inline(always)]
    pub fn add<A: Atomics>(&self, packets: u64, bytes: u64) {
        A::add(&self.packets, packets);
        A::add(&self.bytes, bytes);
    }

    fn values<A: Atomics>(&self) -> [u64; 2] {
        [A::load(&self.packets), A::load(&self.bytes)]
    }

    fn subtract<A: Atomics>(&self, [packets, bytes]: [u64; 2]) {
        self.add::<A>(packets.wrapping_neg(), bytes.wrapping_neg());
    }
}

/// The way that holds `tag`.
#[inline(always)]
#[must_use]
pub fn find<A: Atomics>(set: &FlowSet, tag: u64) -> Option<usize> {
    (0..WAYS).find(|&way| A::load(&set.tags[way]) == tag)
}

/// Takes a way for `tag`, with a bucket that is full when its clock reads `v`. `None` if all eight are in debt.
///
/// `now` is the time in nanoseconds, `key` what people will read. `v` must be the clock of every way in the set;
/// `others_full` says whether a way's other buckets are full. The new flow's are, with 0 in their words.
pub fn claim<A: Atomics>(
    set: &FlowSet,
    tag: u64,
    key: &[u64; KEY_WORDS],
    v: u64,
    now: u64,
    others_full: impl Fn(&MoreBuckets) -> bool,
) -> Option<usize> {
    for _ in 0..CLAIM_TRIES {
        let Candidate { way, tag: held, full_at } = candidate::<A>(set, tag, v, &others_full);
        if way >= WAYS {
            return None;
        }
        if held == tag {
            return Some(way);
        }
        let state = &set.state[way];
        let passed = state.passed.values::<A>();
        let dropped = state.dropped.values::<A>();
        let marked = A::load(&state.marked_packets);
        let more = [&state.more.peak_full_at, &state.more.pps_full_at].map(|word| (word, A::load(word)));
        // Once more, behind the loads: who charges after this changes what was loaded.
        if !others_full(&state.more) {
            continue;
        }
        if A::compare_exchange(&set.full_at[way], full_at, v) != full_at {
            continue;
        }
        // Words of limits that are not in force now may hold anything; the new flow must not inherit that.
        if more.into_iter().any(|(word, held)| held != 0 && A::compare_exchange(word, held, 0) != held) {
            continue;
        }
        if A::compare_exchange(&set.tags[way], held, tag) != held {
            continue;
        }
        // Subtracted and not cleared: another CPU may already count packets of the new flow here.
        state.passed.subtract::<A>(passed);
        state.dropped.subtract::<A>(dropped);
        A::add(&state.marked_packets, marked.wrapping_neg());
        let identity = &set.keys[way];
        A::store(&identity.since, now);
        // The key goes last: a reader that finds the tag to be the hash of the key knows that the counters are the
        // flow's own.
        for (word, value) in identity.words.iter().zip(key) {
            A::store(word, *value);
        }
        return Some(way);
    }
    None
}

/// The way to take, as it was seen.
#[derive(Clone, Copy)]
struct Candidate {
    /// [`WAYS`] if all are in debt.
    way: usize,
    /// [`EMPTY`], the tag of the flow whose bucket has been full for longest, or, if another CPU was quicker, the tag of
    /// the flow that looks for a way.
    tag: u64,
    full_at: u64,
}

#[inline(always)]
fn candidate<A: Atomics>(set: &FlowSet, tag: u64, v: u64, others_full: impl Fn(&MoreBuckets) -> bool) -> Candidate {
    let mut best = Candidate { way: WAYS, tag: EMPTY, full_at: 0 };
    let mut best_age = 0;
    for way in 0..WAYS {
        // The word first: if the way is taken and charged after this, the word that was seen here is no longer there
        // to be swapped. The other way round the debt of the flow that took an empty way could be swapped away.
        let full_at = A::load(&set.full_at[way]);
        let held = A::load(&set.tags[way]);
        if held == tag || held == EMPTY {
            // Ways fill in order, so the flow is in none behind an empty one.
            return Candidate { way, tag: held, full_at };
        }
        let age = v.wrapping_sub(full_at);
        if debt(full_at, v) == 0 && age >= best_age && others_full(&set.state[way].more) {
            best_age = age;
            best = Candidate { way, tag: held, full_at };
        }
    }
    best
}
