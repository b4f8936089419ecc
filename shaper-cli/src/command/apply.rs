//! `shaper apply`.

use std::{collections::HashSet, io};

use super::{
    file::{complain, understand},
    make::{Made, make, pretend, report},
    session::Session,
};
use crate::{
    args::Apply,
    config::Source,
    error::{Error, Result},
    kernel::{Damage, Host},
    model::{Direction, Found},
    net,
    plan::{self, Change},
    render,
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
        let others = host.filter(|_| args.exclusive).map(|host| Others::of(&host, found, &changes)).unwrap_or_default();
        pretend(&changes, session)?;
        return session.print(|out| others.would_go(verbose, out));
    }
    let mut host = Host::change(&session.namespace)?;
    let done = carry_out(args, &mut host, planned, session);
    session.say_notices(Some(&host));
    drop(host);
    let (made, others, failure) = done?;
    let nothing = made.is_empty() && others.is_empty();
    report(&made, session)?;
    session.print(|out| if nothing { writeln!(out, "the file names no device") } else { others.went(verbose, out) })?;
    failure.map_or(Ok(()), Err)
}

/// Makes the changes and, if they are made, takes away what is not in the file.
fn carry_out(
    args: &Apply,
    host: &mut Host,
    planned: impl FnOnce(&[Found], &mut Session<'_>) -> Result<Vec<Change>>,
    session: &mut Session<'_>,
) -> Result<(Vec<Made>, Others, Option<Error>)> {
    let found = host.list()?;
    let changes = planned(&found, session)?;
    let others = if args.exclusive { Others::of(host, found, &changes) } else { Others::default() };
    let made = make(changes, host, session)?;
    let (others, failure) = others.detach(host, session);
    Ok((made, others, failure))
}

/// What is attached and not in the file.
#[derive(Default)]
struct Others {
    found: Vec<Found>,
    damaged: Vec<Damage>,
}

impl Others {
    fn of(host: &Host, mut found: Vec<Found>, changes: &[Change]) -> Self {
        // By name: what was attached to a device of this name that has vanished goes when the change is made.
        let named: HashSet<(&str, Direction)> =
            changes.iter().map(|change| (change.device.name.as_str(), change.direction)).collect();
        found.retain(|found| !named.contains(&(found.dev.as_str(), found.direction)));
        let mut damaged = host.damaged(None, &Direction::ALL);
        damaged.retain(|damage| !named.contains(&(damage.dev.as_str(), damage.direction)));
        Self { found, damaged }
    }

    fn is_empty(&self) -> bool {
        self.found.is_empty() && self.damaged.is_empty()
    }

    /// Detaches them. Returns those that are gone now, and the failure if one resists, which does not keep the others.
    fn detach(self, host: &mut Host, session: &mut Session<'_>) -> (Self, Option<Error>) {
        let mut gone = Self::default();
        let mut failures = Vec::new();
        for found in self.found {
            match host.detach(&found) {
                Ok(()) => gone.found.push(found),
                Err(error) => failures.push(error),
            }
        }
        for damage in self.damaged {
            match host.clear(&damage) {
                Ok(()) => gone.damaged.push(damage),
                Err(error) => failures.push(error),
            }
        }
        let last = failures.pop();
        for earlier in failures {
            session.say("error", &earlier.to_string());
        }
        (gone, last)
    }

    fn would_go(&self, verbose: bool, out: &mut dyn io::Write) -> io::Result<()> {
        self.found.iter().try_for_each(|found| render::would_detach(found, verbose, out))?;
        self.damaged.iter().try_for_each(|Damage { dev, direction, .. }| {
            writeln!(out, "would remove what is left of {dev} {direction}")
        })
    }

    fn went(&self, verbose: bool, out: &mut dyn io::Write) -> io::Result<()> {
        self.found.iter().try_for_each(|found| render::detached(found, verbose, out))?;
        self.damaged
            .iter()
            .try_for_each(|Damage { dev, direction, .. }| writeln!(out, "removed what was left of {dev} {direction}"))
    }
}
