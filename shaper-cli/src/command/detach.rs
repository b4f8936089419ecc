//! `shaper detach`.

use super::session::Session;
use crate::{
    args::{Detach, DirectionChoice},
    error::Result,
    kernel::Host,
    model::Direction,
    plan::Which,
    render,
};

pub(super) fn run(args: &Detach, session: &mut Session<'_>) -> Result<()> {
    let host = if args.dry_run { Host::read(&session.namespace)? } else { session.existing()? };
    // `--all` comes without a device, and then all are meant.
    let directions = args.direction.map_or(Direction::ALL.as_slice(), DirectionChoice::directions);
    let damaged = host.as_ref().map_or_else(Vec::new, |host| host.damaged(args.dev.as_deref(), directions));
    let found = match &host {
        // What is damaged goes too, and nothing has to be sound beside it.
        Some(host) if !damaged.is_empty() => {
            let mut found = host.list()?;
            let dev = args.dev.as_ref();
            found.retain(|found| dev.is_none_or(|dev| *dev == found.dev) && directions.contains(&found.direction));
            found
        }
        host => session.select(host.as_ref(), Which::All, args.dev.as_deref(), args.direction)?,
    };
    let verbose = session.verbose;
    let (Some(mut host), false) = (host, found.is_empty() && damaged.is_empty()) else {
        return session.print(|out| writeln!(out, "nothing is attached"));
    };
    if args.dry_run {
        drop(host);
        return session.print(|out| {
            found.iter().try_for_each(|found| render::would_detach(found, verbose, out))?;
            let mut damaged = damaged.iter().map(|damage| (&damage.dev, damage.direction));
            damaged.try_for_each(|(dev, way)| writeln!(out, "would remove what is left of {dev} {way}"))
        });
    }
    // One that resists does not keep the others.
    let mut detached = Vec::new();
    let mut cleared = Vec::new();
    let mut failures = Vec::new();
    for found in &found {
        match host.detach(found) {
            Ok(()) => detached.push(found),
            Err(error) => failures.push(error),
        }
    }
    for damage in &damaged {
        match host.clear(damage) {
            Ok(()) => cleared.push(damage),
            Err(error) => failures.push(error),
        }
    }
    let failure = failures.pop();
    for earlier in failures {
        session.say("error", &earlier.to_string());
    }
    session.say_notices(Some(&host));
    drop(host);
    session.print(|out| {
        detached.iter().try_for_each(|found| render::detached(found, verbose, out))?;
        let mut damaged = cleared.iter().map(|damage| (&damage.dev, damage.direction));
        damaged.try_for_each(|(dev, way)| writeln!(out, "removed what was left of {dev} {way}"))
    })?;
    failure.map_or(Ok(()), Err)
}
