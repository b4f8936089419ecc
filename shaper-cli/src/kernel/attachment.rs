//! What a pin directory holds, made sense of: which program runs, which configuration is in force, and what a command
//! that was killed has left to finish or to undo.
//!
//! A directory may hold two programs, the one that is pinned as `prog` and the one that is to replace it. The kernel
//! decides which is in force: the one that runs. Everything else follows from its id, so that a change is one step,
//! whenever the tool dies.

use std::collections::HashMap;

use shaper_common::{
    abi::{Control, DEFAULT_RULE, OwnerRecord, RuleCounts, RuleLimits, RuleState, map},
    table::FlowSet,
    verdict::Reason,
};

use super::{
    carry, clock, clsact,
    clsact::Filter,
    counters::Counters,
    explain,
    link::Link,
    load::Program,
    mapping::Mapping,
    maps::{Maps, REPLACEABLE},
    pin,
    plain::Plain,
    rulebook::{self, Book, Draft},
    settings::{same_keys, sets, settings},
    sys,
    sys::Map,
    table,
};
use crate::{
    error::{Error, Result},
    model::{Explanation, Flow, Found, Per, Question, Rule, RuleStats, State, rule},
    state::{Directory, Owner, Place, Record, entry},
};

/// What runs the program.
#[derive(Debug)]
pub(super) enum Holder {
    /// The pinned link.
    Link(Link),
    /// The filter, unless it has vanished.
    Filter(Option<Filter>),
}

/// An attachment, complete, though perhaps gone.
#[derive(Debug)]
pub(super) struct Attachment {
    pub(super) directory: Directory,
    pub(super) maps: Maps,
    pub(super) holder: Holder,
    pub(super) state: State,
    /// The configuration in force.
    pub(super) owner: Owner,
    /// Changes of limits so far.
    pub(super) epoch: u64,
    /// The configuration that was in force before, or is to be next, if its program has a name still.
    other: Option<Owner>,
    /// Id of the program that is pinned as `prog`.
    pinned: u32,
    /// Id of the one that is to replace it, or has done so with the pins not yet renamed.
    next: Option<u32>,
}

impl Attachment {
    /// Reads a directory. `None` if an attach or detach ended half-way: then nothing of it runs. [`Error::State`] if
    /// something may run and it cannot be told what.
    pub(super) fn open(directory: Directory) -> Result<Option<Self>> {
        let place = directory.place;
        let Some(program) = Program::open(&directory.entry(entry::PROGRAM))? else {
            return nothing_runs(&directory).map(|()| None);
        };
        let next = Program::open(&directory.next(entry::PROGRAM))?.map(|program| program.id);
        let running = match Link::open(&directory.entry(entry::LINK))? {
            Some(link) => {
                let id = link.program_id()?;
                let state = if link.is_on(place.ifindex, place.direction)? { State::Active } else { State::Gone };
                Some((Holder::Link(link), id, state))
            }
            None => running_filter(&directory, program.id, next)?,
        };
        let Some((holder, id, state)) = running else { return Ok(None) };
        if id != program.id && Some(id) != next {
            return Err(pin::unusable(directory.path(), "has a link that runs somebody else's program"));
        }
        let maps = Maps::open(&directory, Some(id) == next)?;
        let epoch = look::<Control>(&maps.control, 0)?.epoch;
        let mut halves = Halves::read(&maps.owner)?;
        let broken = |what: String| pin::unusable(directory.path(), &what);
        let mut owner = halves.take(id, epoch).map_err(broken)?;
        maps.fit(&owner.record.room, sets(&owner.record.config)).map_err(broken)?;
        rulebook::read(&maps, half(owner.epoch_base, epoch), &mut owner.record)?.map_err(broken)?;
        let other = halves.rest().filter(|other| other.program_id == program.id || Some(other.program_id) == next);
        Ok(Some(Self { directory, maps, holder, state, owner, epoch, other, pinned: program.id, next }))
    }

    /// The half of RULES and OWNER that is in force.
    pub(super) fn half(&self) -> u32 {
        half(self.owner.epoch_base, self.epoch)
    }

    /// Whether it is the program of this attachment that has this id, or was to be.
    pub(super) fn knows(&self, program_id: u32) -> bool {
        program_id == self.pinned || Some(program_id) == self.next
    }

    pub(super) fn record(&self) -> &Record {
        &self.owner.record
    }

    /// The rules in force.
    pub(super) fn book(&self) -> Result<Book> {
        Book::open(&self.maps, self.half())
    }

    /// Finishes or undoes what a change has left, after which there is one program, one flow table, one hook.
    pub(super) fn settle(&mut self) -> Result<()> {
        let Self { directory, owner, pinned, .. } = &*self;
        let place = directory.place;
        let by_filter = matches!(self.holder, Holder::Filter(_));
        if let Some(next) = self.next {
            let hook = clsact::Hook::new(place.ifindex, place.direction);
            for filter in hook.ours(|id| id == *pinned || id == next)? {
                if !by_filter || filter.program_id != Some(owner.program_id) {
                    hook.remove(&filter)?;
                }
            }
            let added = self.other.as_ref().is_some_and(|other| other.record.clsact_added);
            if added && !owner.record.clsact_added && self.state == State::Active {
                hook.remove_empty_qdisc()?;
            }
        }
        if self.state == State::Active {
            directory.mark(entry::FILTER, by_filter)?;
        }
        directory.unpin(&directory.next(entry::LINK))?;
        if self.next == Some(owner.program_id) {
            self.recover_charges()?;
            // The program last: as long as its name is the new one, those of maps may be, too.
            for name in REPLACEABLE {
                directory.promote(name)?;
            }
            directory.promote(entry::PROGRAM)?;
        } else {
            if self.next.is_some() {
                // It may have run beside this one, and have stamped flows with what it did not stay to limit.
                self.outdate_stamps()?;
            }
            let Self { directory, .. } = &*self;
            for name in REPLACEABLE {
                directory.unpin(&directory.next(name))?;
            }
            directory.unpin(&directory.next(entry::PROGRAM))?;
        }
        self.pinned = self.owner.program_id;
        self.next = None;
        self.other = None;
        Ok(())
    }

    /// Gives the configuration in force the next number that leaves it where it is: every flow is looked up anew.
    pub(super) fn outdate_stamps(&mut self) -> Result<()> {
        let epoch = self.epoch.wrapping_add(2);
        self.maps.control.update(0, &Control { epoch }).map_err(Error::io("renew the configuration's number"))?;
        self.epoch = epoch;
        Ok(())
    }

    /// Carries over what old maps, if there are any still, were charged and counted before the program that runs took its
    /// place: whoever was to do that has been killed.
    fn recover_charges(&self) -> Result<()> {
        let Self { directory, maps, owner, other, .. } = self;
        let Some(other) = other else { return Ok(()) };
        sys::wait_for_programs();
        let old = Maps::open(directory, false)?;
        let (limits, now) = (self.book()?.limits, clock::now()?);
        if directory.has(&directory.next(map::COUNTERS))? {
            Counters::new(maps, &owner.record.room)?.follow(&Counters::new(&old, &other.record.room)?);
        }
        if directory.has(&directory.next(map::STATES))? {
            let (old, new) = (Mapping::<RuleState>::new(&old.states)?, Mapping::<RuleState>::new(&maps.states)?);
            carry::recover_states(old.all(), new.all(), &limits, now);
        }
        let same_keys = same_keys(&settings(&other.record, 0), &settings(&owner.record, 0));
        if same_keys && directory.has(&directory.next(map::FLOWS))? {
            let (old, new) = (Mapping::<FlowSet>::new(&old.flows)?, Mapping::<FlowSet>::new(&maps.flows)?);
            carry::recover(old.all(), new.all(), &owner.record, &limits, now);
        }
        Ok(())
    }

    /// What the front shows; `name` is the device's present one.
    pub(super) fn found(&self, name: Option<&str>, netns: Option<&str>) -> Result<Found> {
        let record = self.record();
        let name = name.filter(|_| self.state == State::Active);
        Ok(Found {
            netns: netns.map(ToOwned::to_owned),
            dev: name.unwrap_or(&record.dev).to_owned(),
            ifindex: self.directory.place.ifindex,
            direction: self.directory.place.direction,
            hook: record.hook,
            state: self.state,
            config: record.config.clone(),
            flows: table::count(&Mapping::new(&self.maps.flows)?),
            untracked_packets: self.untracked_packets()?,
        })
    }

    /// The counters of each rule.
    pub(super) fn stats(&self, found: &Found) -> Result<Vec<RuleStats>> {
        let counted = self.counted()?;
        let stats = |(rule, slot): (&str, u32)| RuleStats {
            dev: found.dev.clone(),
            direction: found.direction,
            rule: rule.into(),
            counters: counted(slot),
        };
        Ok(self.names().map(stats).collect())
    }

    /// The rules and their slots, the default first.
    fn names(&self) -> impl Iterator<Item = (&str, u32)> {
        let Record { config, slots, .. } = self.record();
        let rules = config.rules.iter().zip(slots).map(|(rule, slot)| (rule.name.as_str(), slot.slot));
        [(rule::DEFAULT, DEFAULT_RULE)].into_iter().chain(rules)
    }

    /// The flows that have a bucket.
    pub(super) fn flows(&self, found: &Found) -> Result<Vec<Flow>> {
        let mapping = Mapping::new(&self.maps.flows)?;
        let record = self.record();
        let rules: HashMap<u32, &Rule> =
            record.slots.iter().zip(&record.config.rules).map(|(slot, rule)| (slot.slot, rule)).collect();
        let rows = table::rows(&mapping, record, &self.book()?, self.number(), clock::now()?);
        let flow = |row: table::Row| {
            let rule = rules.get(&row.slot);
            let limits = rule.map_or(&record.config.limits, |rule| &rule.limits);
            Flow {
                dev: found.dev.clone(),
                direction: found.direction,
                rule: rule.map_or(rule::DEFAULT, |rule| &rule.name).into(),
                per: rule.and_then(|rule| rule.per).unwrap_or(record.config.per),
                key: row.key,
                passed: row.passed,
                dropped: row.dropped,
                marked_packets: row.marked_packets,
                level_bytes: limits.rate.map(|_| row.level_bytes),
            }
        };
        Ok(rows.into_iter().map(flow).collect())
    }

    /// The name and the key of the rule in a slot.
    pub(super) fn rule_in(&self, slot: u32) -> (&str, Per) {
        let Record { config, slots, .. } = self.record();
        let rule = slots.iter().position(|held| held.slot == slot).and_then(|at| config.rules.get(at));
        rule.map_or((rule::DEFAULT, config.per), |rule| (&rule.name, rule.per.unwrap_or(config.per)))
    }

    /// The number of the configuration in force.
    pub(super) const fn number(&self) -> u64 {
        self.owner.epoch_base.wrapping_add(self.epoch)
    }

    /// What would happen to a packet now.
    pub(super) fn explain(&self, question: &Question) -> Result<Explanation> {
        explain::explain(self, question)
    }

    fn untracked_packets(&self) -> Result<u64> {
        let counted = self.counted()?;
        let untracked = |counts: RuleCounts| counts.reasons[Reason::Untracked as usize].packets;
        Ok(self.names().map(|(_, slot)| untracked(counted(slot))).fold(0, u64::wrapping_add))
    }

    /// What the rule in a slot has counted. Where a change was cut short after the switch, some of that is in the old map.
    fn counted(&self) -> Result<impl Fn(u32) -> RuleCounts + use<>> {
        let Self { directory, maps, owner, other, next, .. } = self;
        let counters = Counters::new(maps, &owner.record.room)?;
        let old = match other {
            Some(other) if *next == Some(owner.program_id) && directory.has(&directory.next(map::COUNTERS))? => {
                Some(Counters::new(&Maps::open(directory, false)?, &other.record.room)?)
            }
            _ => None,
        };
        Ok(move |slot| match &old {
            Some(old) => counters.sum_with(old, slot),
            None => counters.sum(slot),
        })
    }
}

/// The half that configuration number `epoch_base + epoch` is in.
pub(super) const fn half(epoch_base: u64, epoch: u64) -> u32 {
    (epoch_base.wrapping_add(epoch) & 1) as u32
}

/// The filter, the id of its program and whether it is there. Where two of ours are, the old one is in force until it is
/// taken away.
fn running_filter(directory: &Directory, pinned: u32, next: Option<u32>) -> Result<Option<(Holder, u32, State)>> {
    let place = directory.place;
    let hook = clsact::Hook::new(place.ifindex, place.direction);
    let mut filters = hook.ours(|id| id == pinned || Some(id) == next)?;
    filters.sort_by_key(|filter| filter.program_id != Some(pinned));
    if let Some((filter, id)) = filters.into_iter().find_map(|filter| Some((filter.clone(), filter.program_id?))) {
        return Ok(Some((Holder::Filter(Some(filter)), id, State::Active)));
    }
    if !hook.named()?.is_empty() {
        return Err(pin::unusable(directory.path(), "has a filter that runs somebody else's program"));
    }
    let vanished = directory.has(&directory.entry(entry::FILTER))?;
    Ok(vanished.then_some((Holder::Filter(None), pinned, State::Gone)))
}

/// Fails if a directory without program is not what an attach or detach that ended half-way leaves.
fn nothing_runs(directory: &Directory) -> Result<()> {
    for name in [entry::LINK, entry::FILTER] {
        if directory.has(&directory.entry(name))? {
            return Err(pin::unusable(directory.path(), &format!("has a `{name}` and no `{}`", entry::PROGRAM)));
        }
    }
    if clsact::Hook::new(directory.place.ifindex, directory.place.direction).named()?.is_empty() {
        return Ok(());
    }
    Err(pin::unusable(directory.path(), &format!("has a filter and no `{}`", entry::PROGRAM)))
}

/// The two owner records, as far as they make sense. One may never have been written, or be older than the change of
/// which the other half is.
struct Halves([Result<Owner, String>; 2]);

impl Halves {
    fn read(owners: &Map) -> Result<Self> {
        let half = |half| Ok::<_, Error>(Owner::decode(&look::<OwnerRecord>(owners, half)?));
        Ok(Self([half(0)?, half(1)?]))
    }

    /// The record in force, which belongs to the program that runs and lies in the half that its number says.
    fn take(&mut self, program_id: u32, epoch: u64) -> Result<Owner, String> {
        let mut why = "none was written for it".to_owned();
        for (at, half_owner) in (0..).zip(&mut self.0) {
            match half_owner {
                Ok(owner) if owner.program_id == program_id && half(owner.epoch_base, epoch) == at => {
                    return std::mem::replace(half_owner, Err("taken".into()));
                }
                Ok(_) => {}
                Err(error) => why.clone_from(error),
            }
        }
        Err(format!("has no record of the program that runs: {why}"))
    }

    /// The other record.
    fn rest(self) -> Option<Owner> {
        self.0.into_iter().find_map(Result::ok)
    }
}

fn look<T: Plain>(map: &Map, index: u32) -> Result<T> {
    map.lookup(index).map_err(Error::io("read a map"))
}

/// Writes rules and owner to a half that is not in force and that no program reads any more. Returns the limits.
pub(super) fn publish(
    maps: &Maps,
    half: u32,
    draft: Draft,
    old: &[RuleLimits],
    owner: &Owner,
) -> Result<Vec<RuleLimits>> {
    let limits = rulebook::write(maps, half, &owner.record, draft, old, clock::now()?)?;
    maps.owner.update(half, &owner.encode()?).map_err(Error::io("write the owner record"))?;
    Ok(limits)
}

/// Takes an attachment off its hook and removes its pins, in an order that leaves nothing running without pins. With
/// `qdisc`, the clsact qdisc too, if nobody has a filter on it. It takes damaged ones apart as well, as far as what is
/// there can be ours.
pub(super) fn dismantle(directory: &Directory, qdisc: bool) -> Result<()> {
    let place = directory.place;
    let programs = [directory.entry(entry::PROGRAM), directory.next(entry::PROGRAM)];
    let programs = programs.iter().filter_map(|path| intact(Program::open(path)).transpose());
    let ids = programs.map(|program| Ok(program?.id)).collect::<Result<Vec<_>>>()?;
    let path = directory.entry(entry::LINK);
    if let Some(link) = intact(Link::open(&path))? {
        // A link that runs something else has been put there by somebody: it loses this pin and no more.
        let ours = if ids.is_empty() {
            link.is_on(place.ifindex, place.direction)?
        } else {
            ids.contains(&link.program_id()?)
        };
        directory.unpin(&path)?;
        if ours {
            link.detach()?;
        }
    }
    directory.mark(entry::FILTER, false)?;
    remove_filters(place, |_| true)?;
    if qdisc {
        clsact::Hook::new(place.ifindex, place.direction).remove_empty_qdisc()?;
    }
    directory.remove()
}

/// Removes the filters at a place that are ours by handle and name and whose program is one of those `meant`.
pub(super) fn remove_filters(place: Place, meant: impl Fn(u32) -> bool) -> Result<()> {
    let hook = clsact::Hook::new(place.ifindex, place.direction);
    let mut filters = hook.named()?;
    filters.retain(|filter| filter.program_id.is_some_and(&meant));
    filters.iter().try_for_each(|filter| hook.remove(filter))
}

/// What cannot be made sense of counts as not there.
fn intact<T>(opened: Result<Option<T>>) -> Result<Option<T>> {
    match opened {
        Err(Error::State { .. }) => Ok(None),
        opened => opened,
    }
}

/// The record of a directory in which nothing runs, if it was written.
pub(super) fn leftover_record(directory: &Directory) -> Option<Record> {
    let maps = Maps::open(directory, false).ok()?;
    Halves::read(&maps.owner).ok()?.rest().map(|owner| owner.record)
}
