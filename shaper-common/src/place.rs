//! Where rules have keys or clocks of their own: which rule a packet meets, and which way of the flow table is its own.
//!
//! A flow that meets another rule than before takes its debts along, byte for byte up to the new burst: its buckets move
//! from the old rule's clocks to the new one's. One CPU does that, and the way's [`stamp`] keeps the others away for those
//! few instructions.

use crate::{
    abi::{DEFAULT_RULE, Keying, RuleLimits, feature},
    atomic::{AtomicU64, Atomics},
    bucket::{self, Limit},
    key::{KEY_WORDS, Key, Per, Prefix},
    policy::{NO_WAY, Plane, Settings},
    rule,
    table::{self, Clocks, FlowSet, FlowState, MoreBuckets, Newcomer, stamp},
};

/// How often a CPU looks whether another one has finished moving a way, or finds it taken by somebody else.
const MOVE_TRIES: u32 = 16;

/// A packet that looks for its place. Plain numbers: the BPF object passes it to its functions through a map.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeker {
    /// Its key, as [`Key::encode`] makes it.
    pub words: [u64; KEY_WORDS],
    /// Hash of the key.
    pub tag: u64,
    /// The time in nanoseconds.
    pub now: u64,
    /// [`Plane::config`]; what of it fits is enough for a [`stamp`].
    pub config: u32,
    /// Its rule, if that is known.
    pub rule: u32,
}

/// Finds the rule of the flow whose key is in `seeker` and leaves it there; under [`Keying::ByRule`] also the part of the
/// key that the rule asks for, and its tag.
#[inline(always)]
pub fn assign<L: Plane>(plane: &L, seeker: &mut Seeker) {
    let rule = rule::lookup(plane, seeker.config & 1, &seeker.words);
    seeker.rule = rule;
    if !matches!(plane.settings().keying(), Keying::ByRule) {
        return;
    }
    let Some(limits) = plane.limits(rule, seeker.config.into()) else { return };
    let per = Per::from_u8(limits.per).unwrap_or(Per::Dev);
    let prefix = Prefix { v4: limits.prefix_v4, v6: limits.prefix_v6 };
    let key = Key::decode(&seeker.words).unwrap_or_default().part(per, prefix);
    seeker.words = key.encode();
    seeker.tag = key.tag_under(limits.id, &plane.settings().secret());
}

/// Takes a way for a flow that has none, whose rule is in `seeker`; [`NO_WAY`] if there is no room.
#[inline(always)]
pub fn enter<L: Plane>(plane: &L, seeker: &Seeker) -> u32 {
    let &Seeker { ref words, tag, now, .. } = seeker;
    let Some((set, clocks)) = RuleClocks::of(plane, seeker) else { return NO_WAY };
    table::claim::<L::Atomics>(set, &Newcomer { tag, key: words, now }, &clocks).map_or(NO_WAY, |way| way as u32)
}

/// Puts the buckets of a flow that another configuration has stamped on the clocks of its rule, which is in `seeker`; its
/// way, or [`NO_WAY`] if that could not be done.
#[inline(always)]
pub fn move_in<L: Plane>(plane: &L, seeker: &Seeker) -> u32 {
    let Some((set, clocks)) = RuleClocks::of(plane, seeker) else { return NO_WAY };
    match table::find::<L::Atomics>(set, seeker.tag) {
        Some(way) if clocks.move_in(set, way % table::WAYS) => way as u32,
        _ => NO_WAY,
    }
}

/// The clocks where there is one rule.
#[derive(Debug)]
pub struct SingleClocks<'a, L> {
    /// Where its limits are.
    pub plane: &'a L,
    /// The reading of the clock of its `rate`.
    pub v: u64,
    /// The time in nanoseconds.
    pub now: u64,
    /// [`Plane::config`].
    pub config: u64,
}

impl<L: Plane> Clocks for SingleClocks<'_, L> {
    #[inline(always)]
    fn full_for(&self, _: u64, full_at: u64, more: &MoreBuckets) -> Option<u64> {
        if bucket::debt(full_at, self.v) != 0 {
            return None;
        }
        let features = self.plane.settings().features();
        if features & (feature::PEAK | feature::PPS) != 0 {
            let limits = self.plane.limits(DEFAULT_RULE, self.config)?;
            if !are_full::<L::Atomics>(more, limits, features, self.now) {
                return None;
            }
        }
        Some(self.v.wrapping_sub(full_at))
    }

    #[inline(always)]
    fn full(&self) -> u64 {
        self.v
    }

    #[inline(always)]
    fn stamp(&self) -> Option<u64> {
        None
    }
}

/// The clocks where each way has those of its rule.
struct RuleClocks<'a, L> {
    plane: &'a L,
    seeker: &'a Seeker,
    /// Of the flow that looks for a way.
    limits: &'a RuleLimits,
    stamp: u64,
}

impl<L: Plane> Clocks for RuleClocks<'_, L> {
    #[inline(always)]
    fn full_for(&self, stamp: u64, full_at: u64, more: &MoreBuckets) -> Option<u64> {
        let age =
            self.plane.full_for(&Way { stamp, full_at, more, now: self.seeker.now, config: self.seeker.config.into() });
        (age != IN_DEBT).then_some(age)
    }

    #[inline(always)]
    fn full(&self) -> u64 {
        self.limits.rate.clock.at(self.seeker.now)
    }

    #[inline(always)]
    fn stamp(&self) -> Option<u64> {
        Some(self.stamp)
    }

    #[inline(always)]
    fn blur(&self, way: usize) -> usize {
        self.plane.blur(way)
    }
}

/// A way whose buckets may be full.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// Its [`stamp`].
    pub stamp: u64,
    /// Its bucket.
    pub full_at: u64,
    /// Its other buckets.
    pub more: &'a MoreBuckets,
    /// The time in nanoseconds.
    pub now: u64,
    /// [`Plane::config`].
    pub config: u64,
}

/// What [`full_for`] says of a way with a bucket that is not full.
pub const IN_DEBT: u64 = u64::MAX;

/// [`Clocks::full_for`] by the clocks of the way's rule, or [`IN_DEBT`].
#[inline(always)]
pub fn full_for<L: Plane>(plane: &L, way: &Way<'_>) -> u64 {
    let &Way { stamp, full_at, more, now, config } = way;
    if stamp::is_moving(stamp) {
        return IN_DEBT;
    }
    let Some(limits) = plane.limits(stamp::rule(stamp), config) else { return IN_DEBT };
    let v = limits.rate.clock.at(now);
    let owes = limits.features & feature::RATE != 0 && bucket::debt(full_at, v) != 0;
    if owes || !are_full::<L::Atomics>(more, limits, limits.features, now) {
        return IN_DEBT;
    }
    v.wrapping_sub(full_at)
}

impl<'a, L: Plane> RuleClocks<'a, L> {
    /// The set of a flow and the clocks of its rule.
    #[inline(always)]
    fn of(plane: &'a L, seeker: &'a Seeker) -> Option<(&'a FlowSet, Self)> {
        let config = seeker.config.into();
        let set = plane.flows(seeker.tag as u32 & plane.settings().set_mask())?;
        let limits = plane.limits(seeker.rule, config)?;
        Some((set, Self { plane, seeker, limits, stamp: stamp::of(seeker.rule, config) }))
    }

    /// Puts the buckets of a way on the clocks of the flow's rule. False if that could not be done, because another CPU
    /// takes very long or because the way belongs to another flow now.
    #[inline(always)]
    fn move_in(&self, set: &FlowSet, way: usize) -> bool {
        let state = &set.state[way];
        for _ in 0..MOVE_TRIES {
            let held = L::Atomics::load(&state.rule);
            if held == self.stamp {
                return true;
            }
            if stamp::is_moving(held) {
                continue;
            }
            // A packet that is late is not to take the flow back to a rule that is not in force any more.
            if stamp::is_newer(held, self.seeker.config.into()) || L::Atomics::load(&set.tags[way]) != self.seeker.tag {
                return false;
            }
            let stays = stamp::rule(held) == stamp::rule(self.stamp);
            let next = if stays { self.stamp } else { stamp::moving(self.stamp) };
            if L::Atomics::compare_exchange(&state.rule, held, next) != held {
                continue;
            }
            // A program that knows no rules may have taken the way for another flow, and then left the stamp as it was.
            if L::Atomics::load(&set.tags[way]) != self.seeker.tag {
                L::Atomics::store(&state.rule, held);
                return false;
            }
            if stays {
                self.cap(&set.full_at[way], state);
            } else {
                self.convert(stamp::rule(held), &set.full_at[way], state);
                L::Atomics::store(&state.rule, self.stamp);
            }
            return true;
        }
        false
    }

    /// Another rule may be in the slot now, with a smaller burst: the debts of its predecessor would block it for longer
    /// than its own can.
    #[inline(always)]
    fn cap(&self, full_at: &AtomicU64, state: &FlowState) {
        let new = self.limits;
        let MoreBuckets { peak_full_at, pps_full_at } = &state.more;
        let layers = [
            (feature::RATE, full_at, &new.rate),
            (feature::PEAK, peak_full_at, &new.peak),
            (feature::PPS, pps_full_at, &new.pps),
        ];
        for (bit, word, limit) in layers {
            if new.features & bit != 0 {
                bucket::cap::<L::Atomics>(word, limit.clock.at(self.seeker.now), limit.burst);
            }
        }
    }

    #[inline(always)]
    fn convert(&self, old: u32, full_at: &AtomicU64, state: &FlowState) {
        let Some(old) = self.plane.limits(old, self.seeker.config.into()) else { return };
        let new = self.limits;
        let both = old.features & new.features;
        let MoreBuckets { peak_full_at, pps_full_at } = &state.more;
        self.carry_debt(both & feature::RATE != 0, full_at, &old.rate, &new.rate);
        self.carry_debt(both & feature::PEAK != 0, peak_full_at, &old.peak, &new.peak);
        self.carry_debt(both & feature::PPS != 0, pps_full_at, &old.pps, &new.pps);
    }

    /// Takes a debt from one clock to another. A limit that the flow did not have until now, or has no more, starts full.
    #[inline(always)]
    fn carry_debt(&self, both: bool, word: &AtomicU64, old: &Limit, new: &Limit) {
        for _ in 0..MOVE_TRIES {
            let held = L::Atomics::load(word);
            let debt = if both { bucket::debt(held, old.clock.at(self.seeker.now)) } else { 0 };
            let debt = if debt > new.burst { new.burst } else { debt };
            let moved = if debt == 0 { 0 } else { new.clock.at(self.seeker.now).wrapping_add(debt) };
            // Somebody who found the way before it was being moved may charge it still.
            if L::Atomics::compare_exchange(word, held, moved) == held {
                return;
            }
        }
    }
}

/// Whether the buckets of a key besides that of its `rate` are full, as far as there are such limits.
#[inline(always)]
fn are_full<A: Atomics>(more: &MoreBuckets, limits: &RuleLimits, features: u8, now: u64) -> bool {
    let owes = |bit, word, limit: &Limit| features & bit != 0 && bucket::debt(A::load(word), limit.clock.at(now)) != 0;
    !owes(feature::PEAK, &more.peak_full_at, &limits.peak) && !owes(feature::PPS, &more.pps_full_at, &limits.pps)
}
