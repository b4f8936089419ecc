//! The rules of an attachment in its maps: what was asked for, and what the data plane makes of it.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use shaper_common::{
    abi::{Keying, RuleLimits, RuleState},
    atomic::{AtomicU64, Atomics as _, Native},
    key::KEY_WORDS,
    rule::{self, Boundary, Index, Link, Rules},
    table::MoreBuckets,
};

use super::{counters::Counters, limits, mapping::Mapping, maps::Maps, settings::processors};
use crate::{
    compile::{self, Compiled, Placed, Slotted},
    error::{Error, Result},
    model::Rule,
    state::{Record, Room, Slot},
};

/// Most rules of an attachment.
const MOST_RULES: usize = 1_000_000;

/// Bytes of a word of text.
const WORD: usize = size_of::<u64>();

/// A rule as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<R> {
    #[serde(flatten)]
    slot: Slot,
    rule: R,
}

/// What a configuration comes to, worked out and not yet written.
pub(super) struct Draft {
    compiled: Compiled,
    text: Vec<u8>,
}

/// Works out the rules of `record`, which is to follow `old`: where each of them is to be, how packets find them, and how
/// large the maps must be.
pub(super) fn draft(record: &mut Record, old: Option<&Record>) -> Result<Draft> {
    let config = &record.config;
    if config.rules.len() > MOST_RULES {
        return Err(too_many());
    }
    record.next_id = old.map_or(1, |old| old.next_id);
    record.slots = slots(&config.rules, old, &mut record.next_id);
    let slotted: Vec<Slotted<'_>> =
        config.rules.iter().zip(&record.slots).map(|(rule, slot)| Slotted { slot: slot.slot, rule }).collect();
    let compiled = compile::compile(&slotted, record.direction)?;
    let needed = match (config.rules.is_empty(), compile::key_decides(&config.rules, config.per, record.direction)) {
        (true, _) => Keying::Single,
        (_, true) => Keying::Cached,
        (_, false) => Keying::ByRule,
    };
    let before = old.map_or(Keying::Single, |old| old.keying);
    record.keying = if before as u8 > needed as u8 { before } else { needed };
    let stored = config.rules.iter().zip(&record.slots).map(|(rule, slot)| Stored { slot: *slot, rule });
    let text = if config.rules.is_empty() {
        Vec::new()
    } else {
        serde_json::to_vec(&stored.collect::<Vec<_>>()).map_err(|error| Error::State {
            what: format!("the rules cannot be written: {error}"),
            hint: "report this".into(),
        })?
    };
    record.rules_len = text.len() as u64;
    let many = |n: usize| u32::try_from(n).ok().filter(|n| *n < u32::MAX / 4).ok_or_else(too_many);
    let needed = Room {
        rules: record.slots.iter().map(|slot| slot.slot).max().unwrap_or(0) + 1,
        boundaries: many(compiled.boundaries())?.max(1),
        links: many(compiled.links())? + 1,
        text: many(text.len().div_ceil(WORD))?.max(1),
        shard_mask: 0,
    };
    let processors = processors();
    record.room = old.map_or_else(|| Room::least(processors), |old| old.room).grown(&needed, processors);
    Ok(Draft { compiled, text })
}

fn too_many() -> Error {
    Error::usage("rule", "there are too many rules or prefixes", format!("an attachment takes {MOST_RULES} rules"))
}

/// A place for each rule: its own, if it is there under its name, else one that is free.
fn slots(rules: &[Rule], old: Option<&Record>, next_id: &mut u32) -> Vec<Slot> {
    let held: HashMap<&str, Slot> = old.map_or_else(HashMap::new, |old| {
        old.config.rules.iter().map(|rule| rule.name.as_str()).zip(old.slots.iter().copied()).collect()
    });
    // No place that is in use: what the rule there has counted counts until the switch.
    let mut taken: HashSet<u32> = held.values().map(|slot| slot.slot).collect();
    // One behind all that are in use first: flows may still be stamped with a rule that is gone.
    let used = taken.iter().copied().max().unwrap_or(0);
    let room = old.map_or(1, |old| old.room.rules);
    let mut free = (used + 1..room).chain(1..=used).chain(room.max(used + 1)..);
    rules
        .iter()
        .map(|rule| {
            held.get(rule.name.as_str()).copied().unwrap_or_else(|| {
                let slot = free.by_ref().find(|slot| taken.insert(*slot)).unwrap_or_default();
                let id = *next_id;
                *next_id = next_id.wrapping_add(1);
                Slot { slot, id }
            })
        })
        .collect()
}

/// Writes a draft, and the limits that follow `old`, to a half that is not in force and that no program reads any more.
/// Returns the limits.
pub(super) fn write(
    maps: &Maps,
    half: u32,
    record: &Record,
    draft: Draft,
    old: &[RuleLimits],
    now: u64,
) -> Result<Vec<RuleLimits>> {
    let Room { boundaries, links, text, .. } = record.room;
    let limits = limits::next_all(old, record, now);
    empty_new_slots(maps, &record.room, record, old)?;
    let rules = Mapping::<RuleLimits>::new(&maps.rules)?;
    let mut fits = limits.iter().enumerate().all(|(rule, limits)| rules.set(2 * rule + half as usize, *limits));
    let Placed { index, boundaries: of_addresses, links: of_rules } =
        draft.compiled.place(half * boundaries, half * links + 1);
    let into = Mapping::<Boundary>::new(&maps.boundaries)?;
    let from = (half * boundaries) as usize;
    fits &= of_addresses.iter().enumerate().all(|(at, boundary)| into.set(from + at, *boundary));
    let into = Mapping::<Link>::new(&maps.links)?;
    let from = (half * links) as usize + 1;
    fits &= of_rules.iter().enumerate().all(|(at, link)| into.set(from + at, *link));
    let into = Mapping::<u64>::new(&maps.text)?;
    let from = (half * text) as usize;
    fits &= draft.text.chunks(WORD).enumerate().all(|(at, chunk)| {
        let mut word = [0; WORD];
        word[..chunk.len()].copy_from_slice(chunk);
        into.set(from + at, u64::from_ne_bytes(word))
    });
    if !fits {
        return Err(Error::State { what: "the maps are too small for the rules".into(), hint: "report this".into() });
    }
    maps.index.update(half, &index).map_err(Error::io("write the index of the rules"))?;
    Ok(limits)
}

/// Makes the words and counters of slots zero that a new rule gets. No packet is counted there: a slot that was in use
/// went out of force with an earlier change.
pub(super) fn empty_new_slots(maps: &Maps, room: &Room, record: &Record, old: &[RuleLimits]) -> Result<()> {
    let states = Mapping::<RuleState>::new(&maps.states)?;
    let counters = Counters::new(maps, room)?;
    for Slot { slot, id } in &record.slots {
        if old.get(*slot as usize).is_some_and(|limits| limits.id == *id) {
            continue;
        }
        if let Some(state) = states.all().get(*slot as usize) {
            words(state).into_iter().for_each(|word| Native::store(word, 0));
        }
        counters.clear(*slot);
    }
    Ok(())
}

/// The bucket words of a rule's state, in the order of `rate`, `peak`, `pps`, total and the device's total.
pub(super) fn words(state: &RuleState) -> [&AtomicU64; 5] {
    let RuleState { untracked_full_at, untracked_more, total_full_at, device_total_full_at, .. } = state;
    let MoreBuckets { peak_full_at, pps_full_at } = untracked_more;
    [untracked_full_at, peak_full_at, pps_full_at, total_full_at, device_total_full_at]
}

/// Reads the rules of `record` from a half; what is wrong with them otherwise.
pub(super) fn read(maps: &Maps, half: u32, record: &mut Record) -> Result<Result<(), String>> {
    if record.rules_len == 0 {
        return Ok(Ok(()));
    }
    let words = Mapping::<u64>::new(&maps.text)?;
    let Ok(len) = usize::try_from(record.rules_len) else { return Ok(Err("has rules of no such length".into())) };
    let from = (half * record.room.text) as usize;
    let mut text = Vec::new();
    for at in 0..len.div_ceil(WORD) {
        let Some(word) = words.get(from + at) else { return Ok(Err("has rules of no such length".into())) };
        text.extend(word.to_ne_bytes());
    }
    text.truncate(len);
    Ok(match serde_json::from_slice::<Vec<Stored<Rule>>>(&text) {
        Ok(stored) if !are_sound(&stored, &record.room) => Err("has rules where there is no room for them".into()),
        Ok(stored) => {
            (record.slots, record.config.rules) = stored.into_iter().map(|Stored { slot, rule }| (slot, rule)).unzip();
            Ok(())
        }
        Err(error) => Err(format!("has damaged rules: {error}")),
    })
}

/// Whether every rule has a place of its own.
fn are_sound(stored: &[Stored<Rule>], room: &Room) -> bool {
    let mut taken = HashSet::new();
    stored.iter().all(|Stored { slot, .. }| (1..room.rules).contains(&slot.slot) && taken.insert(slot.slot))
}

/// The configuration in force, as the data plane looks it up.
pub(super) struct Book {
    half: u32,
    /// By slot.
    pub(super) limits: Vec<RuleLimits>,
    index: Index,
    boundaries: Mapping<Boundary>,
    links: Mapping<Link>,
}

impl Book {
    pub(super) fn open(maps: &Maps, half: u32) -> Result<Self> {
        Ok(Self {
            half,
            limits: limits_of(maps, half)?,
            index: maps.index.lookup(half).map_err(Error::io("read the index of the rules"))?,
            boundaries: Mapping::new(&maps.boundaries)?,
            links: Mapping::new(&maps.links)?,
        })
    }

    /// The slot of the rule for packets with this key.
    pub(super) fn lookup(&self, words: &[u64; KEY_WORDS]) -> u32 {
        rule::lookup(self, self.half, words)
    }

    /// The limits in a slot.
    pub(super) fn limits(&self, slot: u32) -> &RuleLimits {
        self.limits.get(slot as usize).unwrap_or(&self.limits[0])
    }
}

/// The limits in one half, by slot; at least those of the default.
fn limits_of(maps: &Maps, half: u32) -> Result<Vec<RuleLimits>> {
    let rules = Mapping::<RuleLimits>::new(&maps.rules)?;
    Ok((0..rules.len() / 2).filter_map(|rule| rules.get(2 * rule + half as usize)).collect())
}

impl Rules for Book {
    fn index(&self, _: u32) -> Option<&Index> {
        Some(&self.index)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.boundaries.look(at as usize)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.links.look(at as usize)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        model::{Limits, Match},
        state::example,
    };

    fn rule(name: &str) -> Rule {
        Rule { name: name.to_owned(), matches: Match::default(), per: None, limits: Limits::default() }
    }

    /// The places and numbers of rules with these names, after those in `old`.
    fn placed(names: &[&str], old: Option<&Record>) -> Record {
        let mut record = example::record();
        record.config.rules = names
            .iter()
            .map(|name| {
                let nets = vec![format!("10.0.0.{}/32", name.len()).parse().unwrap()];
                Rule { matches: Match { nets, ..Match::default() }, ..rule(name) }
            })
            .collect();
        assert!(draft(&mut record, old).is_ok());
        record
    }

    fn places(record: &Record) -> Vec<(u32, u32)> {
        record.slots.iter().map(|slot| (slot.slot, slot.id)).collect()
    }

    #[test]
    fn a_rule_keeps_its_place_and_no_other_gets_one_that_is_in_use() {
        let first = placed(&["a", "bb"], None);
        assert_eq!(places(&first), [(1, 1), (2, 2)]);
        let renamed = placed(&["ccc", "bb"], Some(&first));
        assert_eq!(places(&renamed), [(3, 3), (2, 2)], "the place of `a` is in use until the switch");
        let next = placed(&["bb", "dddd", "ccc"], Some(&renamed));
        assert_eq!(places(&next), [(2, 2), (4, 4), (3, 3)]);
    }

    #[test]
    fn rules_that_have_no_place_are_not_believed() {
        let stored = |slots: &[u32]| -> Vec<Stored<Rule>> {
            slots.iter().map(|&slot| Stored { slot: Slot { slot, id: 1 }, rule: rule("r") }).collect()
        };
        let room = Room { rules: 4, ..Room::least(1) };
        assert!(are_sound(&stored(&[1, 3, 2]), &room));
        for bad in [[0, 1, 2], [1, 1, 2], [1, 2, 4], [1, 2, u32::MAX]] {
            assert!(!are_sound(&stored(&bad), &room), "{bad:?}");
        }
    }
}
