//! The command line's own errors, in the form of all others: a cause and a hint of one line each.

use std::{error::Error as _, ffi::OsString};

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::Cli;
use crate::error::{Error, Invalid};

/// Why nothing is to be done.
#[derive(Debug)]
pub enum Stop {
    /// Help or version was asked for: this text.
    Show(String),
    /// No command was given: this help.
    Help(String),
    /// Something is wrong with the command line.
    Fail(Error),
}

/// Reads a command line, the program's name first.
///
/// # Errors
///
/// If there is nothing to do, or the command line is wrong.
pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Stop> {
    Cli::try_parse_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Show(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Stop::Help(error.render().to_string()),
        _ => Stop::Fail(translate(&error)),
    })
}

fn translate(error: &clap::Error) -> Error {
    let word = |kind| text(error.get(kind)?).filter(|text| !text.is_empty());
    let argument = word(ContextKind::InvalidArg).unwrap_or_default();
    // `--rate <RATE>` stands for the option; the option alone names it.
    let option = argument.split(' ').next().unwrap_or_default().to_owned();
    let usage = || match word(ContextKind::Usage) {
        Some(usage) => usage.split_whitespace().collect::<Vec<_>>().join(" "),
        None => "`shaper help` and `shaper COMMAND --help` list what can be asked for".to_owned(),
    };
    match error.kind() {
        ErrorKind::ValueValidation => match error.source().and_then(|source| source.downcast_ref::<Invalid>()) {
            Some(invalid) => invalid.given_for(&option),
            None => Error::usage(option, error.source().map_or_else(String::new, ToString::to_string), usage()),
        },
        ErrorKind::InvalidValue => {
            let values = word(ContextKind::ValidValue).unwrap_or_default();
            match word(ContextKind::InvalidValue) {
                Some(value) => {
                    Error::usage(option, format!("`{value}` is not one of its values"), format!("values: {values}"))
                }
                None => Error::usage(option, "its value is missing", usage()),
            }
        }
        ErrorKind::UnknownArgument => {
            let hint = match word(ContextKind::SuggestedArg) {
                Some(near) => format!("did you mean `{near}`?"),
                None => usage(),
            };
            Error::usage(argument, "this command has no such argument", hint)
        }
        ErrorKind::InvalidSubcommand => {
            let hint = match word(ContextKind::SuggestedSubcommand) {
                Some(near) => format!("did you mean `{near}`?"),
                None => usage(),
            };
            Error::usage(word(ContextKind::InvalidSubcommand).unwrap_or_default(), "no such command", hint)
        }
        ErrorKind::MissingRequiredArgument => Error::usage(argument, "missing", usage()),
        ErrorKind::ArgumentConflict => {
            let prior = word(ContextKind::PriorArg).unwrap_or_default();
            let cause =
                if prior == argument { "given more than once".to_owned() } else { format!("cannot go with `{prior}`") };
            Error::usage(argument, cause, usage())
        }
        _ => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            Error::usage(option, first.trim_start_matches("error: "), usage())
        }
    }
}

fn text(value: &ContextValue) -> Option<String> {
    Some(match value {
        ContextValue::String(word) => word.clone(),
        ContextValue::Strings(words) => words.join(", "),
        ContextValue::StyledStr(text) => text.to_string(),
        ContextValue::StyledStrs(texts) => texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        ContextValue::Bool(bool) => bool.to_string(),
        ContextValue::Number(number) => number.to_string(),
        _ => return None,
    })
}
