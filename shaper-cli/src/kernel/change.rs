//! Changes of an attachment that is running. Each is prepared beside what is in force and takes effect in one step.
//!
//! New limits and rules go to the other half of the maps and one word makes that half the one that counts. What is
//! compiled into the program, and maps that are too small, need another program, which replaces the old one on its link or
//! filter. A table of another size is filled first ([`super::carry`]). Only a change of hook or order has to run both programs for a moment, since the kernel
//! cannot swap them in one step: packets are then charged twice, never not at all.

use std::sync::atomic::{Ordering, fence};

use shaper_common::abi::{Control, Keying, RuleState, map};

use super::{
    attachment::{Attachment, Holder, half, publish},
    carry::{self, Carry},
    clock,
    counters::Counters,
    create::Request,
    link::Link,
    load::{Program, Source},
    mapping::Mapping,
    maps::Maps,
    pin,
    rulebook::{self, Draft},
    settings::{same_keys, settings},
    sys,
};
use crate::{
    error::{Error, Result},
    model::Hook,
    state::{Owner, Record, entry},
};

/// Makes a running attachment do what is asked; adds to `notices` what could not be kept.
pub(super) fn change(
    mut attachment: Attachment,
    request: &Request<'_>,
    notices: &mut Vec<String>,
) -> Result<Attachment> {
    let old = attachment.record().clone();
    let hook = request.hook()?;
    let lacks_qdisc = hook == Hook::Clsact && old.hook != hook && request.clsact().lacks_qdisc()?;
    let mut record = request.record(hook, lacks_qdisc || old.clsact_added, old.secret);
    let draft = rulebook::draft(&mut record, Some(&old))?;
    let same_program = settings(&record, 0) == settings(&old, 0) && record.object == old.object;
    let same_place = record.hook == old.hook && record.config.order == old.config.order;
    if same_program && same_place && record.room == old.room {
        switch_limits(&mut attachment, record, draft)?;
        return Ok(attachment);
    }
    let directory = attachment.directory.clone();
    let replaced = replace(attachment, record, draft, request, lacks_qdisc, notices);
    let mut attachment = Attachment::open(directory.clone())?
        .ok_or_else(|| pin::unusable(directory.path(), "vanished while it was changed"))?;
    attachment.settle()?;
    replaced?;
    if old.keying == Keying::Single && attachment.record().keying != Keying::Single {
        // A packet that was on its way through the old program knows no stamps: it may have taken a way for its flow and
        // left it stamped with the rule of another one.
        sys::wait_for_programs();
        attachment.outdate_stamps()?;
    }
    Ok(attachment)
}

/// Puts limits and rules in force that need no other program.
fn switch_limits(attachment: &mut Attachment, record: Record, draft: Draft) -> Result<()> {
    let old = attachment.book()?.limits;
    let owner = Owner { record, ..attachment.owner.clone() };
    let epoch = attachment.epoch.wrapping_add(1);
    sys::wait_for_programs();
    publish(&attachment.maps, half(owner.epoch_base, epoch), draft, &old, &owner)?;
    // What was written into the maps is there before the number says so.
    fence(Ordering::SeqCst);
    attachment.maps.control.update(0, &Control { epoch }).map_err(Error::io("switch the configuration"))?;
    attachment.owner = owner;
    attachment.epoch = epoch;
    Ok(())
}

/// Maps that cannot stay as they are, because they hold other keys or are too small.
fn outgrown(old: &Record, new: &Record) -> Vec<&'static str> {
    let (of_old, of_new) = (settings(old, 0), settings(new, 0));
    let flows = !same_keys(&of_old, &of_new) || of_old.set_mask != of_new.set_mask;
    let rules = new.room.rules != old.room.rules;
    [
        (flows, map::FLOWS),
        (rules, map::RULES),
        (rules, map::STATES),
        (rules, map::COUNTERS),
        (new.room.boundaries != old.room.boundaries, map::BOUNDARIES),
        (new.room.links != old.room.links, map::LINKS),
        (new.room.text != old.room.text, map::TEXT),
    ]
    .into_iter()
    .filter_map(|(outgrown, name)| outgrown.then_some(name))
    .collect()
}

/// Puts another program in force. Whether it comes to that is for [`Attachment::settle`] to see.
fn replace(
    attachment: Attachment,
    record: Record,
    draft: Draft,
    request: &Request<'_>,
    lacks_qdisc: bool,
    notices: &mut Vec<String>,
) -> Result<()> {
    let directory = attachment.directory.clone();
    let epoch_base = attachment.owner.epoch_base.wrapping_add(1);
    let new = settings(&record, epoch_base);
    let same_keys = same_keys(&settings(attachment.record(), 0), &new);
    let next = outgrown(attachment.record(), &record);

    let source = Source { directory: &directory, next: &next, room: &record.room, run: request.run };
    let program = Program::load(request.direction, new, &source)?;
    pin::create(&program, &directory.next(entry::PROGRAM))?;
    let maps = Maps::open(&directory, true)?;
    let old = attachment.book()?.limits;
    // What a rule that is gone has left there would be carried over to the new one in its place.
    rulebook::empty_new_slots(&attachment.maps, &attachment.record().room, &record, &old)?;
    sys::wait_for_programs();
    let at = half(epoch_base, attachment.epoch);
    let owner = Owner { program_id: program.id, epoch_base, record };
    let limits = publish(&maps, at, draft, &old, &owner)?;
    // Last of all: what is charged between copy and switch passes once more, until it is carried over.
    let flows = if next.contains(&map::FLOWS) && same_keys {
        let (from, to) = (Mapping::new(&attachment.maps.flows)?, Mapping::new(&maps.flows)?);
        Some(Carry::start(from, to, owner.record.clone(), &old, clock::now()?))
    } else {
        None
    };
    let rules = if next.contains(&map::STATES) {
        let from = CarryRules {
            states: Mapping::new(&attachment.maps.states)?,
            counters: Counters::new(&attachment.maps, &attachment.record().room)?,
        };
        let to =
            CarryRules { states: Mapping::new(&maps.states)?, counters: Counters::new(&maps, &owner.record.room)? };
        Some((carry::start_states(from.states.all(), to.states.all()), from, to))
    } else {
        None
    };
    let now = clock::now()?;
    switch_program(attachment, &program, owner.record.hook, request, lacks_qdisc)?;

    if !same_keys {
        notices.push("buckets have other keys now: every one starts full".into());
    }
    if flows.is_some() || rules.is_some() {
        sys::wait_for_programs();
    }
    if let Some((seen, from, to)) = rules {
        carry::finish_states(&seen, from.states.all(), to.states.all(), &limits, now);
        to.counters.follow(&from.counters);
    }
    if let Some(flows) = flows {
        let homeless = flows.finish(&limits, now);
        if homeless > 0 {
            notices.push(format!("the smaller flow table has no room for {homeless} flows with used buckets"));
        }
    }
    // With old maps under their names still, what they hold would be carried over once more.
    next.into_iter().try_for_each(|name| directory.promote(name))
}

/// What rules keep besides their limits.
struct CarryRules {
    states: Mapping<RuleState>,
    counters: Counters,
}

/// The one step of [`replace`].
fn switch_program(
    attachment: Attachment,
    program: &Program,
    hook: Hook,
    request: &Request<'_>,
    lacks_qdisc: bool,
) -> Result<()> {
    let Attachment { directory, holder, owner, .. } = attachment;
    let Request { device, direction, config, .. } = *request;
    let same_order = owner.record.config.order == config.order;
    let clsact = request.clsact();
    match (holder, hook) {
        (Holder::Link(link), Hook::Tcx) if same_order => link.update(program),
        (Holder::Link(old), Hook::Tcx) => {
            let link = Link::create(program, device.ifindex, direction, config.order)?;
            link.pin(&directory.next(entry::LINK))?;
            // With the last name of the old link the new one is the attachment's.
            directory.promote(entry::LINK)?;
            old.detach()
        }
        (Holder::Link(old), Hook::Clsact) => {
            if lacks_qdisc {
                clsact.add_qdisc()?;
            }
            clsact.add(program, config.order)?;
            directory.mark(entry::FILTER, true)?;
            directory.unpin(&directory.entry(entry::LINK))?;
            old.detach()
        }
        (Holder::Filter(Some(filter)), Hook::Clsact) if same_order => clsact.replace(&filter, program),
        (Holder::Filter(Some(filter)), Hook::Clsact) => {
            clsact.add(program, config.order)?;
            clsact.remove(&filter)
        }
        (Holder::Filter(Some(filter)), Hook::Tcx) => {
            let link = Link::create(program, device.ifindex, direction, config.order)?;
            link.pin(&directory.entry(entry::LINK))?;
            clsact.remove(&filter)
        }
        (Holder::Filter(None), _) => Err(Error::Gone { dev: device.name.clone(), direction }),
    }
}
