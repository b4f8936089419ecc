//! Opening pins, and what to say of one that is not what it should be.

use std::{io, os::fd::OwnedFd, path::Path};

use super::sys::{self, Kind};
use crate::error::{Error, Result};

/// Opens a pin, which must be of this kind. `None` if there is none.
pub(super) fn open(path: &Path, kind: Kind) -> Result<Option<OwnedFd>> {
    sys::open(path, kind).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => unusable(path, &error.to_string()),
        _ => Error::io(format!("open {}", path.display()))(error),
    })
}

/// Pins an object.
pub(super) fn create(fd: impl std::os::fd::AsFd, path: &Path) -> Result<()> {
    sys::pin(fd, path).map_err(Error::io(format!("pin {}", path.display())))
}

/// The error for a pin, or a directory of pins, that cannot be trusted.
pub(super) fn unusable(path: &Path, what: &str) -> Error {
    Error::State {
        what: format!("{} {what}", path.display()),
        hint: "`shaper detach` takes the attachment away, whatever is left of it".into(),
    }
}
