//! Programs: loaded from the object with aya, or opened from a pin.

use std::{
    fs, io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
};

use aya::{
    EbpfError, EbpfLoader,
    maps::MapError,
    programs::{ProgramError, SchedClassifier},
};
use shaper_common::abi::{Settings, map, program};

use super::{maps, object, pin, plain::Global, sys};
use crate::{
    error::{Error, Result},
    model::Direction,
    state::{Directory, Room},
};

/// `BPF_PROG_TYPE_SCHED_CLS`.
const CLASSIFIER: u32 = 3;

/// A loaded program.
#[derive(Debug)]
pub(super) struct Program {
    fd: OwnedFd,
    /// The number the kernel knows it by.
    pub(super) id: u32,
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where a program that is being loaded finds its maps.
pub(super) struct Source<'a> {
    /// Pins; those that are missing are created, those that are there must have been checked.
    pub(super) directory: &'a Directory,
    /// Maps that are to be created, to replace the present ones.
    pub(super) next: &'a [&'static str],
    /// How large maps are that are created.
    pub(super) room: &'a Room,
    /// Where a verifier log is saved.
    pub(super) run: &'a Path,
}

impl Program {
    /// Loads the program for a direction. Its maps are pinned when this returns; the program is not.
    pub(super) fn load(direction: Direction, settings: Settings, source: &Source<'_>) -> Result<Self> {
        let bytes = object::checked()?;
        let settings = Global(settings);
        let mut loader = EbpfLoader::new();
        loader.override_global(map::SETTINGS, &settings, true);
        loader.map_max_entries(map::FLOWS, settings.0.set_mask + 1);
        for (name, entries) in maps::sizes(source.room) {
            loader.map_max_entries(name, entries);
        }
        for name in map::PINNED {
            let path =
                if source.next.contains(&name) { source.directory.next(name) } else { source.directory.entry(name) };
            loader.map_pin_path(name, path);
        }
        let mut object = loader.load(bytes).map_err(|error| refused(error, source.run))?;
        let name = match direction {
            Direction::Ingress => program::TC_INGRESS,
            Direction::Egress => program::TC_EGRESS,
        };
        let missing = || Error::State {
            what: format!("the built-in BPF object has no program `{name}`"),
            hint: "rebuild it with `cargo xtask bpf`, then the tool".into(),
        };
        let program = object.program_mut(name).ok_or_else(missing)?;
        let fd = load(program).map_err(|error| refused(error.into(), source.run))?;
        let id = sys::program_info(fd.as_fd()).map_err(failed("ask about the program"))?.id;
        Ok(Self { fd, id })
    }

    /// Opens a pinned program. `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let Some(fd) = pin::open(path, sys::Kind::Program)? else { return Ok(None) };
        let info = sys::program_info(fd.as_fd()).map_err(failed("ask about the program"))?;
        if info.kind == CLASSIFIER {
            return Ok(Some(Self { fd, id: info.id }));
        }
        Err(pin::unusable(path, "is no classifier"))
    }
}

fn load(program: &mut aya::programs::Program) -> Result<OwnedFd, ProgramError> {
    let program: &mut SchedClassifier = program.try_into()?;
    program.load()?;
    Ok(program.fd()?.as_fd().try_clone_to_owned()?)
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    Error::kernel(what, "see `dmesg`")
}

/// Puts what aya says into one line, and a verifier log into a file.
fn refused(error: EbpfError, run: &Path) -> Error {
    match error {
        EbpfError::ProgramError(ProgramError::LoadError { io_error, verifier_log }) => {
            let log = verifier_log.to_string();
            if log.is_empty() || io_error.raw_os_error() == Some(libc::EPERM) {
                return Error::kernel("load the program", "see `dmesg`")(io_error);
            }
            if lacks_perfmon() {
                return Error::Privilege { what: "load the program without CAP_PERFMON".into() };
            }
            let path = run.join("verifier.log");
            let hint = match fs::write(&path, log) {
                Ok(()) => {
                    format!("the verifier's log is in {}; please report it with the kernel's version", path.display())
                }
                Err(error) => format!("the verifier's log could not be saved in {}: {error}", path.display()),
            };
            Error::Kernel { what: "the kernel's verifier refused the program".into(), source: Some(io_error), hint }
        }
        EbpfError::MapError(MapError::CreateError { name, io_error }) => Error::kernel(
            format!("create the map {name}"),
            "use a lower --max-flows or fewer rules, or give the machine more memory",
        )(io_error),
        error => match cause(&error) {
            Some(source) => Error::kernel(format!("load the program ({})", line(&error)), "see `dmesg`")(source),
            None => Error::Kernel {
                what: format!("the program cannot be loaded: {}", line(&error)),
                source: None,
                hint: "please report it with the kernel's version".into(),
            },
        },
    }
}

/// Whether this is a process whose programs the verifier holds to stricter rules, under which ours does not pass.
fn lacks_perfmon() -> bool {
    /// `CAP_PERFMON` and `CAP_SYS_ADMIN`, either of which will do.
    const ANY_OF: u64 = 1 << 38 | 1 << 21;
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & ANY_OF == 0)
}

/// The system's error at the bottom of a chain.
fn cause(error: &EbpfError) -> Option<io::Error> {
    let mut error: &dyn std::error::Error = error;
    loop {
        if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(io::Error::from_raw_os_error(code));
        }
        error = error.source()?;
    }
}

/// The first line of an error's text.
fn line(error: &EbpfError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
