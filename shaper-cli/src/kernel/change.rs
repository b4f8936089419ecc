//! Changes of an attachment that is running. Each is prepared beside what is in force and takes effect in one step.
//!
//! New limits go to the other half of RULES and one word makes that half the one that counts. What is compiled into the
//! program needs another program, which replaces the old one on its link or filter. A table of another size is filled
//! first ([`super::carry`]). Only a change of hook or order has to run both programs for a moment, since the kernel
//! cannot swap them in one step: packets are then charged twice, never not at all.

use shaper_common::abi::{Control, RuleLimits, map};

use super::{
    attachment::{Attachment, Holder, half, publish},
    carry::Carry,
    clock,
    create::Request,
    limits,
    link::Link,
    load::{Program, Source},
    mapping::Mapping,
    maps::Maps,
    pin,
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
    let record = request.record(hook, lacks_qdisc || old.clsact_added, old.secret);
    let same_program = settings(&record, 0) == settings(&old, 0) && record.object == old.object;
    let same_place = record.hook == old.hook && record.config.order == old.config.order;
    if same_program && same_place {
        switch_limits(&mut attachment, record)?;
        return Ok(attachment);
    }
    let directory = attachment.directory.clone();
    let replaced = replace(attachment, record, request, lacks_qdisc, notices);
    let mut attachment = Attachment::open(directory.clone())?
        .ok_or_else(|| pin::unusable(directory.path(), "vanished while it was changed"))?;
    attachment.settle()?;
    replaced?;
    Ok(attachment)
}

/// Puts limits in force that need no other program.
fn switch_limits(attachment: &mut Attachment, record: Record) -> Result<()> {
    let limits = next_limits(attachment, &record)?;
    let owner = Owner { record, ..attachment.owner.clone() };
    let epoch = attachment.epoch.wrapping_add(1);
    sys::wait_for_programs();
    publish(&attachment.maps, half(owner.epoch_base, epoch), &limits, &owner)?;
    attachment.maps.control.update(0, &Control { epoch }).map_err(Error::io("switch the configuration"))?;
    attachment.owner = owner;
    attachment.epoch = epoch;
    Ok(())
}

/// The limits to put in force now: every bucket keeps its level.
fn next_limits(attachment: &Attachment, record: &Record) -> Result<RuleLimits> {
    Ok(limits::next(&attachment.limits()?, &record.config.limits, clock::now()?))
}

/// Puts another program in force. Whether it comes to that is for [`Attachment::settle`] to see.
fn replace(
    attachment: Attachment,
    record: Record,
    request: &Request<'_>,
    lacks_qdisc: bool,
    notices: &mut Vec<String>,
) -> Result<()> {
    let directory = attachment.directory.clone();
    let old = settings(attachment.record(), 0);
    let epoch_base = attachment.owner.epoch_base.wrapping_add(1);
    let new = settings(&record, epoch_base);
    let same_keys = same_keys(&old, &new);
    let next_flows = !same_keys || old.set_mask != new.set_mask;

    let program =
        Program::load(request.direction, new, &Source { directory: &directory, next_flows, run: request.run })?;
    pin::create(&program, &directory.next(entry::PROGRAM))?;
    let maps = Maps::open(&directory, next_flows)?;
    let carry = if next_flows && same_keys {
        let (from, to) = (Mapping::new(&attachment.maps.flows)?, Mapping::new(&maps.flows)?);
        Some(Carry::start(from, to, &record.secret, &attachment.limits()?, clock::now()?))
    } else {
        None
    };

    sys::wait_for_programs();
    let limits = next_limits(&attachment, &record)?;
    let at = half(epoch_base, attachment.epoch);
    publish(&maps, at, &limits, &Owner { program_id: program.id, epoch_base, record: record.clone() })?;
    let now = clock::now()?;
    switch_program(attachment, &program, record.hook, request, lacks_qdisc)?;

    if !same_keys {
        notices.push("buckets have other keys now: every one starts full".into());
    }
    if let Some(carry) = carry {
        sys::wait_for_programs();
        let homeless = carry.finish(&limits, now);
        if homeless > 0 {
            notices.push(format!("the smaller flow table has no room for {homeless} flows with used buckets"));
        }
    }
    // With the old table under its name still, the charges would be looked for once more.
    if next_flows { directory.promote(map::FLOWS) } else { Ok(()) }
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
