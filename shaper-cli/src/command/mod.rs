//! Commands: each asks what is there, has a plan made, carries it out and says so.

mod apply;
mod attach;
mod check;
mod detach;
mod diff;
mod file;
mod flows;
mod make;
mod save;
mod session;
mod set;
mod stats;
mod status;

use std::io::Write;

use self::session::Session;
use crate::{
    args::{Cli, Command},
    error::{Error, Result},
};

/// Carries out a command line.
///
/// # Errors
///
/// If it cannot be done, or `out` fails.
pub fn run(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<()> {
    let Cli { global, command } = cli;
    if global.json
        && matches!(
            command,
            Command::Attach(_)
                | Command::Set(_)
                | Command::Detach(_)
                | Command::Apply(_)
                | Command::Check(_)
                | Command::Diff(_)
                | Command::Save(_)
        )
    {
        return Err(Error::usage(
            "--json",
            "only status, stats and flows print JSON",
            "leave it out; `shaper --json status` shows the result of a change",
        ));
    }
    let mut session = Session::enter(global, out, err)?;
    let done = match command {
        Command::Attach(args) => attach::run(args, &mut session),
        Command::Set(args) => set::run(args, &mut session),
        Command::Detach(args) => detach::run(args, &mut session),
        Command::Apply(args) => apply::run(args, &mut session),
        Command::Check(args) => check::run(args, &mut session),
        Command::Diff(args) => diff::run(args, &mut session),
        Command::Save(args) => save::run(args, &mut session),
        Command::Status(args) => status::run(args, &mut session),
        Command::Stats(args) => stats::run(args, &mut session),
        Command::Flows(args) => flows::run(args, &mut session),
    };
    session.tell();
    done
}
