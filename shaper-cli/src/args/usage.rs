//! The command line's own errors, in the form of all others: a cause and a hint of one line each.

use std::{error::Error as _, ffi::OsString};

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, Command, LimitArgs};
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
    let args: Vec<OsString> = args.into_iter().collect();
    // The program's own name may be what it likes.
    let unreadable = args.iter().skip(1).find(|word| word.to_str().is_none());
    if let Some(word) = unreadable {
        return Err(Stop::Fail(Error::usage(word.to_string_lossy(), "is not UTF-8", "write it in UTF-8")));
    }
    let cli = Cli::try_parse_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Stop::Show(error.render().to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Stop::Help(error.render().to_string()),
        _ => Stop::Fail(translate(&error)),
    })?;
    match &cli.command {
        Command::Set(set) if set.limits == LimitArgs::default() => Err(Stop::Fail(Error::usage(
            format!("set {}", set.dev),
            "no limit is named",
            "name what is to change, like --rate RATE; `shaper set --help` lists the limits",
        ))),
        _ => Ok(cli),
    }
}

fn translate(error: &clap::Error) -> Error {
    let words = |kind| error.get(kind).map(words).unwrap_or_default();
    let word = |kind| words(kind).into_iter().next().filter(|word| !word.is_empty());
    let arguments: Vec<String> = words(ContextKind::InvalidArg).iter().map(|argument| name(argument)).collect();
    let argument = arguments.join(", ");
    let usage = || match word(ContextKind::Usage) {
        Some(usage) => usage.split_whitespace().collect::<Vec<_>>().join(" ").replacen("Usage", "usage", 1),
        None => "`shaper COMMAND --help` lists the options of a command".to_owned(),
    };
    let meant = |kind| match words(kind) {
        near if near.is_empty() => usage(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    match error.kind() {
        ErrorKind::ValueValidation => match error.source().and_then(|source| source.downcast_ref::<Invalid>()) {
            Some(invalid) => invalid.given_for(&argument),
            None => Error::usage(argument, error.source().map_or_else(String::new, ToString::to_string), usage()),
        },
        ErrorKind::InvalidValue => match word(ContextKind::InvalidValue) {
            Some(value) => {
                let values = format!("values: {}", words(ContextKind::ValidValue).join(", "));
                Error::usage(argument, format!("`{value}` is not one of its values"), values)
            }
            None => Error::usage(argument, "its value is missing", usage()),
        },
        ErrorKind::TooManyValues => Error::usage(argument, "takes no value", usage()),
        ErrorKind::UnknownArgument => {
            Error::usage(argument, "this command has no such argument", meant(ContextKind::SuggestedArg))
        }
        ErrorKind::InvalidSubcommand => Error::usage(
            word(ContextKind::InvalidSubcommand).unwrap_or_default(),
            "no such command",
            meant(ContextKind::SuggestedSubcommand),
        ),
        ErrorKind::MissingRequiredArgument => Error::usage(argument, "missing", usage()),
        ErrorKind::ArgumentConflict => {
            let prior = word(ContextKind::PriorArg).map(|prior| name(&prior)).unwrap_or_default();
            if prior == argument {
                Error::usage(argument, "given more than once", "give it once")
            } else {
                Error::usage(argument, format!("cannot go with `{prior}`"), "leave out one of the two")
            }
        }
        _ => {
            let rendered = error.render().to_string();
            let first = rendered.lines().next().unwrap_or_default();
            Error::usage("shaper", first.trim_start_matches("error: "), usage())
        }
    }
}

/// How an argument is named: `--rate` for `--rate <RATE>`, `DEV` for `<DEV>` and `[DEV]`, `DEV|--all` for a group.
fn name(shown: &str) -> String {
    let bare = match shown.strip_prefix(['<', '[']) {
        Some(rest) => rest.trim_end_matches(['>', ']', '.']),
        None => shown,
    };
    let mut depth = 0_usize;
    bare.chars()
        .filter(|c| {
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                ' ' => {}
                _ => return depth == 0,
            }
            false
        })
        .collect()
}

fn words(value: &ContextValue) -> Vec<String> {
    match value {
        ContextValue::String(word) => vec![word.clone()],
        ContextValue::Strings(words) => words.clone(),
        ContextValue::StyledStr(text) => vec![text.to_string()],
        ContextValue::StyledStrs(texts) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    const ATTACH: &str = "usage: shaper attach [OPTIONS] <--rate RATE|--pps N|--total RATE|--block> <DEV>";

    fn failure(line: &str) -> [String; 2] {
        failure_of(line.split(' ').filter(|word| !word.is_empty()).map(OsString::from))
    }

    fn failure_of(words: impl Iterator<Item = OsString>) -> [String; 2] {
        match parse([OsString::from("shaper")].into_iter().chain(words)) {
            Err(Stop::Fail(error)) => {
                assert_eq!(error.exit_code(), 1);
                [error.to_string(), error.hint().into_owned()]
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn errors_name_the_word_and_say_what_to_do() {
        for (line, cause, hint) in [
            (
                "attach eth0 --rate 10mbps",
                "`--rate`: `mbps` in `10mbps`: tc reads this as bytes/s, most others as bits/s",
                "write `10mbit` or `10MB/s`",
            ),
            (
                "attach eth0 --rate -5mbit",
                "`--rate`: `-5mbit` is not a rate: it does not start with a plain number",
                "write digits and a unit, like 100mbit, 1.5gbit or 12MB/s: no sign, exponent, space or comma",
            ),
            ("set eth0 --burst 0", "`--burst`: `0` is not a burst: it is zero", "the smallest burst is 1b"),
            ("attach eth0", "`--rate|--pps|--total|--block`: missing", ATTACH),
            ("attach eth0 --burst 64kb", "`--rate|--pps|--total|--block`: missing", ATTACH),
            ("attach --rate 1gbit", "`DEV`: missing", ATTACH),
            (
                "attach eth0 --pps 0",
                "`--pps`: `0` is not a packet rate: it is zero",
                "the smallest packet rate is 1pps",
            ),
            (
                "attach eth0 --pps 10kpps --pps-burst 64kb",
                "`--pps-burst`: `kb` in `64kb` is not a unit of a packet burst",
                "units: none for packets, or time at the rate: ns, us, ms, s",
            ),
            ("attach eth0 --rate 1gbit --soft 10", "`--soft`: `` in `10` is not a unit of a share", "units: %"),
            (
                "attach eth0 --rate 1gbit --soft 10% --peak 2gbit",
                "`--soft`: cannot go with `--peak`",
                "leave out one of the two",
            ),
            (
                "attach eth0 --rate 1gbit --exceed dscp=CS9",
                "`--exceed`: `CS9` in `dscp=CS9` is not a code point",
                "code points: CS0 to CS7, AF11 to AF43, EF, VA, LE, DF, or 0 to 63",
            ),
            (
                "attach eth0 --rate 1gbit --violate mark",
                "`--violate`: `mark` is not an action",
                "actions: drop, pass, ecn, dscp=NAME or dscp=N, mark=N",
            ),
            ("attach eth0 --block --pps 5", "`--block`: cannot go with `--pps`", "leave out one of the two"),
            ("set eth0 --block --exceed drop", "`--block`: cannot go with `--exceed`", "leave out one of the two"),
            (
                "attach eth0 --rate",
                "`--rate`: its value is missing",
                "`shaper COMMAND --help` lists the options of a command",
            ),
            ("attach eth0 --rat 1gbit", "`--rat`: this command has no such argument", "did you mean `--rate`?"),
            ("attach eth0 --rate 8 --rate 9", "`--rate`: given more than once", "give it once"),
            ("attach eth0 eth1 --rate 1gbit", "`eth1`: this command has no such argument", ATTACH),
            (
                "attach eth0 --rate 1gbit --hook xdp",
                "`--hook`: `xdp` is not one of its values",
                "values: auto, tcx, clsact",
            ),
            (
                "attach eth0 --rate 1gbit --overflow all",
                "`--overflow`: `all` is not one of its values",
                "values: shared, open, closed",
            ),
            (
                "attach eth0 --rate 1gbit --max-flows +5",
                "`--max-flows`: `+5` is not a whole number in range",
                "write 1 to 16777216",
            ),
            (
                "attach eth0 --rate 1gbit --max-flows 16777217",
                "`--max-flows`: `16777217` is not a whole number in range",
                "write 1 to 16777216",
            ),
            (
                "attach eth0 --rate 1gbit --max-flows -1",
                "`--max-flows`: `-1` is not a whole number in range",
                "write 1 to 16777216",
            ),
            ("attach eth0 --rate 1gbit --mpu -1", "`--mpu`: `-1` is not a whole number in range", "write 0 to 256"),
            ("flows --top -1", "`--top`: `-1` is not a whole number in range", "write 1 to 18446744073709551615"),
            (
                "attach eth0 --rate 1gbit --overhead -65",
                "`--overhead`: `-65` is not a whole number in range",
                "write -64 to 256",
            ),
            (
                "attach eth0 --rate 1gbit --per src/0",
                "`--per`: `src/0`: a prefix of 0 bits is the same for everybody",
                "lengths start at 1; one bucket for all is `--per dev`",
            ),
            (
                "set eth0",
                "`set eth0`: no limit is named",
                "name what is to change, like --rate RATE; `shaper set --help` lists the limits",
            ),
            ("detach", "`DEV|--all`: missing", "usage: shaper detach <DEV|--all>"),
            ("detach eth0 --all", "`DEV`: cannot go with `--all`", "leave out one of the two"),
            ("stat", "`stat`: no such command", "did you mean `set` or `status` or `stats`?"),
            (
                "status --dry-run",
                "`--dry-run`: this command has no such argument",
                "usage: shaper status [OPTIONS] [DEV]",
            ),
        ] {
            assert_eq!(failure(line), [cause, hint], "{line}");
        }
    }

    #[test]
    fn a_word_that_is_not_utf_8_is_named() {
        use std::os::unix::ffi::OsStringExt as _;
        let bad = || OsString::from_vec(b"et\xffh0".to_vec());
        let named = ["`et\u{fffd}h0`: is not UTF-8", "write it in UTF-8"];
        for before in ["", "-n", "attach", "attach eth0 --rate", "attach eth0 --max-flows", "stats"] {
            let words = before.split(' ').filter(|word| !word.is_empty()).map(OsString::from);
            assert_eq!(failure_of(words.chain([bad()])), named, "{before}");
        }
    }

    #[test]
    fn every_command_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_line_of_any_help_is_wider_than_80_columns() {
        for command in ["", "attach", "set", "detach", "status", "stats", "flows"] {
            for option in ["-h", "--help"] {
                let words = ["shaper", command, option].into_iter().filter(|word| !word.is_empty());
                let Err(Stop::Show(text)) = parse(words.map(OsString::from)) else { panic!("`{command}`: no help") };
                for line in text.lines() {
                    assert!(line.chars().count() <= 80, "`{command}` {option}: {line}");
                }
            }
        }
        // What is broken by hand is not broken again.
        let root = Cli::command();
        for command in std::iter::once(&root).chain(root.get_subcommands()) {
            for line in command.get_after_help().map(ToString::to_string).unwrap_or_default().lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }
}
