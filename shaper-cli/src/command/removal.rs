//! Attachments that go, those that are damaged too.

use std::io::{self, Write};

use super::session::Session;
use crate::{
    error::Error,
    kernel::{Damage, Host},
    model::Found,
    render,
};

/// What is to be detached, or was.
#[derive(Default)]
pub(super) struct Removal {
    pub(super) found: Vec<Found>,
    pub(super) damaged: Vec<Damage>,
}

impl Removal {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.damaged.is_empty()
    }

    /// Detaches them. Returns those that are gone now, and the failure if one resists, which does not keep the others.
    pub(super) fn carry_out(self, host: &mut Host, session: &mut Session<'_>) -> (Self, Option<Error>) {
        let mut gone = Self::default();
        let mut failures = Vec::new();
        for found in self.found {
            match host.detach(&found) {
                Ok(()) => gone.found.push(found),
                Err(error) => failures.push(error),
            }
        }
        for damage in self.damaged {
            match host.clear(&damage) {
                Ok(()) => gone.damaged.push(damage),
                Err(error) => failures.push(error),
            }
        }
        let last = failures.pop();
        for earlier in failures {
            session.say("error", &earlier.to_string());
        }
        (gone, last)
    }

    /// Says what would go.
    pub(super) fn would_go(&self, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
        self.found.iter().try_for_each(|found| render::would_detach(found, verbose, out))?;
        self.damaged.iter().try_for_each(|Damage { dev, direction, .. }| {
            writeln!(out, "would remove what is left of {dev} {direction}")
        })
    }

    /// Says what is gone.
    pub(super) fn went(&self, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
        self.found.iter().try_for_each(|found| render::detached(found, verbose, out))?;
        self.damaged
            .iter()
            .try_for_each(|Damage { dev, direction, .. }| writeln!(out, "removed what was left of {dev} {direction}"))
    }
}
