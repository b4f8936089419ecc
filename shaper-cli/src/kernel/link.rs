//! TCX links (Linux 6.6): the kernel object that ties a program to a hook of a device and can be pinned.

use std::{
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
};

use super::{
    load::Program,
    pin,
    sys::{self, Kind, LinkInfo},
};
use crate::{
    error::{Error, Result},
    model::{Direction, Order},
};

/// `BPF_LINK_TYPE_TCX`.
const TCX: u32 = 11;
/// Before the program named, or before all others if none is: `BPF_F_BEFORE`.
const BEFORE: u32 = 1 << 3;
/// After it, or all: `BPF_F_AFTER`.
const AFTER: u32 = 1 << 4;

/// A TCX link.
#[derive(Debug)]
pub(super) struct Link {
    fd: OwnedFd,
}

/// `enum bpf_attach_type`.
const fn attach_type(direction: Direction) -> u32 {
    match direction {
        Direction::Ingress => 46,
        Direction::Egress => 47,
    }
}

/// Whether the kernel has TCX: those before 6.6 do not know the attach type.
pub(super) fn supported(ifindex: u32, direction: Direction) -> Result<bool> {
    match sys::links(ifindex, attach_type(direction)) {
        Ok(_) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(false),
        Err(error) => Err(Error::kernel("ask for the programs on the TCX hook", "see `dmesg`")(error)),
    }
}

impl Link {
    /// Attaches `program`. The link ends with this value unless it is pinned.
    pub(super) fn create(program: &Program, ifindex: u32, direction: Direction, order: Order) -> Result<Self> {
        let flags = match order {
            Order::First => BEFORE,
            Order::Last => AFTER,
        };
        let fd = sys::create_link(program, ifindex, attach_type(direction), flags).map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::ERANGE) => "the hook is full: detach another program",
                _ => "`bpftool net` lists what is attached",
            };
            Error::kernel("attach the program to the TCX hook", hint)(error)
        })?;
        Ok(Self { fd })
    }

    /// Opens a pinned link. `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(fd) = pin::open(path, Kind::Link)? else { return Ok(None) };
        let link = Self { fd };
        if link.info()?.kind == TCX { Ok(Some(link)) } else { Err(pin::unusable(path, "is no TCX link")) }
    }

    pub(super) fn pin(&self, path: &Path) -> Result<()> {
        pin::create(&self.fd, path)
    }

    /// Id of its program, which it keeps when its device vanishes.
    pub(super) fn program_id(&self) -> Result<u32> {
        Ok(self.info()?.program_id)
    }

    /// Whether the device with this index, in this thread's namespace, is the one it is on. A device that got the index
    /// of a deleted one is not, nor is one that was moved to another namespace.
    pub(super) fn is_on(&self, ifindex: u32, direction: Direction) -> Result<bool> {
        let info = self.info()?;
        if info.ifindex != ifindex {
            return Ok(false);
        }
        match sys::links(ifindex, attach_type(direction)) {
            Ok(ids) => Ok(ids.contains(&info.id)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(false),
            Err(error) => Err(Error::kernel("ask for the programs on the TCX hook", "see `dmesg`")(error)),
        }
    }

    /// Replaces the program in one step: each packet meets the old or the new one.
    pub(super) fn update(&self, program: &Program) -> Result<()> {
        sys::update_link(&self.fd, program).map_err(Error::kernel("replace the program of the link", "see `dmesg`"))
    }

    /// Ends it at once, and not when the kernel gets to its last reference.
    pub(super) fn detach(self) -> Result<()> {
        match sys::detach_link(&self.fd) {
            // Its device has vanished.
            Err(error) if error.raw_os_error() == Some(libc::ENOLINK) => Ok(()),
            result => result.map_err(Error::kernel("detach the link", "see `dmesg`")),
        }
    }

    fn info(&self) -> Result<LinkInfo> {
        sys::link_info(self.fd.as_fd()).map_err(|error: io::Error| Error::io("ask about the link")(error))
    }
}
