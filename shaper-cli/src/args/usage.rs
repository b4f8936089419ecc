//! The command line's own errors, in the form of all others: a cause and a hint of one line each.

use std::{error::Error as _, ffi::OsString};

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::{Cli, Command, LimitArgs, RuleCommand, RuleWords};
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
    let mut args: Vec<OsString> = args.into_iter().collect();
    // An arrow between the addresses of a packet would be taken for an option.
    if let Some(explain) = args.iter().position(|word| word == "explain") {
        args[explain..].iter_mut().filter(|word| *word == "->").for_each(|word| *word = "to".into());
    }
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
        Command::Rule(rule) => match &rule.command {
            RuleCommand::Replace(args) if args.words == RuleWords::default() => Err(no_rule("replace", &args.dev)),
            RuleCommand::Del(args) if args.words == RuleWords::default() => Err(no_rule("del", &args.dev)),
            _ => Ok(cli),
        },
        _ => Ok(cli),
    }
}

/// A command about a rule that does not say which.
fn no_rule(command: &str, dev: &str) -> Stop {
    Stop::Fail(Error::usage(
        format!("rule {command} {dev}"),
        "no rule is named",
        "name it with --name NAME, or say what it matches; `shaper rule list DEV` lists the rules",
    ))
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

    const ATTACH: &str = "usage: shaper attach [OPTIONS] <--rate|--pps|--total|--block|--unlimited> <DEV>";

    const RULE_ADD: &str =
        "usage: shaper rule add [OPTIONS] <--rate|--pps|--total|--block|--unlimited> <DEV> [CIDR]...";

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
            ("attach eth0", "`--rate|--pps|--total|--block|--unlimited`: missing", ATTACH),
            ("attach eth0 --burst 64kb", "`--rate|--pps|--total|--block|--unlimited`: missing", ATTACH),
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
            ("check", "`FILE`: missing", "usage: shaper check <FILE>"),
            ("diff a b", "`b`: this command has no such argument", "usage: shaper diff [OPTIONS] <FILE>"),
            ("apply", "`--file`: missing", "usage: shaper apply --file <FILE>"),
            (
                "apply shaper.toml",
                "`shaper.toml`: this command has no such argument",
                "usage: shaper apply [OPTIONS] --file <FILE>",
            ),
            ("apply -f", "`--file`: its value is missing", "`shaper COMMAND --help` lists the options of a command"),
            ("save eth0 eth1", "`eth1`: this command has no such argument", "usage: shaper save [OPTIONS] [DEV]"),
            (
                "attach eth0 --unlimited --rate 1gbit",
                "`--unlimited`: cannot go with `--rate`",
                "leave out one of the two",
            ),
            ("set eth0 --block --unlimited", "`--block`: cannot go with `--unlimited`", "leave out one of the two"),
            ("rule ad", "`ad`: no such command", "did you mean `add`?"),
            ("rule add eth0", "`--rate|--pps|--total|--block|--unlimited`: missing", RULE_ADD),
            ("rule add --block", "`DEV`: missing", RULE_ADD),
            ("rule add eth0 10.20.0.1/16 --block", "`CIDR`: `10.20.0.1/16` has host bits", "write `10.20.0.0/16`"),
            (
                "rule add eth0 guests --block",
                "`CIDR`: `guests` is not an IP address",
                "write an address or a prefix, like 192.0.2.7, 10.20.0.0/16 or 2001:db8:20::/48",
            ),
            (
                "rule add eth0 --block --port 0",
                "`--port`: `0` is not a port",
                "write 1 to 65535, or a range like 1000-2000",
            ),
            ("rule add eth0 --block --port 9-5", "`--port`: `9-5` ends before it begins", "write `5-9`"),
            (
                "rule add eth0 --block --port 53 --dport 53",
                "`--port`: cannot go with `--dport`",
                "leave out one of the two",
            ),
            (
                "rule add eth0 --block --proto http",
                "`--proto`: `http` is not a protocol",
                "protocols: tcp, udp, icmp, icmpv6, sctp, dccp, udplite, gre, esp, ah and so on, or 0 to 255",
            ),
            ("rule add eth0 --block --side left", "`--side`: `left` is not one of its values", "values: remote, local"),
            (
                "rule add eth0 --block --name default",
                "`--name`: `default` is what no rule matches",
                "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`",
            ),
            (
                "rule add eth0 --block --name -x",
                "`--name`: `-x` looks like an option",
                "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`",
            ),
            (
                "rule add eth0 --unlimited --total 1gbit",
                "`--unlimited`: cannot go with `--total`",
                "leave out one of the two",
            ),
            ("rule add eth0 --block --max-flows 5", "`--max-flows`: this command has no such argument", RULE_ADD),
            (
                "rule replace eth0 --rate 5mbit",
                "`rule replace eth0`: no rule is named",
                "name it with --name NAME, or say what it matches; `shaper rule list DEV` lists the rules",
            ),
            (
                "rule del eth0",
                "`rule del eth0`: no rule is named",
                "name it with --name NAME, or say what it matches; `shaper rule list DEV` lists the rules",
            ),
            (
                "rule add eth0 --name -> --block",
                "`--name`: `->` looks like an option",
                "names have 1 to 64 bytes that can be shown, no `-` first, and none is `default`",
            ),
            ("rule list", "`DEV`: missing", "usage: shaper rule list <DEV>"),
            ("stats --rule a --all", "`--rule`: cannot go with `--all`", "leave out one of the two"),
            ("explain eth0", "`PACKET`: missing", "usage: shaper explain <DEV> <PACKET>..."),
            (
                "explain eth0 udp 10.0.0.7:53 > 192.0.2.9:4000 --bytes 63",
                "`--bytes`: `63` is not a whole number in range",
                "write 64 to 65535",
            ),
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
        let root = Cli::command();
        let mut commands = vec![(String::new(), &root)];
        for command in root.get_subcommands() {
            commands.push((command.get_name().to_owned(), command));
            let inner = command.get_subcommands();
            commands.extend(inner.map(|inner| (format!("{} {}", command.get_name(), inner.get_name()), inner)));
        }
        assert!(commands.iter().any(|(name, _)| name == "rule add"));
        for (command, _) in &commands {
            for option in ["-h", "--help"] {
                let words = ["shaper"].into_iter().chain(command.split_whitespace()).chain([option]);
                let Err(Stop::Show(text)) = parse(words.map(OsString::from)) else { panic!("`{command}`: no help") };
                for line in text.lines() {
                    assert!(line.chars().count() <= 80, "`{command}` {option}: {line}");
                }
            }
        }
        // What is broken by hand is not broken again.
        for (_, command) in &commands {
            for line in command.get_after_help().map(ToString::to_string).unwrap_or_default().lines() {
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn a_packet_is_one_word_or_several() {
        for line in [
            "udp 10.0.0.7:53 > 192.0.2.9:4000 --bytes 64",
            "--bytes 64 udp 10.0.0.7:53 -> 192.0.2.9:4000",
            "udp 10.0.0.7:53 -> 192.0.2.9:4000 --bytes 64 -j",
        ] {
            let words = ["shaper", "explain", "eth0"].into_iter().chain(line.split(' ')).map(OsString::from);
            let Ok(Cli { command: Command::Explain(args), .. }) = parse(words) else { panic!("{line}") };
            assert_eq!((args.packet.len(), args.bytes), (4, 64), "{line}");
        }
        let Ok(Cli { command: Command::Explain(args), .. }) =
            parse(["shaper", "explain", "eth0", "udp 10.0.0.7:53 > 192.0.2.9:4000"].map(OsString::from))
        else {
            panic!("no packet")
        };
        assert_eq!((args.packet.len(), args.bytes), (1, 1514));
    }
}
