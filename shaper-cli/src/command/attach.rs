//! `shaper attach`.

use super::{
    make::{make, pretend, report},
    session::Session,
};
use crate::{args::Attach, error::Result, kernel::Host, net, plan};

pub(super) fn run(args: &Attach, session: &mut Session<'_>) -> Result<()> {
    let device = net::device(&session.namespace, &args.dev)?;
    // What is wrong whatever is attached is said before anything is touched.
    plan::attach(args, &device, &[])?;
    if args.dry_run {
        let found = Host::read(&session.namespace)?.map_or(Ok(Vec::new()), |host| host.list())?;
        return pretend(&plan::attach(args, &device, &found)?, session);
    }
    let mut host = Host::change(&session.namespace)?;
    let found = host.list();
    let done = found.and_then(|found| make(plan::attach(args, &device, &found)?, &mut host, session));
    session.say_notices(Some(&host));
    drop(host);
    report(&done?, session)
}
