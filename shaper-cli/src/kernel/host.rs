//! The attachments of one network namespace: the way in for the front.

use super::{
    attachment::{Attachment, dismantle, leftover_record},
    change::change,
    create::{Request, create},
    object,
};
use crate::{
    error::{Error, Result},
    model::{Config, Device, Direction, Flow, Found, Outcome, RuleStats, State},
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
    /// Directories that cannot be made sense of; they are nobody's business until somebody attaches there.
    damaged: Vec<(Place, Error)>,
    notices: Vec<String>,
    _lock: Option<Lock>,
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
        if !tree.exists()? {
            return Root::must_be_seen().map(|()| None);
        }
        let lock = Lock::shared(&root.run)?;
        let mut host = Self::new(namespace, root, tree, lock);
        for directory in host.tree.directories(namespace.inode())? {
            host.admit(directory.place, Attachment::open(directory))?;
        }
        Ok(Some(host))
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
        let mut host = Self::new(namespace, root, tree, Some(lock));
        host.notices.extend(notice);
        for directory in host.tree.directories(namespace.inode())? {
            let place = directory.place;
            let repaired = repair(namespace, directory);
            host.admit(place, repaired)?;
        }
        host.tree.prune();
        Ok(host)
    }

    fn new(namespace: &Namespace, root: Root, tree: Tree, lock: Option<Lock>) -> Self {
        let namespace = namespace.clone();
        Self { namespace, root, tree, attachments: Vec::new(), damaged: Vec::new(), notices: Vec::new(), _lock: lock }
    }

    fn admit(&mut self, place: Place, opened: Result<Option<Attachment>>) -> Result<()> {
        match opened {
            Ok(attachment) => self.attachments.extend(attachment),
            Err(error @ Error::State { .. }) => {
                self.notices.push(format!("left out: {error}; {}", error.hint()));
                self.damaged.push((place, error));
            }
            Err(error) => return Err(error),
        }
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
        if let Some(at) = self.damaged.iter().position(|(damaged, _)| *damaged == place) {
            return Err(self.damaged.swap_remove(at).1);
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
        dismantle(&directory, has_our_qdisc(&self.namespace, &owner.record, state)?)
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

    /// Removes what is gone at a place, or was attached to a device of this name that has vanished since.
    fn bury(&mut self, place: Place, name: &str) -> Result<()> {
        let dead = |attachment: &mut Attachment| {
            let it = attachment.directory.place;
            attachment.state == State::Gone
                && (it == place || (it.direction == place.direction && attachment.record().dev == name))
        };
        for attachment in self.attachments.extract_if(.., dead) {
            dismantle(&attachment.directory, has_our_qdisc(&self.namespace, attachment.record(), State::Gone)?)?;
        }
        Ok(())
    }

    fn get(&self, found: &Found) -> Result<&Attachment> {
        self.position(self.place(found)).map(|at| &self.attachments[at]).ok_or_else(|| not_attached(found))
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
    let qdisc = match leftover_record(&directory) {
        Some(record) => has_our_qdisc(namespace, &record, State::Gone)?,
        None => false,
    };
    dismantle(&directory, qdisc)?;
    Ok(None)
}

/// Whether a clsact qdisc on the recorded device is the one we added. Where the device has vanished, one with its index
/// may be another.
fn has_our_qdisc(namespace: &Namespace, record: &Record, state: State) -> Result<bool> {
    let same = |device: &Device| device.ifindex == record.ifindex && device.name == record.dev;
    Ok(record.clsact_added && (state == State::Active || net::devices(namespace)?.iter().any(same)))
}
