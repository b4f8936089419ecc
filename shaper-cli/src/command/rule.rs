//! `shaper rule`.

use super::{
    make::{make, warn_rules},
    session::Session,
};
use crate::{
    args::{DirectionChoice, Rule, RuleCommand, RuleList},
    error::Result,
    kernel::Host,
    model::{Device, Found},
    net,
    plan::{self, RuleChange, Which},
    render,
};

/// Where rules are changed.
struct Place<'a> {
    dev: &'a str,
    direction: Option<DirectionChoice>,
}

pub(super) fn run(args: &Rule, session: &mut Session<'_>) -> Result<()> {
    let (words, place, dry_run) = match &args.command {
        RuleCommand::Add(args) | RuleCommand::Replace(args) => {
            (&args.words, Place { dev: &args.dev, direction: args.direction }, args.dry_run)
        }
        RuleCommand::Del(args) => (&args.words, Place { dev: &args.dev, direction: args.direction }, args.dry_run),
        RuleCommand::List(args) => return list(args, session),
    };
    // What is wrong whatever is attached is said before anything is touched.
    plan::check_rule(words)?;
    let planned = |device: &Device, found: &Found| match &args.command {
        RuleCommand::Add(args) => plan::add(args, device, found).map(Some),
        RuleCommand::Replace(args) => plan::replace(args, device, found).map(Some),
        RuleCommand::Del(args) => plan::del(args, device, found).map(Some),
        RuleCommand::List(_) => Ok(None),
    };
    if dry_run {
        let host = Host::read(&session.namespace)?;
        let changes = changes(&place, planned, host.as_ref(), session)?;
        drop(host);
        warn_rules(changes.iter().map(|edited| &edited.change), session);
        return session.print(|out| changes.iter().try_for_each(|change| render::would_edit(change, out)));
    }
    edit(&place, planned, session)
}

fn edit(
    place: &Place<'_>,
    planned: impl Fn(&Device, &Found) -> Result<Option<RuleChange>>,
    session: &mut Session<'_>,
) -> Result<()> {
    let mut host = session.existing()?;
    let changes = changes(place, planned, host.as_ref(), session);
    let done = match &mut host {
        Some(host) => changes.and_then(|changes| {
            let (changes, edits): (Vec<_>, Vec<_>) =
                changes.into_iter().map(|RuleChange { change, edit }| (change, edit)).unzip();
            Ok((make(changes, host, session)?, edits))
        }),
        // There is nothing to change, as `changes` says.
        None => changes.map(|_| Default::default()),
    };
    session.say_notices(host.as_ref());
    drop(host);
    let (made, edits) = done?;
    warn_rules(made.iter().map(|(change, ..)| change), session);
    session.print(|out| {
        made.iter()
            .zip(&edits)
            .try_for_each(|((change, outcome, found), edit)| render::edited(change, edit, *outcome, found, out))
    })
}

fn changes(
    place: &Place<'_>,
    planned: impl Fn(&Device, &Found) -> Result<Option<RuleChange>>,
    host: Option<&Host>,
    session: &Session<'_>,
) -> Result<Vec<RuleChange>> {
    let found = session.select(host, Which::Active, Some(place.dev), place.direction)?;
    let device = net::device(&session.namespace, place.dev)?;
    found.iter().filter_map(|found| planned(&device, found).transpose()).collect()
}

fn list(args: &RuleList, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, Some(&args.dev), args.direction)?;
    drop(host);
    let (json, verbose) = (session.json, session.verbose);
    session.print(|out| if json { render::json::rules(&found, out) } else { render::rules(&found, verbose, out) })
}
