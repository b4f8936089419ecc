//! `shaper set`.

use super::{
    make::{make, pretend, report},
    session::Session,
};
use crate::{
    args::Set,
    error::Result,
    kernel::Host,
    net,
    plan::{self, Change, Which},
};

pub(super) fn run(args: &Set, session: &mut Session<'_>) -> Result<()> {
    if args.dry_run {
        let host = Host::read(&session.namespace)?;
        let changes = changes(args, host.as_ref(), session)?;
        drop(host);
        return pretend(&changes, session);
    }
    let mut host = session.existing()?;
    let changes = changes(args, host.as_ref(), session);
    let done = match &mut host {
        Some(host) => changes.and_then(|changes| make(changes, host, session)),
        // There is nothing to change, as `changes` says.
        None => changes.map(|_| Vec::new()),
    };
    session.say_notices(host.as_ref());
    drop(host);
    report(&done?, session)
}

fn changes(args: &Set, host: Option<&Host>, session: &Session<'_>) -> Result<Vec<Change>> {
    let found = session.select(host, Which::Active, Some(&args.dev), args.direction)?;
    let device = net::device(&session.namespace, &args.dev)?;
    found.iter().map(|found| plan::set(args, &device, found)).collect()
}
