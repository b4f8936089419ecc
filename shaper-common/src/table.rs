//! The flow table: sets of eight ways, and only a full bucket is ever forgotten.
//!
//! A full bucket behaves exactly as a new one, so forgetting it loses nothing: there is no timer and no sweeper, and
//! waiting, reconnecting or flooding with other flows gains nobody a free burst. A set whose eight buckets are all in
//! debt takes no ninth flow; what happens to that one is the attachment's overflow policy.
//!
//! A way is taken in two compare-and-swaps: first the bucket word, from the full value that was seen to "full now",
//! then the tag; where rules have clocks of their own, the way's [`stamp`] keeps others away meanwhile. If two CPUs want the
//! same way, one of the words differs and the loser looks again. What remains is charged to the wrong bucket, not lost: a packet of the forgotten flow between the two swaps is charged to the new one,
//! and if two CPUs bring the first packets of one flow at the same instant to different ways, one packet each. A CPU that
//! is held up between its swaps (by a hypervisor, say) lets as many packets of the forgotten flow through to the new one's
//! bucket as come meanwhile, at most a burst.

use core::mem::{offset_of, size_of};

use crate::{
    atomic::{AtomicU64, Atomics},
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
    /// Its rule's [`stamp`].
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

/// The word of a way that says whose rule's clocks its buckets are on.
///
/// Bits 0 to 31 are the rule, 32 to 62 the number of the configuration under which it was found (what of it fits), and
/// the highest says that a CPU is moving the buckets from one rule's clocks to another's: they mean nothing meanwhile.
/// Under [`crate::abi::Keying::Single`] the word is neither read nor written.
pub mod stamp {
    const MOVING: u64 = 1 << 63;

    /// The word of a rule found under this configuration.
    #[inline(always)]
    #[must_use]
    pub const fn of(rule: u32, config: u64) -> u64 {
        rule as u64 | config << 32 & !MOVING
    }

    /// The rule.
    #[inline(always)]
    #[must_use]
    pub const fn rule(word: u64) -> u32 {
        word as u32
    }

    /// Whether the rule was found under this configuration, and its clocks are those of the buckets.
    #[inline(always)]
    #[must_use]
    pub const fn is_of(word: u64, config: u64) -> bool {
        word >> 32 == config & (u32::MAX >> 1) as u64
    }

    /// Whether the rule was found under a configuration that followed this one: the numbers are serial (RFC 1982).
    #[inline(always)]
    #[must_use]
    pub const fn is_newer(word: u64, config: u64) -> bool {
        let ahead = (word >> 32).wrapping_sub(config) & (u32::MAX >> 1) as u64;
        ahead != 0 && ahead < 1 << 30
    }

    /// The word of a way that is being moved to what this word says.
    #[inline(always)]
    #[must_use]
    pub const fn moving(word: u64) -> u64 {
        word | MOVING
    }

    /// Whether some CPU is moving the buckets.
    #[inline(always)]
    #[must_use]
    pub const fn is_moving(word: u64) -> bool {
        word & MOVING != 0
    }
}

/// What [`claim`] must know of the clocks that buckets are on.
pub trait Clocks {
    /// Bytes that the clock of a way's rule, which its `stamp` names, has counted since its bucket was full at `full_at`;
    /// `None` if that or one of its other buckets is in debt.
    fn full_for(&self, stamp: u64, full_at: u64, more: &MoreBuckets) -> Option<u64>;

    /// What a new flow's bucket holds: the reading of its rule's clock.
    fn full(&self) -> u64;

    /// The new flow's [`stamp`], if ways have one.
    fn stamp(&self) -> Option<u64>;

    /// The same way, of which a verifier need only know that it is less than [`WAYS`]: else it would follow each of them
    /// to the end.
    #[inline(always)]
    fn blur(&self, way: usize) -> usize {
        way
    }
}

/// Who looks for a way.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer<'a> {
    /// Hash of its key.
    pub tag: u64,
    /// What people will read.
    pub key: &'a [u64; KEY_WORDS],
    /// The time in nanoseconds.
    pub now: u64,
}

/// Takes a way for a flow, with buckets that are full. `None` if all eight are in debt.
#[inline(always)]
pub fn claim<A: Atomics>(set: &FlowSet, newcomer: &Newcomer<'_>, clocks: &impl Clocks) -> Option<usize> {
    let &Newcomer { tag, .. } = newcomer;
    for _ in 0..CLAIM_TRIES {
        let found = candidate::<A>(set, tag, clocks);
        let Candidate { way, tag: held, stamp, .. } = found;
        if way >= WAYS {
            return None;
        }
        if held == tag {
            return Some(way);
        }
        let way = clocks.blur(way) % WAYS;
        let state = &set.state[way];
        let Some(new) = clocks.stamp() else {
            if take::<A>(set, way, &found, newcomer, clocks) {
                return Some(way);
            }
            continue;
        };
        // The way's rule changes, and with it what its words mean: nobody else touches it until it has changed. One that
        // another CPU moves is not to be moved: that CPU would not find it as it left it.
        if stamp::is_moving(stamp) || A::compare_exchange(&state.rule, stamp, stamp::moving(new)) != stamp {
            continue;
        }
        let taken = A::load(&set.tags[way]) == held && take::<A>(set, way, &found, newcomer, clocks);
        A::store(&state.rule, if taken { new } else { stamp });
        if taken {
            return Some(way);
        }
    }
    None
}

/// Takes the way that was found; false if it is not any more as it was seen.
#[inline(always)]
fn take<A: Atomics>(
    set: &FlowSet,
    way: usize,
    found: &Candidate,
    newcomer: &Newcomer<'_>,
    clocks: &impl Clocks,
) -> bool {
    let &Newcomer { tag, key, now } = newcomer;
    let &Candidate { tag: held, full_at, stamp, .. } = found;
    let state = &set.state[way];
    let passed = state.passed.values::<A>();
    let dropped = state.dropped.values::<A>();
    let marked = A::load(&state.marked_packets);
    let MoreBuckets { peak_full_at, pps_full_at } = &state.more;
    let (peak, pps) = (A::load(peak_full_at), A::load(pps_full_at));
    // Once more, behind the loads: who charges after this changes what was loaded.
    if held != EMPTY && clocks.full_for(stamp, full_at, &state.more).is_none() {
        return false;
    }
    // Words of limits that are not in force now may hold anything; the new flow must not inherit that.
    if !clear::<A>(peak_full_at, peak) || !clear::<A>(pps_full_at, pps) {
        return false;
    }
    let full = clocks.full();
    if A::compare_exchange(&set.full_at[way], full_at, full) != full_at {
        return false;
    }
    if A::compare_exchange(&set.tags[way], held, tag) != held {
        return false;
    }
    // Subtracted and not cleared: another CPU may already count packets of the new flow here.
    state.passed.subtract::<A>(passed);
    state.dropped.subtract::<A>(dropped);
    A::add(&state.marked_packets, marked.wrapping_neg());
    let identity = &set.keys[way];
    A::store(&identity.since, now);
    // The key goes last: a reader that finds the tag to be the hash of the key knows that the counters are the flow's own.
    for (word, value) in identity.words.iter().zip(key) {
        A::store(word, *value);
    }
    true
}

/// Makes a word 0 that was seen to be `held`; false if it is not any more.
#[inline(always)]
fn clear<A: Atomics>(word: &AtomicU64, held: u64) -> bool {
    held == 0 || A::compare_exchange(word, held, 0) == held
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
    /// Its [`stamp`].
    stamp: u64,
}

#[inline(always)]
fn candidate<A: Atomics>(set: &FlowSet, tag: u64, clocks: &impl Clocks) -> Candidate {
    let mut best = Candidate { way: WAYS, tag: EMPTY, full_at: 0, stamp: 0 };
    let mut best_age = 0;
    for way in 0..WAYS {
        // The words first: if the way is taken and charged after this, what was seen here is no longer there to be swapped.
        // The other way round the debt of the flow that took an empty way could be swapped away.
        let stamp = A::load(&set.state[way].rule);
        let full_at = A::load(&set.full_at[way]);
        let held = A::load(&set.tags[way]);
        if held == tag || held == EMPTY {
            // Ways fill in order, so the flow is in none behind an empty one.
            return Candidate { way, tag: held, full_at, stamp };
        }
        if let Some(age) = clocks.full_for(stamp, full_at, &set.state[way].more)
            && age >= best_age
        {
            best_age = age;
            best = Candidate { way, tag: held, full_at, stamp };
        }
    }
    best
}
