//! The tool: from what was typed to what the kernel does, and back to what people and programs read.
//!
//! A command goes through the modules from left to right: [`args`] (what was typed) -> [`plan`] (what that means,
//! worked out without a kernel) -> [`command`] (does it, through [`net`], [`state`] and [`kernel`]) -> [`render`] (says
//! it). They share the types of [`model`] and fail with an [`error::Error`].

pub mod args;
pub mod command;
pub mod compile;
pub mod config;
pub mod error;
pub mod kernel;
pub mod model;
mod near;
pub mod net;
pub mod plan;
pub mod render;
mod shell;
pub mod state;
mod text;

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
                writeln!(text::Shown(err), "{label}: {}", text.replace('\n', " ")).ok();
            }
            error.exit_code()
        }
    }
}

fn carry_out(args: impl IntoIterator<Item = OsString>, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8> {
    let status = match args::parse(args) {
        Ok(cli) => match command::run(&cli, out, err) {
            Ok(()) => 0,
            Err(answer @ Error::Different) => answer.exit_code(),
            Err(error) => return Err(error),
        },
        Err(Stop::Show(text)) => out.write_all(text.as_bytes()).map(|()| 0).map_err(Error::Output)?,
        Err(Stop::Help(text)) => err.write_all(text.as_bytes()).map(|()| USAGE).map_err(Error::Output)?,
        Err(Stop::Fail(error)) => return Err(error),
    };
    out.flush().map_err(Error::Output)?;
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that fails.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    fn run_into(line: &str, out: &mut dyn Write) -> (u8, String) {
        let mut err = Vec::new();
        let status = run(line.split(' ').map(OsString::from), out, &mut err);
        (status, String::from_utf8_lossy(&err).into_owned())
    }

    #[test]
    fn help_and_version_are_results() {
        let mut out = Vec::new();
        assert_eq!(run_into("shaper attach --help", &mut out), (0, String::new()));
        assert!(String::from_utf8_lossy(&out).contains("shaper attach [OPTIONS] <--rate|--pps|"));
        let mut out = Vec::new();
        assert_eq!(run_into("shaper --version", &mut out), (0, String::new()));
        assert_eq!(String::from_utf8_lossy(&out), concat!("shaper ", env!("CARGO_PKG_VERSION"), "\n"));
    }

    #[test]
    fn asking_for_nothing_shows_what_there_is() {
        let mut out = Vec::new();
        let (status, err) = run_into("shaper", &mut out);
        assert_eq!((status, out.len()), (1, 0));
        assert!(err.contains("Usage: shaper [OPTIONS] <COMMAND>"), "{err}");
    }

    #[test]
    fn errors_are_two_lines_on_the_error_output() {
        let mut out = Vec::new();
        let expected = "error: `--json`: only status, stats, flows, rule list and explain print JSON\n \
                        hint: leave it out; `shaper --json status` shows the result of a change\n";
        assert_eq!(run_into("shaper -j attach eth0 --rate 1gbit", &mut out), (1, expected.to_owned()));
        assert!(out.is_empty());
    }

    #[test]
    fn a_reader_that_has_seen_enough_is_no_failure() {
        assert_eq!(run_into("shaper --help", &mut Broken(io::ErrorKind::BrokenPipe)), (0, String::new()));
        let (status, err) = run_into("shaper --help", &mut Broken(io::ErrorKind::StorageFull));
        assert_eq!(status, 2);
        assert!(err.starts_with("error: the output cannot be written: "), "{err}");
    }
}
