//! Commands: each asks what is there, has a plan made, carries it out and says so.

mod apply;
mod attach;
mod check;
mod detach;
mod diff;
mod explain;
mod file;
mod flows;
mod make;
mod removal;
mod rule;
mod save;
mod session;
mod set;
mod stats;
mod status;

use std::io::Write;

use self::session::Session;
use crate::{
    args::{Cli, Command, RuleCommand},
    error::{Error, Result},
};

/// Carries out a command line.
///
/// # Errors
///
/// If it cannot be done, or `out` fails.
pub fn run(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<()> {
    let Cli { global, command } = cli;
    if global.json && !prints_json(command) {
        return Err(Error::usage(
            "--json",
            "only status, stats, flows, rule list and explain print JSON",
            "leave it out; `shaper --json status` shows the result of a change",
        ));
    }
    let mut session = Session::enter(global, out, err)?;
    let done = match command {
        Command::Attach(args) => attach::run(args, &mut session),
        Command::Set(args) => set::run(args, &mut session),
        Command::Rule(args) => rule::run(args, &mut session),
        Command::Detach(args) => detach::run(args, &mut session),
        Command::Apply(args) => apply::run(args, &mut session),
        Command::Check(args) => check::run(args, &mut session),
        Command::Diff(args) => diff::run(args, &mut session),
        Command::Save(args) => save::run(args, &mut session),
        Command::Status(args) => status::run(args, &mut session),
        Command::Stats(args) => stats::run(args, &mut session),
        Command::Flows(args) => flows::run(args, &mut session),
        Command::Explain(args) => explain::run(args, &mut session),
    };
    session.tell();
    done
}

/// Whether a command has a form for programs.
const fn prints_json(command: &Command) -> bool {
    match command {
        Command::Status(_) | Command::Stats(_) | Command::Flows(_) | Command::Explain(_) => true,
        Command::Rule(rule) => matches!(rule.command, RuleCommand::List(_)),
        Command::Attach(_)
        | Command::Set(_)
        | Command::Detach(_)
        | Command::Apply(_)
        | Command::Check(_)
        | Command::Diff(_)
        | Command::Save(_) => false,
    }
}
