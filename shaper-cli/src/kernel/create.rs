//! A new attachment: maps, records, program and, last, the pinned link or the filter that makes it one.

use std::path::Path;

use shaper_common::{
    abi::{Keying, RuleLimits},
    siphash::SipKey,
};

use super::{
    attachment::{Attachment, dismantle, publish},
    clsact,
    link::{self, Link},
    load::{Program, Source},
    maps::Maps,
    object, pin,
    rulebook::{self, Draft},
    settings::{processors, settings},
};
use crate::{
    error::{Error, Result},
    model::{Config, Device, Direction, Hook, HookChoice},
    state::{Directory, Owner, Place, Record, Room, Tree, entry},
};

/// What is asked for, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) device: &'a Device,
    pub(super) direction: Direction,
    pub(super) config: &'a Config,
    /// Name of the namespace.
    pub(super) netns: Option<&'a str>,
    /// Whether the attachment to the other direction has added the clsact qdisc: who goes last removes it.
    pub(super) clsact_added: bool,
    /// Where a verifier log is saved.
    pub(super) run: &'a Path,
}

impl Request<'_> {
    /// The hook it comes to on this kernel.
    pub(super) fn hook(&self) -> Result<Hook> {
        match self.config.hook {
            HookChoice::Clsact => Ok(Hook::Clsact),
            HookChoice::Auto | HookChoice::Tcx if link::supported(self.device.ifindex, self.direction)? => {
                Ok(Hook::Tcx)
            }
            HookChoice::Auto => Ok(Hook::Clsact),
            HookChoice::Tcx => Err(Error::Kernel {
                what: "this kernel has no TCX".into(),
                source: None,
                hint: "use `--hook clsact`, or Linux 6.6".into(),
            }),
        }
    }

    pub(super) const fn clsact(&self) -> clsact::Hook {
        clsact::Hook::new(self.device.ifindex, self.direction)
    }

    /// The record of an attachment that does what is asked.
    pub(super) fn record(&self, hook: Hook, clsact_added: bool, secret: SipKey) -> Record {
        Record {
            dev: self.device.name.clone(),
            netns: self.netns.map(ToOwned::to_owned),
            ifindex: self.device.ifindex,
            direction: self.direction,
            hook,
            clsact_added: hook == Hook::Clsact && (clsact_added || self.clsact_added),
            ethernet: self.device.ethernet,
            object: object::fingerprint(),
            secret,
            keying: Keying::Single,
            room: Room::least(processors()),
            rules_len: 0,
            next_id: 1,
            config: self.config.clone(),
            slots: Vec::new(),
        }
    }
}

/// Attaches to a device that has no attachment in this direction.
pub(super) fn create(tree: &Tree, place: Place, request: &Request<'_>) -> Result<Attachment> {
    let hook = request.hook()?;
    let lacks_qdisc = hook == Hook::Clsact && request.clsact().lacks_qdisc()?;
    let mut record = request.record(hook, lacks_qdisc, secret()?);
    let draft = rulebook::draft(&mut record, None)?;
    let directory = tree.create(place)?;
    if let Err(error) = build(&directory, record, draft, request, lacks_qdisc) {
        // What failed first is what counts; the next command removes what this may leave.
        dismantle(&directory, lacks_qdisc).ok();
        return Err(error);
    }
    let path = directory.path().to_owned();
    Attachment::open(directory)?.ok_or_else(|| pin::unusable(&path, "vanished as soon as it was made"))
}

fn build(directory: &Directory, record: Record, draft: Draft, request: &Request<'_>, lacks_qdisc: bool) -> Result<()> {
    let Request { device, direction, config, run, .. } = *request;
    let hook = record.hook;
    let source = Source { directory, next: &[], room: &record.room, run };
    let program = Program::load(direction, settings(&record, 0), &source)?;
    let maps = Maps::open(directory, false)?;
    let owner = Owner { program_id: program.id, epoch_base: 0, record };
    publish(&maps, 0, draft, &[RuleLimits::default()], &owner)?;
    pin::create(&program, &directory.entry(entry::PROGRAM))?;
    match hook {
        Hook::Tcx => {
            let link = Link::create(&program, device.ifindex, direction, config.order)?;
            link.pin(&directory.entry(entry::LINK))
        }
        Hook::Clsact => {
            if lacks_qdisc {
                request.clsact().add_qdisc()?;
            }
            request.clsact().add(&program, config.order)?;
            directory.mark(entry::FILTER, true)
        }
    }
}

/// A secret that nobody outside can guess, so that nobody can choose flows that meet in one set.
fn secret() -> Result<SipKey> {
    let word = || getrandom::u64().map_err(|error| Error::io("read random numbers")(error.into()));
    Ok(SipKey { k0: word()?, k1: word()? })
}
