//! `shaper status`.

use super::session::Session;
use crate::{args::Status, error::Result, kernel::Host, plan::Which, render};

pub(super) fn run(args: &Status, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::All, args.dev.as_deref(), None)?;
    drop(host);
    let (json, verbose) = (session.json, session.verbose);
    session.print(|out| if json { render::json::status(&found, out) } else { render::status(&found, verbose, out) })
}
