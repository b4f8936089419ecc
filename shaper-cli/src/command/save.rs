//! `shaper save`.

use super::session::Session;
use crate::{args::Save, config, error::Result, kernel::Host, model::State, plan::Which};

pub(super) fn run(args: &Save, session: &mut Session<'_>) -> Result<()> {
    let host = Host::read(&session.namespace)?;
    session.say_notices(host.as_ref());
    let found = session.select(host.as_ref(), Which::Active, args.dev.as_deref(), None)?;
    let all = host.as_ref().map_or(Ok(Vec::new()), Host::list)?;
    drop(host);
    for gone in all.iter().filter(|found| found.state == State::Gone) {
        if args.dev.as_ref().is_none_or(|dev| *dev == gone.dev) {
            session.say("note", &format!("{} {} is gone and left out", gone.dev, gone.direction));
        }
    }
    let text = config::write(&found);
    session.print(|out| out.write_all(text.as_bytes()))
}
