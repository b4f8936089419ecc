//! `shaper apply`.

use std::collections::HashSet;

use super::{
    file::{complain, understand},
    make::{Made, make, pretend, report},
    removal::Removal,
    session::Session,
};
use crate::{
    args::Apply,
    config::Source,
    error::{Error, Result},
    kernel::Host,
    model::{Direction, Found},
    net,
    plan::{self, Change},
};

pub(super) fn run(args: &Apply, session: &mut Session<'_>) -> Result<()> {
    let source = Source::read(&args.file)?;
    let configuration = understand(&source, session)?;
    let devices = net::devices(&session.namespace)?;
    let planned = |found: &[Found], session: &mut Session<'_>| {
        plan::file(&source, &configuration, &devices, found).map_err(|diagnostics| complain(&diagnostics, session))
    };
    // What is wrong whatever is attached is said before anything is touched.
    planned(&[], session)?;
    let verbose = session.verbose;
    if args.dry_run {
        let host = Host::read(&session.namespace)?;
        let found = host.as_ref().map_or(Ok(Vec::new()), Host::list)?;
        let changes = planned(&found, session)?;
        let removal = host.filter(|_| args.exclusive).map(|host| others(&host, found, &changes)).unwrap_or_default();
        pretend(&changes, session)?;
        return session.print(|out| removal.would_go(verbose, out));
    }
    let mut host = Host::change(&session.namespace)?;
    let done = carry_out(args, &mut host, planned, session);
    session.say_notices(Some(&host));
    drop(host);
    let (made, gone, failure) = done?;
    let nothing = made.is_empty() && gone.is_empty();
    report(&made, session)?;
    session.print(|out| if nothing { writeln!(out, "the file names no device") } else { gone.went(verbose, out) })?;
    failure.map_or(Ok(()), Err)
}

/// Makes the changes and, if they are made, takes away what is not in the file.
fn carry_out(
    args: &Apply,
    host: &mut Host,
    planned: impl FnOnce(&[Found], &mut Session<'_>) -> Result<Vec<Change>>,
    session: &mut Session<'_>,
) -> Result<(Vec<Made>, Removal, Option<Error>)> {
    let found = host.list()?;
    let changes = planned(&found, session)?;
    let removal = if args.exclusive { others(host, found, &changes) } else { Removal::default() };
    let made = make(changes, host, session)?;
    let (gone, failure) = removal.carry_out(host, session);
    Ok((made, gone, failure))
}

/// What is attached and not in the file.
fn others(host: &Host, mut found: Vec<Found>, changes: &[Change]) -> Removal {
    // By name: what was attached to a device of this name that has vanished goes when the change is made.
    let named: HashSet<(&str, Direction)> =
        changes.iter().map(|change| (change.device.name.as_str(), change.direction)).collect();
    found.retain(|found| !named.contains(&(found.dev.as_str(), found.direction)));
    let mut damaged = host.damaged(None, &Direction::ALL);
    damaged.retain(|damage| !named.contains(&(damage.dev.as_str(), damage.direction)));
    Removal { found, damaged }
}
