//! `shaper check`.

use super::{file, session::Session};
use crate::{args::Check, config::Source, error::Result};

pub(super) fn run(args: &Check, session: &mut Session<'_>) -> Result<()> {
    let source = Source::read(&args.file)?;
    let configuration = file::understand(&source, session)?;
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let attachments = counted(configuration.places(), "attachment");
    let rules = counted(configuration.rules(), "rule");
    session.print(|out| writeln!(out, "{}: ok, {attachments}, {rules}", source.name()))
}
