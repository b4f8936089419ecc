//! `shaper stats`.

use super::session::Session;
use crate::{
    args::Stats,
    error::{Error, Result},
    kernel::Host,
    near::nearest,
    plan::{self, Which},
    render,
};

/// Rules of each attachment that people are shown besides the default.
const BUSIEST: usize = 20;

pub(super) fn run(args: &Stats, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, args.dev.as_deref(), args.direction)?;
    let mut rules = Vec::new();
    let mut left_out = 0;
    // The name that is closest, if no rule has the one that is asked for.
    let mut near = None;
    for (host, found) in host.iter().flat_map(|host| found.iter().map(move |found| (host, found))) {
        let mut stats = host.stats(found)?;
        let all = stats.len();
        if let Some(name) = &args.rule {
            near = near.or_else(|| nearest(name, stats.iter().map(|stats| stats.rule.as_str())).map(str::to_owned));
            stats.retain(|stats| stats.rule == *name);
        } else if !args.all && !session.json {
            plan::busiest(&mut stats, BUSIEST);
            left_out += all - stats.len();
        }
        rules.extend(stats);
    }
    drop(host);
    if let Some(name) = args.rule.as_ref().filter(|_| rules.is_empty() && !found.is_empty()) {
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`shaper rule list DEV` lists the rules of a device".to_owned(),
        };
        return Err(Error::usage("--rule", format!("there is no rule `{name}`"), hint));
    }
    let (json, verbose) = (session.json, session.verbose);
    session.print(
        |out| {
            if json { render::json::stats(&rules, out) } else { render::stats(&rules, left_out, verbose, out) }
        },
    )
}
