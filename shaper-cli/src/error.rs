//! What can go wrong, for the person who reads it at night: one line of cause, one line of what to do.

use std::{borrow::Cow, io};

use shaper_common::units;

use crate::{model::Direction, shell};

/// Result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failure. `Display` is the cause and [`Error::hint`] what to do, one line each.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line asks for something that cannot be.
    #[error("`{token}`: {cause}")]
    Usage {
        /// The word at fault.
        token: String,
        /// What is wrong with it.
        cause: String,
        /// What to write instead.
        hint: String,
    },
    /// A file was found wrong; what is wrong with it has been said, place by place.
    #[error("{file}: {}", counted(*errors))]
    File {
        /// The file.
        file: String,
        /// How many errors it has.
        errors: usize,
    },
    /// `diff` has shown what differs. This is an answer, and not said as an error.
    #[error("what is attached differs from the file")]
    Different,
    /// No device of this name in the selected network namespace.
    #[error("no network device `{name}`")]
    NoSuchDevice {
        /// The name asked for.
        name: String,
        /// A device whose name is close.
        suggestion: Option<String>,
    },
    /// No network namespace of this name.
    #[error("no network namespace `{name}`")]
    NoSuchNamespace {
        /// The name asked for.
        name: String,
    },
    /// Nothing of ours is there.
    #[error("nothing is attached to {}", place(dev, *direction))]
    NotAttached {
        /// The device.
        dev: String,
        /// The direction, if one was asked for.
        direction: Option<Direction>,
    },
    /// What is there no longer limits anything.
    #[error("the attachment to {} is gone: its device or its program has vanished", place(dev, Some(*direction)))]
    Gone {
        /// The device.
        dev: String,
        /// The direction.
        direction: Direction,
    },
    /// The kernel said no.
    #[error("{what}{}", because(source.as_ref()))]
    Kernel {
        /// What was tried.
        what: String,
        /// What the kernel answered.
        source: Option<io::Error>,
        /// What to do.
        hint: String,
    },
    /// The process may not do this.
    #[error("not permitted: {what}")]
    Privilege {
        /// What was tried.
        what: String,
    },
    /// The process may not use a file.
    #[error("not permitted: {what}")]
    Denied {
        /// What was tried.
        what: String,
    },
    /// Somebody else holds what is needed.
    #[error("busy: {what}")]
    Busy {
        /// What is held, and by whom if that is known.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The pinned state is damaged or of another version.
    #[error("the pinned state cannot be used: {what}")]
    State {
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: String,
    },
    /// The output could not be written.
    #[error("the output cannot be written: {0}")]
    Output(#[source] io::Error),
    /// A file or a socket could not be read or written.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system answered.
        source: io::Error,
    },
}

/// A word that was refused, before it is known where it stands on the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Invalid {
    cause: String,
    hint: String,
}

impl Invalid {
    /// A word refused for `cause`, with the `hint` what to write instead.
    pub fn new(cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { cause: cause.into(), hint: hint.into() }
    }

    /// What to write instead.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }

    /// The failure if the word was given for `option`.
    #[must_use]
    pub fn given_for(&self, option: &str) -> Error {
        Error::usage(option, self.cause.as_str(), self.hint.as_str())
    }
}

impl From<units::Error<'_>> for Invalid {
    fn from(error: units::Error<'_>) -> Self {
        Self::new(error.to_string(), error.hint().to_string())
    }
}

impl Error {
    /// A refused word or combination of words.
    pub(crate) fn usage(token: impl Into<String>, cause: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { token: token.into(), cause: cause.into(), hint: hint.into() }
    }

    /// Turns the failure of a system call into [`Error::Io`], or [`Error::Privilege`] or [`Error::Denied`] if that was
    /// the cause.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| match source.kind() {
            // Capabilities that are missing are EPERM.
            _ if source.raw_os_error() == Some(libc::EACCES) => Self::Denied { what: what.into() },
            io::ErrorKind::PermissionDenied => Self::Privilege { what: what.into() },
            _ => Self::Io { what: what.into(), source },
        }
    }

    /// Turns the kernel's refusal into [`Error::Kernel`], or [`Error::Privilege`] if that was the cause.
    pub(crate) fn kernel(what: impl Into<String>, hint: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege { what: what.into() },
            _ => Self::Kernel { what: what.into(), source: Some(source), hint: hint.into() },
        }
    }

    /// The word at fault, if it is one that was typed.
    pub(crate) fn token(&self) -> Option<&str> {
        if let Self::Usage { token, .. } = self { Some(token) } else { None }
    }

    /// What is wrong, without that word.
    pub(crate) fn cause(&self) -> String {
        if let Self::Usage { cause, .. } = self { cause.clone() } else { self.to_string() }
    }

    /// What to do about it, one line.
    #[must_use]
    pub fn hint(&self) -> Cow<'_, str> {
        match self {
            Self::Usage { hint, .. }
            | Self::Kernel { hint, .. }
            | Self::Busy { hint, .. }
            | Self::State { hint, .. } => hint.into(),
            Self::File { .. } => "nothing was changed; correct what is marked above".into(),
            Self::Different => "`shaper apply` makes it what the file says".into(),
            Self::NoSuchDevice { suggestion: Some(near), .. } => format!("did you mean `{near}`?").into(),
            Self::NoSuchDevice { suggestion: None, .. } => {
                "`ip link` lists the devices; another network namespace is selected with `-n NAME`".into()
            }
            Self::NoSuchNamespace { .. } => "`ip netns list` lists the namespaces".into(),
            Self::NotAttached { dev, .. } => format!(
                "`shaper status` lists what is; `{}` attaches",
                shell::line(None, "attach", dev, " --rate RATE")
            )
            .into(),
            Self::Gone { dev, direction } => {
                let line = shell::line(None, "detach", dev, &format!(" --direction {direction}"));
                format!("`{line}` removes what is left of it").into()
            }
            Self::Privilege { .. } => {
                "run it as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON".into()
            }
            Self::Denied { .. } => "run it as root; other users need access to /run/shaper and the bpffs, or \
                                    CAP_DAC_OVERRIDE, besides CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
                .into(),
            Self::Output(_) => "what was asked for has been done; see where the output goes".into(),
            Self::Io { .. } => "see that the path exists, may be written and has room".into(),
        }
    }

    /// The status the process exits with: 1 usage, 2 the kernel or the system refused, 3 not attached, 4 privilege, 6
    /// different.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } | Self::File { .. } | Self::NoSuchDevice { .. } | Self::NoSuchNamespace { .. } => 1,
            Self::Kernel { .. } | Self::Busy { .. } | Self::State { .. } | Self::Io { .. } | Self::Output(_) => 2,
            Self::NotAttached { .. } | Self::Gone { .. } => 3,
            Self::Privilege { .. } | Self::Denied { .. } => 4,
            Self::Different => 6,
        }
    }
}

fn place(dev: &str, direction: Option<Direction>) -> String {
    match direction {
        Some(direction) => format!("{dev} {direction}"),
        None => dev.to_owned(),
    }
}

fn counted(errors: usize) -> String {
    format!("{errors} error{}", if errors == 1 { "" } else { "s" })
}

fn because(source: Option<&io::Error>) -> String {
    source.map_or_else(String::new, |source| format!(": {source}"))
}
