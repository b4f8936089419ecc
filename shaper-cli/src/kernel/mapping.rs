//! A flow table in this process's memory: no system call per flow.

use std::{ffi::c_void, num::NonZeroUsize, os::fd::AsFd as _, ptr::NonNull, slice};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use shaper_common::table::FlowSet;

use super::sys::Map;
use crate::error::{Error, Result};

/// The pages of a FLOWS map, shared with the programs.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<c_void>,
    bytes: NonZeroUsize,
    sets: usize,
}

impl Mapping {
    /// Maps a flow table that [`super::maps`] has admitted.
    pub(super) fn new(flows: &Map) -> Result<Self> {
        let failed = || Error::kernel("map the flow table into memory", "see `ulimit -v`");
        let info = flows.info();
        let sets = info.max_entries as usize;
        let bytes = (info.value_size as usize == size_of::<FlowSet>())
            .then(|| sets.checked_mul(size_of::<FlowSet>()).and_then(NonZeroUsize::new))
            .flatten()
            .ok_or_else(|| failed()(std::io::ErrorKind::InvalidData.into()))?;
        // Writable even for those who only look: a reference to an atomic promises memory that can be written.
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is changed.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, flows.as_fd(), 0) }
            .map_err(|errno| failed()(errno.into()))?;
        Ok(Self { start, bytes, sets })
    }

    pub(super) fn sets(&self) -> &[FlowSet] {
        // SAFETY: the mapping is `sets` sets long (the kernel refuses a longer one than the map), page-aligned, lives as
        // long as `self`, and all words in it are atomics, for which any bytes are valid and which others may change.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.sets) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made in `new` with this length; the references into it borrowed `self`.
        let unmapped = unsafe { munmap(self.start, self.bytes.get()) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
