//! The attachments of one network namespace: the way in for the front.

use super::{
    attachment::{Attachment, dismantle, leftover_record, remove_filters},
    change::change,
    clsact,
    create::{Request, create},
    object,
};
use crate::{
    error::{Error, Result},
    model::{Config, Device, Direction, Explanation, Flow, Found, Outcome, Question, RuleStats, State},
    net::{self, Namespace},
    state::{Directory, Lock, Place, Record, Root, Tree},
};

/// The pinned state of a network namespace, locked while this lives.
#[derive(Debug)]
pub struct Host {
    namespace: Namespace,
    root: Root,
    tree: Tree,
    attachments: Vec<Attachment>,
    damaged: Vec<Damage>,
    notices: Vec<String>,
    _lock: Option<Lock>,
}

/// What is left of an attachment and cannot be made sense of, though it may limit still.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The device.
    pub dev: String,
    /// The direction.
    pub direction: Direction,
    place: Place,
    /// The pins, if there are any.
    directory: Option<Directory>,
    what: String,
    hint: String,
}

impl Damage {
    /// As the failure of a command that meant it.
    #[must_use]
    pub fn error(&self) -> Error {
        Error::State { what: self.what.clone(), hint: self.hint.clone() }
    }
}

impl Host {
    /// For looking: mounts, creates and repairs nothing. `None` if nothing was ever attached.
    ///
    /// # Errors
    ///
    /// If the process may not look, or another command is changing things for too long.
    pub fn read(namespace: &Namespace) -> Result<Option<Self>> {
        let Some(root) = Root::find()? else { return Root::must_be_seen().map(|()| None) };
        let tree = Tree::of(&root);
        tree.only_ours()?;
        let lock = Lock::shared(&root.run)?;
        let exists = tree.exists()?;
        let mut host = Self::new(namespace, root, tree, lock);
        for directory in host.tree.directories(namespace.inode())? {
            host.admit(&directory, Attachment::open(directory.clone()))?;
        }
        host.find_orphans()?;
        if exists || !host.damaged.is_empty() { Ok(Some(host)) } else { Root::must_be_seen().map(|()| None) }
    }

    /// For changing: makes sure of a bpffs and finishes what a killed command has left.
    ///
    /// # Errors
    ///
    /// If the process may not do that, or another command is changing things for too long.
    pub fn change(namespace: &Namespace) -> Result<Self> {
        let lock = Lock::exclusive(&Root::make_run_directory()?)?;
        let (root, notice) = Root::find_or_mount()?;
        let tree = Tree::of(&root);
        tree.only_ours()?;
        let mut host = Self::new(namespace, root, tree, Some(lock));
        host.notices.extend(notice);
        for directory in host.tree.directories(namespace.inode())? {
            let repaired = repair(namespace, directory.clone());
            host.admit(&directory, repaired)?;
        }
        host.find_orphans()?;
        host.tree.prune();
        Ok(host)
    }

    fn new(namespace: &Namespace, root: Root, tree: Tree, lock: Option<Lock>) -> Self {
        let namespace = namespace.clone();
        Self { namespace, root, tree, attachments: Vec::new(), damaged: Vec::new(), notices: Vec::new(), _lock: lock }
    }

    fn admit(&mut self, directory: &Directory, opened: Result<Option<Attachment>>) -> Result<()> {
        match opened {
            Ok(attachment) => self.attachments.extend(attachment),
            Err(Error::State { what, hint }) => self.add_damage(directory.place, Some(directory), what, hint)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Finds filters of ours whose pins are gone.
    fn find_orphans(&mut self) -> Result<()> {
        // Where the qdiscs cannot be listed there is no filter either.
        for ifindex in clsact::devices().unwrap_or_default() {
            for direction in Direction::ALL {
                let place = Place { netns: self.namespace.inode(), ifindex, direction };
                if self.damaged.iter().any(|damage| damage.place == place) {
                    continue;
                }
                let filters = clsact::Hook::new(ifindex, direction).named()?;
                if filters.iter().filter_map(|filter| filter.program_id).any(|id| !self.knows(place, id)) {
                    self.add_damage(
                        place,
                        None,
                        "a filter of shaper runs and its pins are gone".into(),
                        String::new(),
                    )?;
                }
            }
        }
        Ok(())
    }

    fn add_damage(&mut self, place: Place, directory: Option<&Directory>, what: String, hint: String) -> Result<()> {
        let Place { ifindex, direction, .. } = place;
        let device = net::devices(&self.namespace)?.into_iter().find(|device| device.ifindex == ifindex);
        let dev = device
            .map(|device| device.name)
            .or_else(|| directory.and_then(leftover_record).map(|record| record.dev))
            .unwrap_or_else(|| format!("number {ifindex}"));
        let netns = self.namespace.name().map(|name| format!("-n {name} ")).unwrap_or_default();
        // What shaper cannot take away is said as it is.
        let hint = if hint.contains("rm -r") {
            hint
        } else {
            format!("`shaper {netns}detach {dev} --direction {direction}` takes away what is left of it")
        };
        let what = format!("{dev} {direction}: {what}");
        self.damaged.push(Damage { dev, direction, place, directory: directory.cloned(), what, hint });
        Ok(())
    }

    /// What is damaged of `dev`, all devices if it is `None`, in these directions.
    #[must_use]
    pub fn damaged(&self, dev: Option<&str>, directions: &[Direction]) -> Vec<Damage> {
        let meant =
            |damage: &&Damage| dev.is_none_or(|dev| damage.dev == dev) && directions.contains(&damage.direction);
        self.damaged.iter().filter(meant).cloned().collect()
    }

    /// Takes away what is left of a damaged attachment.
    ///
    /// # Errors
    ///
    /// If the kernel refuses, or if there is something that is not ours.
    pub fn clear(&mut self, damage: &Damage) -> Result<()> {
        match &damage.directory {
            Some(directory) => {
                let qdisc = left_our_qdisc(&self.namespace, directory)?;
                dismantle(directory, qdisc)?;
            }
            None => remove_filters(damage.place, |id| !self.knows(damage.place, id))?,
        }
        self.damaged.retain(|other| other.place != damage.place);
        Ok(())
    }

    /// What the user should know besides the results.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// All attachments, those that are gone too, by device and direction.
    ///
    /// # Errors
    ///
    /// If the kernel does not answer.
    pub fn list(&self) -> Result<Vec<Found>> {
        let devices = net::devices(&self.namespace)?;
        let found = |attachment: &Attachment| {
            let ifindex = attachment.directory.place.ifindex;
            let device = devices.iter().find(|device| device.ifindex == ifindex);
            attachment.found(device.map(|device| device.name.as_str()), self.namespace.name())
        };
        let mut all = self.attachments.iter().map(found).collect::<Result<Vec<_>>>()?;
        all.sort_by(|a, b| (&a.dev, a.direction, a.ifindex).cmp(&(&b.dev, b.direction, b.ifindex)));
        Ok(all)
    }

    /// Makes the attachment of a device and direction be what `config` says.
    ///
    /// # Errors
    ///
    /// If the kernel refuses; what was in force before is then in force still.
    pub fn attach(&mut self, dev: &Device, direction: Direction, config: &Config) -> Result<(Outcome, Found)> {
        let place = Place { netns: self.namespace.inode(), ifindex: dev.ifindex, direction };
        if let Some(at) = self.damaged.iter().position(|damage| damage.place == place) {
            if self.damaged[at].directory.is_some() {
                return Err(self.damaged[at].error());
            }
            // A filter without pins: what is asked for takes its place.
            let damage = self.damaged.swap_remove(at);
            self.clear(&damage)?;
        }
        self.bury(place, &dev.name)?;
        let request = Request {
            device: dev,
            direction,
            config,
            netns: self.namespace.name(),
            clsact_added: self.attachments.iter().any(|other| {
                other.directory.place.ifindex == dev.ifindex
                    && other.state == State::Active
                    && other.record().clsact_added
            }),
            run: &self.root.run,
        };
        let (outcome, attachment) = match self.position(place) {
            None => (Outcome::Created, create(&self.tree, place, &request)?),
            Some(at) if is_as_asked(&self.attachments[at], &request) => {
                (Outcome::Unchanged, self.attachments.swap_remove(at))
            }
            Some(at) => {
                let attachment = self.attachments.swap_remove(at);
                (Outcome::Updated, change(attachment, &request, &mut self.notices)?)
            }
        };
        let found = attachment.found(Some(&dev.name), self.namespace.name())?;
        self.attachments.push(attachment);
        Ok((outcome, found))
    }

    /// Ends an attachment, active or gone.
    ///
    /// # Errors
    ///
    /// If there is none, or the kernel refuses.
    pub fn detach(&mut self, found: &Found) -> Result<()> {
        let at = self.position(self.place(found)).ok_or_else(|| not_attached(found))?;
        let Attachment { directory, owner, state, .. } = self.attachments.swap_remove(at);
        dismantle(&directory, has_our_qdisc(&owner.record, state))
    }

    /// The counters of each rule.
    ///
    /// # Errors
    ///
    /// If there is no such attachment.
    pub fn stats(&self, found: &Found) -> Result<Vec<RuleStats>> {
        self.get(found)?.stats(found)
    }

    /// The flows that have a bucket, in no order.
    ///
    /// # Errors
    ///
    /// If there is no such attachment.
    pub fn flows(&self, found: &Found) -> Result<Vec<Flow>> {
        self.get(found)?.flows(found)
    }

    /// What would happen to a packet now.
    ///
    /// # Errors
    ///
    /// If there is no such attachment.
    pub fn explain(&self, found: &Found, question: &Question) -> Result<Explanation> {
        self.get(found)?.explain(question)
    }

    /// Removes what is gone at a place, or was attached to a device of this name that has vanished since.
    fn bury(&mut self, place: Place, name: &str) -> Result<()> {
        let dead = |attachment: &mut Attachment| {
            let it = attachment.directory.place;
            attachment.state == State::Gone
                && (it == place || (it.direction == place.direction && attachment.record().dev == name))
        };
        for attachment in self.attachments.extract_if(.., dead) {
            dismantle(&attachment.directory, has_our_qdisc(attachment.record(), State::Gone))?;
        }
        Ok(())
    }

    fn get(&self, found: &Found) -> Result<&Attachment> {
        self.position(self.place(found)).map(|at| &self.attachments[at]).ok_or_else(|| not_attached(found))
    }

    fn knows(&self, place: Place, program_id: u32) -> bool {
        self.position(place).is_some_and(|at| self.attachments[at].knows(program_id))
    }

    fn position(&self, place: Place) -> Option<usize> {
        self.attachments.iter().position(|attachment| attachment.directory.place == place)
    }

    const fn place(&self, found: &Found) -> Place {
        Place { netns: self.namespace.inode(), ifindex: found.ifindex, direction: found.direction }
    }
}

fn not_attached(found: &Found) -> Error {
    Error::NotAttached { dev: found.dev.clone(), direction: Some(found.direction) }
}

fn is_as_asked(attachment: &Attachment, request: &Request<'_>) -> bool {
    let record = attachment.record();
    record.config == *request.config
        && record.ethernet == request.device.ethernet
        && record.object == object::fingerprint()
}

/// Opens an attachment after finishing what a killed command has left of a change; removes what is left of an attach or
/// detach.
fn repair(namespace: &Namespace, directory: Directory) -> Result<Option<Attachment>> {
    if let Some(mut attachment) = Attachment::open(directory.clone())? {
        attachment.settle()?;
        return Ok(Some(attachment));
    }
    let qdisc = left_our_qdisc(namespace, &directory)?;
    dismantle(&directory, qdisc)?;
    Ok(None)
}

/// Whether the clsact qdisc at an attachment is the one we added. Where the filter has vanished the qdisc may have
/// vanished with it, and another one be there now.
const fn has_our_qdisc(record: &Record, state: State) -> bool {
    record.clsact_added && matches!(state, State::Active)
}

/// Whether an attach or detach that ended half-way has left a clsact qdisc that we added.
fn left_our_qdisc(namespace: &Namespace, directory: &Directory) -> Result<bool> {
    let Some(record) = leftover_record(directory) else { return Ok(false) };
    let same = |device: &Device| device.ifindex == record.ifindex && device.name == record.dev;
    Ok(record.clsact_added && net::devices(namespace)?.iter().any(same))
}
