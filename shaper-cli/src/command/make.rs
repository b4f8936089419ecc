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

/// Makes the changes and says what was done. If one fails, those before it are undone.
pub(super) fn make(changes: &[Change], host: &mut Host, session: &mut Session<'_>) -> Result<()> {
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
    warn(changes, session);
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

fn warn(changes: &[Change], session: &mut Session<'_>) {
    let mut warnings: Vec<String> = changes.iter().flat_map(|change| plan::warnings(&change.config.limits)).collect();
    // Two directions with the same limits have the same warnings.
    let mut said = HashSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    for warning in warnings {
        session.say("warning", &warning);
    }
}

/// Takes changes back, the last first. What cannot be taken back is said.
fn undo(made: Vec<(&Change, Outcome, Found)>, host: &mut Host, session: &mut Session<'_>) {
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
