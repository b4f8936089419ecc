//! `shaper stats`.

use super::session::Session;
use crate::{args::Stats, error::Result, kernel::Host, plan::Which, render};

pub(super) fn run(args: &Stats, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, args.dev.as_deref(), args.direction)?;
    let mut rules = Vec::new();
    for (host, found) in host.iter().flat_map(|host| found.iter().map(move |found| (host, found))) {
        rules.extend(host.stats(found)?);
    }
    drop(host);
    let (json, verbose) = (session.json, session.verbose);
    session.print(|out| if json { render::json::stats(&rules, out) } else { render::stats(&rules, verbose, out) })
}
