//! What outlives the tool: pins in a bpffs, one directory per attachment, with the record of who owns it, and the lock
//! that keeps two commands from changing them at once.

mod directory;
mod lock;
mod record;
mod room;
mod root;

pub(crate) use directory::{Directory, Place, Tree, entry};
pub(crate) use lock::Lock;
pub(crate) use record::{Owner, Record, Slot};
pub(crate) use room::Room;
pub(crate) use root::Root;

#[cfg(test)]
pub(crate) mod example;
