//! `shaper flows`.

use super::session::Session;
use crate::{
    args::Flows,
    error::Result,
    kernel::Host,
    model::Flow,
    plan::{self, Which},
    render,
};

/// Flows of each attachment that people are shown: a screen.
const TOP: usize = 20;

pub(super) fn run(args: &Flows, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, args.dev.as_deref(), args.direction)?;
    let most = args.top.or((!session.json).then_some(TOP));
    let mut lists = Vec::new();
    for (host, found) in host.iter().flat_map(|host| found.iter().map(move |found| (host, found))) {
        let mut flows = host.flows(found)?;
        let tracked = flows.len();
        plan::top(&mut flows, args.sort, most);
        lists.push((found, flows, tracked));
    }
    drop(host);
    let (sort, verbose) = (args.sort, session.verbose);
    if session.json {
        let flows: Vec<Flow> = lists.into_iter().flat_map(|(_, flows, _)| flows).collect();
        return session.print(|out| render::json::flows(&flows, out));
    }
    session.print(|out| {
        if lists.is_empty() {
            return writeln!(out, "nothing is attached");
        }
        for (n, (found, flows, tracked)) in lists.iter().enumerate() {
            if n > 0 {
                writeln!(out)?;
            }
            render::flows(found, flows, *tracked, sort, verbose, out)?;
        }
        Ok(())
    })
}
