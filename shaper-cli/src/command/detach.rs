//! `shaper detach`.

use super::session::Session;
use crate::{args::Detach, error::Result, kernel::Host, plan::Which, render};

pub(super) fn run(args: &Detach, session: &mut Session<'_>) -> Result<()> {
    let mut host = if args.dry_run { Host::read(&session.namespace)? } else { session.existing()? };
    // `--all` comes without a device, and then all are meant.
    let found = session.select(host.as_ref(), Which::All, args.dev.as_deref(), args.direction)?;
    let verbose = session.verbose;
    let (Some(host), false) = (&mut host, found.is_empty()) else {
        return session.print(|out| writeln!(out, "nothing is attached"));
    };
    if args.dry_run {
        return session.print(|out| found.iter().try_for_each(|found| render::would_detach(found, verbose, out)));
    }
    // One that resists does not keep the others.
    let mut detached = Vec::new();
    let mut failure = None;
    for found in &found {
        match host.detach(found) {
            Ok(()) => detached.push(found),
            Err(error) => {
                if let Some(earlier) = failure.replace(error) {
                    session.say("error", &earlier.to_string());
                }
            }
        }
    }
    session.say_notices(Some(host));
    session.print(|out| detached.iter().try_for_each(|found| render::detached(found, verbose, out)))?;
    failure.map_or(Ok(()), Err)
}
