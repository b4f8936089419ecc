//! The pin directories: `<bpffs>/shaper/v<ABI>/<netns inode>-<ifindex>-<direction>/`.

use std::{
    fmt,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use shaper_common::abi;

use crate::{
    error::{Error, Result},
    model::Direction,
    state::Root,
};

/// The directory in the bpffs that all others are in; it is there as long as there are attachments.
pub(super) const TOP: &str = "shaper";

/// Names in a directory, besides those of the maps.
pub(crate) mod entry {
    /// The program that runs.
    pub(crate) const PROGRAM: &str = "prog";
    /// The TCX link. The attachment is complete, and limits when the tool is gone, once this is there.
    pub(crate) const LINK: &str = "link";
    /// An empty directory: the clsact filter has been added and not been taken away by us.
    pub(crate) const FILTER: &str = "filter";
    /// Appended to the name of what replaces an entry, until it does. (A bpffs takes no dots in names.)
    pub(crate) const NEXT: &str = "-next";
}

/// What an attachment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Inode of the network namespace.
    pub(crate) netns: u64,
    /// Index of the device there.
    pub(crate) ifindex: u32,
    /// Direction.
    pub(crate) direction: Direction,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.netns, self.ifindex, self.direction)
    }
}

impl Place {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.splitn(3, '-');
        let netns = parts.next()?.parse().ok()?;
        let ifindex = parts.next()?.parse().ok()?;
        let direction = parts.next()?;
        let direction = Direction::ALL.into_iter().find(|known| known.to_string() == direction)?;
        Some(Self { netns, ifindex, direction })
    }
}

/// All pin directories of one bpffs.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    top: PathBuf,
    version: PathBuf,
}

impl Tree {
    pub(crate) fn of(root: &Root) -> Self {
        let top = root.bpffs.join(TOP);
        let version = top.join(format!("v{}", abi::VERSION));
        Self { top, version }
    }

    /// Whether there is anything.
    pub(crate) fn exists(&self) -> Result<bool> {
        self.version.try_exists().map_err(Error::io(format!("look into {}", self.top.display())))
    }

    /// Fails if another version of the tool has attachments, of which this one knows nothing.
    pub(crate) fn only_ours(&self) -> Result<()> {
        let failed = |path: &Path| Error::io(format!("list {}", path.display()));
        let entries = match fs::read_dir(&self.top) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed(&self.top))?,
        };
        for entry in entries {
            let path = entry.map_err(failed(&self.top))?.path();
            let other = path != self.version && path.file_name().and_then(|name| name.to_str()).is_some_and(is_version);
            if other && path.is_dir() && fs::read_dir(&path).map_err(failed(&path))?.next().is_some() {
                return Err(Error::State {
                    what: format!("{} holds attachments of another version of shaper", path.display()),
                    hint: "run `shaper detach --all` of that version, in each network namespace; then use this one"
                        .into(),
                });
            }
        }
        Ok(())
    }

    /// The directories of one network namespace.
    pub(crate) fn directories(&self, netns: u64) -> Result<Vec<Directory>> {
        if !self.exists()? {
            return Ok(Vec::new());
        }
        self.trust()?;
        let failed = || format!("list {}", self.version.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.version).map_err(Error::io(failed()))? {
            let entry = entry.map_err(Error::io(failed()))?;
            let place = entry.file_name().to_str().and_then(Place::parse);
            found.extend(place.filter(|place| place.netns == netns).map(|place| self.directory(place)));
        }
        Ok(found)
    }

    /// Makes an empty directory.
    pub(crate) fn create(&self, place: Place) -> Result<Directory> {
        let directory = self.directory(place);
        make(&self.top)?;
        self.trust()?;
        make(&directory.path)?;
        Ok(directory)
    }

    /// Removes what a detach that was killed has left of the tree, if that is empty.
    pub(crate) fn prune(&self) {
        prune(&self.version);
    }

    fn directory(&self, place: Place) -> Directory {
        Directory { place, path: self.version.join(place.to_string()) }
    }

    /// A bpffs may be writable for everybody, like /tmp: nobody else may have made the top directory.
    fn trust(&self) -> Result<()> {
        let failed = || format!("look at {}", self.top.display());
        let metadata = fs::symlink_metadata(&self.top).map_err(Error::io(failed()))?;
        let owner = metadata.uid();
        let ours = owner == 0 || owner == nix::unistd::geteuid().as_raw();
        if metadata.is_dir() && ours && metadata.mode() & 0o022 == 0 {
            return Ok(());
        }
        Err(Error::State {
            what: format!("{} belongs to user {owner} or may be changed by others", self.top.display()),
            hint: format!("see who made it, then `rm -r {}`", self.top.display()),
        })
    }
}

/// The pins of one attachment.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// Whose they are.
    pub(crate) place: Place,
    path: PathBuf,
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn entry(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What is to replace an entry.
    pub(crate) fn next(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{}", entry::NEXT))
    }

    pub(crate) fn has(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(Error::io(format!("look at {}", path.display())))
    }

    /// Puts what was to replace an entry in its place, in one step, if it is there.
    pub(crate) fn promote(&self, name: &str) -> Result<()> {
        let next = self.next(name);
        match fs::rename(&next, self.entry(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(format!("rename {}", next.display()))(error))
            }
            _ => Ok(()),
        }
    }

    /// Takes away a pin, if it is there.
    pub(crate) fn unpin(&self, path: &Path) -> Result<()> {
        ignore_missing(fs::remove_file(path)).map_err(Error::io(format!("remove {}", path.display())))
    }

    /// Sets or clears a marker, an empty directory.
    pub(crate) fn mark(&self, name: &str, set: bool) -> Result<()> {
        let path = self.entry(name);
        let result = if set { fs::create_dir(&path) } else { ignore_missing(fs::remove_dir(&path)) };
        match result {
            Err(error) if !(set && error.kind() == io::ErrorKind::AlreadyExists) => {
                Err(Error::io(format!("change {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the directory with the pins that can be ours, and the directories above it if they are empty.
    pub(crate) fn remove(&self) -> Result<()> {
        for name in [entry::LINK, entry::PROGRAM].into_iter().chain(abi::map::PINNED) {
            for path in [self.next(name), self.entry(name)] {
                // A directory is nothing of ours.
                if !path.is_dir() {
                    self.unpin(&path)?;
                }
            }
        }
        self.mark(entry::FILTER, false)?;
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => return Err(self.not_empty()),
            removed => ignore_missing(removed).map_err(Error::io(format!("remove {}", self.path.display())))?,
        }
        if let Some(version) = self.path.parent() {
            prune(version);
        }
        Ok(())
    }

    /// The error for entries that are not ours.
    fn not_empty(&self) -> Error {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Error::State {
            what: format!("{} holds what shaper did not put there: {}", self.path.display(), names.join(", ")),
            hint: format!("no limit is left in it; see whose it is, then `rm -r {}`", self.path.display()),
        }
    }
}

/// Whether a name is that of the pins of some version.
fn is_version(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Removes the directory of a version, and the top, if they are empty.
fn prune(version: &Path) {
    for directory in version.ancestors().take(2) {
        if ignore_missing(fs::remove_dir(directory)).is_err() {
            // There are other attachments in it.
            break;
        }
    }
}

fn make(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io(format!("create {}", path.display())))
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::{Direction, Place};

    #[test]
    fn names_are_read_back() {
        for direction in Direction::ALL {
            let place = Place { netns: 4_026_531_840, ifindex: 7, direction };
            assert_eq!(Place::parse(&place.to_string()), Some(place));
        }
        for other in ["", "1-2", "1-2-up", "x-2-ingress", "1-2-ingress-3", "1--ingress"] {
            assert_eq!(Place::parse(other), None, "{other}");
        }
    }
}
