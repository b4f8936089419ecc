//! The tool: from what was typed to what the kernel does, and back to what people and programs read.
//!
//! A command goes through the modules from left to right: [`args`] (what was typed) -> [`plan`] (what that means,
//! worked out without a kernel) -> [`command`] (does it, through `net` and `kernel`) -> [`render`] (says it). They
//! share the types of [`model`] and fail with an [`error::Error`].

pub mod args;
pub mod error;
pub mod model;
pub mod plan;
pub mod render;

use std::{ffi::OsString, io::Write};

/// Runs one command line, the program's name first. Returns the status to exit with.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let _ = (args.into_iter(), out, err);
    0
}
