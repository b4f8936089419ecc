//! Maps in this process's memory: no system call per flow or rule.

use std::{ffi::c_void, marker::PhantomData, num::NonZeroUsize, os::fd::AsFd as _, ptr::NonNull, slice};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::{
    plain::{Plain, Shared},
    sys::Map,
};
use crate::error::{Error, Result};

/// The elements of a mappable array, shared with the programs.
#[derive(Debug)]
pub(super) struct Mapping<T> {
    start: NonNull<c_void>,
    bytes: NonZeroUsize,
    len: usize,
    elements: PhantomData<T>,
}

impl<T> Mapping<T> {
    /// Maps an array that [`super::maps`] has admitted.
    pub(super) fn new(map: &Map) -> Result<Self> {
        let failed = || Error::kernel("map the tables into memory", "see `ulimit -v`");
        let info = map.info();
        let len = info.max_entries as usize;
        let bytes = (info.value_size as usize == size_of::<T>())
            .then(|| len.checked_mul(size_of::<T>()).and_then(NonZeroUsize::new))
            .flatten()
            .ok_or_else(|| failed()(std::io::ErrorKind::InvalidData.into()))?;
        // Writable even for those who only look: a reference to an atomic promises memory that can be written.
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; nothing that exists is changed.
        let start = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, map.as_fd(), 0) }
            .map_err(|errno| failed()(errno.into()))?;
        Ok(Self { start, bytes, len, elements: PhantomData })
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }
}

impl<T: Shared> Mapping<T> {
    /// The elements.
    pub(super) fn all(&self) -> &[T] {
        // SAFETY: the mapping is `len` elements long (the kernel refuses a longer one than the map), page-aligned, lives as
        // long as `self`, and all words in it are atomics, for which any bytes are valid and which others may change.
        unsafe { slice::from_raw_parts(self.start.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> Mapping<T> {
    /// The element at an index, `None` if there is none.
    pub(super) fn get(&self, index: usize) -> Option<T> {
        let element = self.element(index)?;
        // SAFETY: inside the mapping, aligned, and any bytes are a `T`.
        Some(unsafe { element.read_volatile() })
    }

    /// A reference to the element at an index; nobody writes to the half that is in force.
    pub(super) fn look(&self, index: usize) -> Option<&T> {
        let element = self.element(index)?;
        // SAFETY: inside the mapping, aligned, and any bytes are a `T`. The tool alone writes to these maps, to the half
        // that is not in force, with the lock held that whoever looks holds too.
        Some(unsafe { &*element })
    }

    /// Overwrites the element at an index; false if there is none.
    #[must_use]
    pub(super) fn set(&self, index: usize, value: T) -> bool {
        let Some(element) = self.element(index) else { return false };
        // SAFETY: inside the mapping and aligned; no program reads an element while the tool writes it.
        unsafe { element.write_volatile(value) };
        true
    }

    fn element(&self, index: usize) -> Option<*mut T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: the index was compared with the length.
        Some(unsafe { self.start.as_ptr().cast::<T>().add(index) })
    }
}

impl<T> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: made in `new` with this length; the references into it borrowed `self`.
        let unmapped = unsafe { munmap(self.start, self.bytes.get()) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}
