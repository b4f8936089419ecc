//! What the commands have in common that are given a file.

use super::session::Session;
use crate::{
    config::{self, Configuration, Diagnostics, Source},
    error::{Error, Result},
};

/// What the file says.
pub(super) fn understand(source: &Source, session: &mut Session<'_>) -> Result<Configuration> {
    config::read(source).map_err(|diagnostics| complain(&diagnostics, session))
}

/// Says what is wrong with a file. Returns the failure.
pub(super) fn complain(diagnostics: &Diagnostics<'_>, session: &mut Session<'_>) -> Error {
    session.show(&diagnostics.render());
    diagnostics.failure()
}
