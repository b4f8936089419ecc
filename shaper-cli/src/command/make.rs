//! Carrying out changes, all of them or none.

use std::collections::HashSet;

use super::session::Session;
use crate::{
    error::Result,
    kernel::Host,
    model::{Found, Outcome, Rule},
    plan::{self, Change},
    render,
};

/// Warnings about rules that are said; more are counted.
const WARNINGS: usize = 20;

/// A change that was made: what became of what was there, and what is there now.
pub(super) type Made = (Change, Outcome, Found);

/// Makes the changes. If one fails, those before it are undone.
pub(super) fn make(changes: Vec<Change>, host: &mut Host, session: &mut Session<'_>) -> Result<Vec<Made>> {
    let mut made = Vec::new();
    for change in changes {
        match host.attach(&change.device, change.direction, &change.config) {
            Ok((outcome, found)) => made.push((change, outcome, found)),
            Err(error) => {
                undo(made, host, session);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// Says what was done.
pub(super) fn report(made: &[Made], session: &mut Session<'_>) -> Result<()> {
    warn(made.iter().map(|(change, ..)| change), session);
    let verbose = session.verbose;
    session.print(|out| {
        made.iter().try_for_each(|(change, outcome, found)| render::changed(change, *outcome, found, verbose, out))
    })
}

/// Says what the changes would do.
pub(super) fn pretend(changes: &[Change], session: &mut Session<'_>) -> Result<()> {
    warn(changes, session);
    let verbose = session.verbose;
    session.print(|out| changes.iter().try_for_each(|change| render::would_change(change, verbose, out)))
}

fn warn<'c>(changes: impl IntoIterator<Item = &'c Change> + Clone, session: &mut Session<'_>) {
    let of_attachments = changes.clone().into_iter().flat_map(|change| plan::warnings(&change.config.limits)).collect();
    say_once(of_attachments, session);
    warn_rules(changes, session);
}

/// Says what to know about rules that come or change.
pub(super) fn warn_rules<'c>(changes: impl IntoIterator<Item = &'c Change>, session: &mut Session<'_>) {
    let of_rule = |rule: &Rule| {
        let name = rule.name.clone();
        plan::warnings(&rule.limits).into_iter().map(move |warning| format!("rule {name}: {warning}"))
    };
    let mut warnings: Vec<String> = changes.into_iter().flat_map(plan::other_rules).flat_map(of_rule).collect();
    let more = warnings.len().saturating_sub(WARNINGS);
    warnings.truncate(WARNINGS);
    say_once(warnings, session);
    if more > 0 {
        session.say("warning", &format!("and {more} more about rules"));
    }
}

/// Two directions with the same limits have the same warnings.
fn say_once(mut warnings: Vec<String>, session: &mut Session<'_>) {
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    for warning in warnings {
        session.say("warning", &warning);
    }
}

/// Takes changes back, the last first. What cannot be taken back is said.
fn undo(made: Vec<Made>, host: &mut Host, session: &mut Session<'_>) {
    for (change, outcome, found) in made.into_iter().rev() {
        let undone = match (outcome, &change.before) {
            (Outcome::Unchanged, _) => Ok(()),
            (Outcome::Updated, Some(before)) => {
                host.attach(&change.device, change.direction, &before.config).map(|_| ())
            }
            _ => host.detach(&found),
        };
        if let Err(error) = undone {
            session.say("warning", &format!("{} {} stays changed: {error}", found.dev, found.direction));
        }
    }
}
