//! Carrying out changes, all of them or none.

use std::collections::HashSet;

use super::session::Session;
use crate::{
    error::Result,
    kernel::Host,
    model::{Found, Outcome},
    plan::{self, Change},
    render,
};

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

fn warn<'c>(changes: impl IntoIterator<Item = &'c Change>, session: &mut Session<'_>) {
    let mut warnings: Vec<String> =
        changes.into_iter().flat_map(|change| plan::warnings(&change.config.limits)).collect();
    // Two directions with the same limits have the same warnings.
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
