//! What all commands have: the namespace they work in, their output, and ways to find what is attached.

use std::{
    cell::RefCell,
    io::{self, Write},
};

use crate::{
    args::{DirectionChoice, Global},
    error::{Error, Result},
    kernel::{Damage, Host},
    model::{Direction, Found},
    net::{self, Namespace},
    plan::{self, Which},
    text::Shown,
};

pub(super) struct Session<'a> {
    pub(super) namespace: Namespace,
    pub(super) json: bool,
    pub(super) verbose: bool,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// The failure of a command that has shown all that is sound and found something damaged beside it.
    damage: RefCell<Option<Error>>,
    /// What is to be said once there is no lock to hold.
    said: Vec<String>,
}

impl<'a> Session<'a> {
    /// Enters the namespace that was asked for.
    pub(super) fn enter(global: &Global, out: &'a mut dyn Write, err: &'a mut dyn Write) -> Result<Self> {
        let namespace = match &global.netns {
            Some(name) => Namespace::named(name)?,
            None => Namespace::current()?,
        };
        Ok(Self {
            namespace,
            json: global.json,
            verbose: global.verbose,
            out,
            err,
            said: Vec::new(),
            damage: RefCell::default(),
        })
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
        let directions = direction.map_or(Direction::ALL.as_slice(), DirectionChoice::directions);
        let damage = host.and_then(|host| host.damaged(dev, directions).first().map(Damage::error));
        let selected = plan::select(found, which, dev, direction);
        if let Some(damage) = damage {
            match selected {
                Ok(found) if !found.is_empty() => {
                    self.damage.replace(Some(damage));
                    return Ok(found);
                }
                // Nobody is told that there is nothing.
                Ok(_) | Err(Error::NotAttached { .. }) => return Err(damage),
                Err(error) => return Err(error),
            }
        }
        selected.map_err(|error| match &error {
            Error::NotAttached { dev, .. } => match net::device(&self.namespace, dev) {
                Err(unknown @ Error::NoSuchDevice { .. }) => unknown,
                _ => error,
            },
            _ => error,
        })
    }

    /// Writes to the standard output. That takes as long as the reader likes, so there may be no [`Host`] meanwhile: it
    /// holds a lock that others wait for.
    pub(super) fn print(&mut self, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        self.tell();
        if self.json { text(self.out) } else { text(&mut Shown(self.out)) }.map_err(Error::Output)?;
        self.damage.take().map_or(Ok(()), Err)
    }

    /// Writes what was said to the standard error; here too there may be no [`Host`].
    pub(super) fn tell(&mut self) {
        for line in self.said.drain(..) {
            // Nobody is left to be told if this fails.
            writeln!(Shown(self.err), "{line}").ok();
        }
    }

    /// Tells people what the result does not say, at the next [`Session::tell`].
    pub(super) fn say(&mut self, kind: &str, text: &str) {
        self.said.push(format!("{kind}: {text}"));
    }

    /// Shows people lines as they are, at the next [`Session::tell`].
    pub(super) fn show(&mut self, lines: &str) {
        self.said.push(lines.trim_end_matches('\n').to_owned());
    }

    /// Tells people what the state has to say, once nothing can add to it.
    pub(super) fn say_notices(&mut self, host: Option<&Host>) {
        for notice in host.map_or_else(Default::default, Host::notices) {
            self.say("note", notice);
        }
    }
}
