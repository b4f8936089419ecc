//! bpf(2) and membarrier(2), as far as aya does not offer what is needed: opening a pin with a look at what it is,
//! information about links, queries by device, atomic replacement.
//!
//! The attribute structs are the leading fields of `union bpf_attr` for one command each
//! (include/uapi/linux/bpf.h); the kernel takes the size along and reads the rest as zero.

use std::{
    ffi::CString,
    fs, io,
    mem::{MaybeUninit, size_of},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use super::plain::Plain;

const MAP_LOOKUP_ELEM: libc::c_int = 1;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const PROG_QUERY: libc::c_int = 16;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const LINK_DETACH: libc::c_int = 34;

/// Most programs on one hook of one device (`BPF_MPROG_MAX`).
const MOST_LINKS: usize = 64;

/// What kinds of objects can be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Map,
    Program,
    Link,
}

/// What the kernel says about a map (`struct bpf_map_info`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MapInfo {
    pub(super) kind: u32,
    pub(super) id: u32,
    pub(super) key_size: u32,
    pub(super) value_size: u32,
    pub(super) max_entries: u32,
    pub(super) flags: u32,
}

/// What the kernel says about a program (`struct bpf_prog_info`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProgramInfo {
    pub(super) kind: u32,
    pub(super) id: u32,
}

/// What the kernel says about a link (`struct bpf_link_info`); the last two for TCX.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkInfo {
    pub(super) kind: u32,
    pub(super) id: u32,
    pub(super) program_id: u32,
    padding: u32,
    pub(super) ifindex: u32,
    pub(super) attach_type: u32,
}

#[repr(C)]
#[derive(Default)]
struct Element {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct Pin {
    path: u64,
    fd: u32,
    flags: u32,
}

#[repr(C)]
struct Information {
    fd: u32,
    len: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct Query {
    ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    program_ids: u64,
    count: u32,
    padding: u32,
    program_flags: u64,
    link_ids: u64,
    link_flags: u64,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct CreateLink {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
    relative: u32,
    padding: u32,
    revision: u64,
}

#[repr(C)]
#[derive(Default)]
struct UpdateLink {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

/// Makes the call; what it returns if that is not an error.
///
/// # Safety
///
/// `A` is laid out as the beginning of `union bpf_attr` for `command`, its padding is zero, and every pointer in it is
/// valid for what the command reads or writes there.
unsafe fn bpf<A>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_int> {
    // SAFETY: the caller vouches for the attributes; their size goes with them.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

/// As [`bpf`], for a command that returns a file descriptor.
///
/// # Safety
///
/// As for [`bpf`], and the command returns a new descriptor.
unsafe fn bpf_fd<A>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    // SAFETY: passed on to the caller.
    let fd = unsafe { bpf(command, attributes) }?;
    // SAFETY: the command has just made this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn number(fd: impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().cast_unsigned()
}

fn address<T>(value: *const T) -> u64 {
    value as u64
}

fn terminated(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Opens a pin, which must be of this kind. `None` if there is none.
pub(super) fn open(at: &Path, kind: Kind) -> io::Result<Option<OwnedFd>> {
    let path = terminated(at)?;
    let mut pin = Pin { path: address(path.as_ptr()), fd: 0, flags: 0 };
    // SAFETY: the layout is OBJ_GET's, the path is a live C string, and the command returns a new descriptor.
    let fd = match unsafe { bpf_fd(OBJ_GET, &mut pin) } {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // The kernel speaks of permissions where there is no object.
        Err(_) if fs::symlink_metadata(at).is_ok_and(|metadata| !metadata.is_file()) => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is no pin"));
        }
        fd => fd?,
    };
    // The kernel answers questions about any object, in a struct that depends on what it is. What that is stands in
    // the name of the file.
    let name = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))?;
    // Links are called `bpf-link` or `bpf_link`, depending on how the descriptor came to be.
    let name = name.to_string_lossy().replace('_', "-");
    let expected = match kind {
        Kind::Map => "anon-inode:bpf-map",
        Kind::Program => "anon-inode:bpf-prog",
        Kind::Link => "anon-inode:bpf-link",
    };
    if name == expected {
        return Ok(Some(fd));
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, format!("is `{name}`, not `{expected}`")))
}

/// Pins an object.
pub(super) fn pin(fd: impl AsFd, path: &Path) -> io::Result<()> {
    let path = terminated(path)?;
    let mut pin = Pin { path: address(path.as_ptr()), fd: number(fd), flags: 0 };
    // SAFETY: the layout is OBJ_PIN's and the path is a live C string.
    unsafe { bpf(OBJ_PIN, &mut pin) }.map(drop)
}

/// Asks what an object is; `T` is the beginning of the struct for its kind.
fn information<T: Plain + Default>(fd: BorrowedFd<'_>) -> io::Result<T> {
    let mut info = T::default();
    let mut ask = Information { fd: number(fd), len: size_of::<T>() as u32, info: address(&raw mut info) };
    // SAFETY: the layout is OBJ_GET_INFO_BY_FD's; the kernel writes at most `len` bytes to `info`, and any are a `T`.
    unsafe { bpf(OBJ_GET_INFO_BY_FD, &mut ask) }?;
    Ok(info)
}

/// A map, with what the kernel says about it: that never changes.
#[derive(Debug)]
pub(super) struct Map {
    fd: OwnedFd,
    info: MapInfo,
}

impl Map {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        let info = information(fd.as_fd())?;
        Ok(Self { fd, info })
    }

    pub(super) const fn info(&self) -> &MapInfo {
        &self.info
    }

    /// The value at an index.
    pub(super) fn lookup<T: Plain>(&self, index: u32) -> io::Result<T> {
        self.holds::<T>()?;
        let mut value = MaybeUninit::<T>::uninit();
        let mut element = self.element(&index, value.as_mut_ptr());
        // SAFETY: the layout is that of a lookup; keys are four bytes, and the kernel writes the value, whose size was
        // compared, to `value`.
        unsafe { bpf(MAP_LOOKUP_ELEM, &mut element) }?;
        // SAFETY: the kernel has written all of it, and any bytes are a `T`.
        Ok(unsafe { value.assume_init() })
    }

    /// Overwrites the value at an index, in one step as far as a killed process is concerned.
    pub(super) fn update<T: Plain>(&self, index: u32, value: &T) -> io::Result<()> {
        self.holds::<T>()?;
        let mut element = self.element(&index, &raw const *value);
        // SAFETY: the layout is that of an update; the kernel reads a key of four bytes and the value, whose size was
        // compared.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut element) }.map(drop)
    }

    fn element<T>(&self, index: &u32, value: *const T) -> Element {
        Element { map: number(&self.fd), key: address(index), value: address(value), ..Element::default() }
    }

    /// Whether the map's keys are indices and its values `T`s of whole words.
    fn holds<T>(&self) -> io::Result<()> {
        let MapInfo { key_size, value_size, .. } = self.info;
        if key_size == 4 && value_size as usize == size_of::<T>() && value_size % 8 == 0 {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, format!("the map has values of {value_size} bytes")))
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Asks about a program.
pub(super) fn program_info(program: BorrowedFd<'_>) -> io::Result<ProgramInfo> {
    information(program)
}

/// Asks about a link.
pub(super) fn link_info(link: BorrowedFd<'_>) -> io::Result<LinkInfo> {
    information(link)
}

/// Attaches a program to a device by a link.
pub(super) fn create_link(program: impl AsFd, ifindex: u32, attach_type: u32, flags: u32) -> io::Result<OwnedFd> {
    let mut link = CreateLink { program: number(program), ifindex, attach_type, flags, ..CreateLink::default() };
    // SAFETY: the layout is LINK_CREATE's for TCX, without pointers, and the command returns a new descriptor.
    unsafe { bpf_fd(LINK_CREATE, &mut link) }
}

/// Replaces the program of a link, in one step.
pub(super) fn update_link(link: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let mut update = UpdateLink { link: number(link), program: number(program), ..UpdateLink::default() };
    // SAFETY: the layout is LINK_UPDATE's, without pointers.
    unsafe { bpf(LINK_UPDATE, &mut update) }.map(drop)
}

/// Detaches a link for good, however many pins and descriptors it has.
pub(super) fn detach_link(link: impl AsFd) -> io::Result<()> {
    let mut fd = number(link);
    // SAFETY: LINK_DETACH takes a descriptor alone.
    unsafe { bpf(LINK_DETACH, &mut fd) }.map(drop)
}

/// Ids of the links on a hook of a device in this thread's network namespace.
pub(super) fn links(ifindex: u32, attach_type: u32) -> io::Result<Vec<u32>> {
    let mut programs = [0u32; MOST_LINKS];
    let mut links = [0u32; MOST_LINKS];
    let mut query = Query {
        ifindex,
        attach_type,
        program_ids: address(programs.as_mut_ptr()),
        count: MOST_LINKS as u32,
        link_ids: address(links.as_mut_ptr()),
        ..Query::default()
    };
    // SAFETY: the layout is PROG_QUERY's; the kernel writes at most `count` ids to each of the two arrays.
    unsafe { bpf(PROG_QUERY, &mut query) }?;
    // A program that was attached without a link has id 0 here.
    Ok(links.into_iter().take(query.count as usize).filter(|id| *id != 0).collect())
}

/// Waits until every program that runs now has ended: what is written afterwards is read by none that started before.
pub(super) fn wait_for_programs() {
    /// Programs run inside an RCU read-side section, and this command waits for all of those.
    const MEMBARRIER_CMD_GLOBAL: libc::c_int = 1;
    // SAFETY: the call takes numbers only.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if result != 0 {
        // Not built in, or refused because some CPUs run without ticks. No packet is on its way through a program for
        // anything near this long: softirqs run to their end, and a program ends after microseconds.
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}
