//! What all commands have: the namespace they work in, their output, and ways to find what is attached.

use std::io::{self, Write};

use crate::{
    args::{DirectionChoice, Global},
    error::{Error, Result},
    kernel::Host,
    model::Found,
    net::{self, Namespace},
    plan::{self, Which},
};

pub(super) struct Session<'a> {
    pub(super) namespace: Namespace,
    pub(super) json: bool,
    pub(super) verbose: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl<'a> Session<'a> {
    /// Enters the namespace that was asked for.
    pub(super) fn enter(global: &Global, out: &'a mut dyn Write, err: &'a mut dyn Write) -> Result<Self> {
        let namespace = match &global.netns {
            Some(name) => Namespace::named(name)?,
            None => Namespace::current()?,
        };
        Ok(Self { namespace, json: global.json, verbose: global.verbose, out, err })
    }

    /// The state, to change it, if there is any: a command that only ends or changes attachments makes none.
    pub(super) fn existing(&self) -> Result<Option<Host>> {
        // Reading holds the lock that changing needs: it has to be over first.
        let exists = Host::read(&self.namespace)?.is_some();
        exists.then(|| Host::change(&self.namespace)).transpose()
    }

    /// The attachments that are meant, as [`plan::select`] says; an unknown device is told from one without any.
    pub(super) fn select(
        &self,
        host: Option<&Host>,
        which: Which,
        dev: Option<&str>,
        direction: Option<DirectionChoice>,
    ) -> Result<Vec<Found>> {
        let found = host.map_or(Ok(Vec::new()), Host::list)?;
        plan::select(found, which, dev, direction).map_err(|error| match &error {
            Error::NotAttached { dev, .. } => match net::device(&self.namespace, dev) {
                Err(unknown @ Error::NoSuchDevice { .. }) => unknown,
                _ => error,
            },
            _ => error,
        })
    }

    /// Writes to the standard output.
    pub(super) fn print(&mut self, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        text(self.out).map_err(Error::Output)
    }

    /// Tells people what the result does not say.
    pub(super) fn say(&mut self, kind: &str, text: &str) {
        // Nobody is left to be told if this fails.
        writeln!(self.err, "{kind}: {text}").ok();
    }

    /// Tells people what the state has to say, last because a change may add to it.
    pub(super) fn say_notices(&mut self, host: Option<&Host>) {
        for notice in host.map_or_else(Default::default, Host::notices) {
            self.say("note", notice);
        }
    }
}
