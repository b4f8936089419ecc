//! `shaper explain`.

use super::session::Session;
use crate::{
    args::Explain,
    error::Result,
    kernel::Host,
    plan::{self, Which},
    render,
};

pub(super) fn run(args: &Explain, session: &mut Session<'_>) -> Result<()> {
    let question = plan::packet(args)?;
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, Some(&args.dev), args.direction)?;
    let asked = host.iter().flat_map(|host| found.iter().map(move |found| (host, found)));
    let answers = asked.map(|(host, found)| Ok((found, host.explain(found, &question)?))).collect::<Result<Vec<_>>>();
    drop(host);
    let answers = answers?;
    let json = session.json;
    session.print(|out| {
        if json { render::json::explain(&question, &answers, out) } else { render::explain(&question, &answers, out) }
    })
}
