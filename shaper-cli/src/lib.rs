//! The tool: from what was typed to what the kernel does, and back to what people and programs read.
//!
//! A command goes through the modules from left to right: [`args`] (what was typed) -> [`plan`] (what that means,
//! worked out without a kernel) -> [`command`] (does it, through [`net`], [`state`] and [`kernel`]) -> [`render`] (says
//! it). They share the types of [`model`] and fail with an [`error::Error`].

pub mod args;
pub mod command;
pub mod error;
pub mod kernel;
pub mod model;
pub mod net;
pub mod plan;
pub mod render;
pub mod state;

use std::{
    ffi::OsString,
    io::{self, Write},
};

use crate::{
    args::Stop,
    error::{Error, Result},
};

/// Status of a command line that asks for nothing.
const USAGE: u8 = 1;

/// Runs one command line, the program's name first. Returns the status to exit with.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    match carry_out(args, out, err) {
        Ok(status) => status,
        // Whoever reads has seen enough, as `head` has.
        Err(Error::Output(source)) if source.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            let lines = [("error", error.to_string()), (" hint", error.hint().into_owned())];
            for (label, text) in lines {
                // The exit status is left to tell if this fails.
                writeln!(err, "{label}: {}", text.replace('\n', " ")).ok();
            }
            error.exit_code()
        }
    }
}

fn carry_out(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let status = match args::parse(args) {
        Ok(cli) => command::run(&cli, out, err).map(|()| 0)?,
        Err(Stop::Show(text)) => out.write_all(text.as_bytes()).map(|()| 0).map_err(Error::Output)?,
        Err(Stop::Help(text)) => err.write_all(text.as_bytes()).map(|()| USAGE).map_err(Error::Output)?,
        Err(Stop::Fail(error)) => return Err(error),
    };
    out.flush().map_err(Error::Output)?;
    Ok(status)
}
