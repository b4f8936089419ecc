//! `shaper detach`.

use super::{removal::Removal, session::Session};
use crate::{
    args::{Detach, DirectionChoice},
    error::Result,
    kernel::Host,
    model::Direction,
    plan::Which,
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
    let removal = Removal { found, damaged };
    let verbose = session.verbose;
    let (Some(mut host), false) = (host, removal.is_empty()) else {
        return session.print(|out| writeln!(out, "nothing is attached"));
    };
    if args.dry_run {
        drop(host);
        return session.print(|out| removal.would_go(verbose, out));
    }
    let (gone, failure) = removal.carry_out(&mut host, session);
    session.say_notices(Some(&host));
    drop(host);
    session.print(|out| gone.went(verbose, out))?;
    failure.map_or(Ok(()), Err)
}
