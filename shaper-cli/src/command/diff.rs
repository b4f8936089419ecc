//! `shaper diff`.

use super::{
    file::{complain, understand},
    session::Session,
};
use crate::{
    args::Diff,
    config::Source,
    error::{Error, Result},
    kernel::Host,
    model::Outcome,
    net,
    plan::{self, Change},
    render,
};

pub(super) fn run(args: &Diff, session: &mut Session<'_>) -> Result<()> {
    let source = Source::read(&args.file)?;
    let configuration = understand(&source, session)?;
    let devices = net::devices(&session.namespace)?;
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = host.as_ref().map_or(Ok(Vec::new()), Host::list)?;
    let changes = plan::file(&source, &configuration, &devices, &found);
    let mut changes = changes.map_err(|diagnostics| complain(&diagnostics, session))?;
    let damage = |host: &Host, change: &Change| host.damaged(Some(&change.device.name), &[change.direction]).pop();
    // What limits there cannot be compared.
    let damaged = host.as_ref().and_then(|host| changes.iter().find_map(|change| damage(host, change)));
    drop(host);
    if let Some(damaged) = damaged {
        return Err(damaged.error());
    }
    changes.retain(|change| change.outcome() != Outcome::Unchanged);
    if changes.is_empty() {
        return session.print(|out| writeln!(out, "unchanged"));
    }
    let verbose = session.verbose;
    session.print(|out| changes.iter().try_for_each(|change| render::would_change(change, verbose, out)))?;
    Err(Error::Different)
}
