//! Actions in the words of `--exceed` and `--violate`.

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
use shaper_common::verdict::Action;

use crate::error::Invalid;

/// Names of code points; of several for one, the first is shown. RFC 2474 (CS, DF), 2597 (AF), 3246 (EF), 5865 (VA),
/// 8622 (LE).
const DSCP: [(&str, u8); 24] = [
    ("CS0", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

/// Largest code point.
const MOST_DSCP: u8 = 63;

/// Whether it is what happens if nobody names an action.
pub(super) fn is_default(action: &Action) -> bool {
    *action == Action::default()
}

/// Reads an action.
///
/// # Errors
///
/// If it is none.
pub fn parse(text: &str) -> Result<Action, Invalid> {
    let (kind, argument) = text.split_once('=').map_or((text, None), |(kind, argument)| (kind, Some(argument)));
    let is = |word: &str| kind.eq_ignore_ascii_case(word);
    match argument {
        None if is("drop") => Ok(Action::Drop),
        None if is("pass") => Ok(Action::Pass),
        None if is("ecn") => Ok(Action::Ecn),
        Some(name) if is("dscp") => dscp(name).map(Action::Dscp).ok_or_else(|| {
            Invalid::new(
                format!("`{name}` in `{text}` is not a code point"),
                "code points: CS0 to CS7, AF11 to AF43, EF, VA, LE, DF, or 0 to 63",
            )
        }),
        Some(number) if is("mark") => mark(number).map(Action::Mark).ok_or_else(|| {
            Invalid::new(
                format!("`{number}` in `{text}` is not a mark"),
                "marks: 0 to 4294967295, or 0x0 to 0xffffffff",
            )
        }),
        _ => Err(Invalid::new(
            format!("`{text}` is not an action"),
            "actions: drop, pass, ecn, dscp=NAME or dscp=N, mark=N",
        )),
    }
}

/// The word of an action, which [`parse`] reads back.
#[must_use]
pub fn word(action: Action) -> String {
    match action {
        Action::Drop => "drop".to_owned(),
        Action::Pass => "pass".to_owned(),
        Action::Ecn => "ecn".to_owned(),
        Action::Dscp(dscp) => match DSCP.iter().find(|(_, number)| *number == dscp) {
            Some((name, _)) => format!("dscp={name}"),
            None => format!("dscp={dscp}"),
        },
        Action::Mark(mark) => format!("mark={mark}"),
    }
}

fn dscp(text: &str) -> Option<u8> {
    let named = DSCP.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number);
    let plain = || digits(text)?.parse().ok().filter(|number| *number <= MOST_DSCP);
    named.or_else(plain)
}

fn mark(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // `from_str_radix` takes a sign.
        Some(hex) if hex.starts_with('+') => None,
        Some(hex) => u32::from_str_radix(hex, 16).ok(),
        None => digits(text)?.parse().ok(),
    }
}

/// `parse` takes a sign, too.
fn digits(text: &str) -> Option<&str> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then_some(text)
}

pub(super) fn serialize<S: Serializer>(action: &Action, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&word(*action))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Action, D::Error> {
    parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_and_written() {
        for (text, action, shown) in [
            ("drop", Action::Drop, "drop"),
            ("PASS", Action::Pass, "pass"),
            ("ecn", Action::Ecn, "ecn"),
            ("dscp=CS1", Action::Dscp(8), "dscp=CS1"),
            ("dscp=af43", Action::Dscp(38), "dscp=AF43"),
            ("DSCP=ef", Action::Dscp(46), "dscp=EF"),
            ("dscp=df", Action::Dscp(0), "dscp=CS0"),
            ("dscp=le", Action::Dscp(1), "dscp=LE"),
            ("dscp=va", Action::Dscp(44), "dscp=VA"),
            ("dscp=63", Action::Dscp(63), "dscp=63"),
            ("dscp=46", Action::Dscp(46), "dscp=EF"),
            ("mark=0", Action::Mark(0), "mark=0"),
            ("mark=4294967295", Action::Mark(u32::MAX), "mark=4294967295"),
            ("mark=0xFF", Action::Mark(255), "mark=255"),
        ] {
            assert_eq!(parse(text), Ok(action), "{text}");
            assert_eq!(word(action), shown);
            assert_eq!(parse(shown), Ok(action));
        }
    }

    #[test]
    fn code_points_follow_their_classes() {
        for class in 0..8_u8 {
            assert_eq!(dscp(&format!("CS{class}")), Some(8 * class));
        }
        for (class, precedence) in (1..5_u8).flat_map(|class| (1..4_u8).map(move |precedence| (class, precedence))) {
            assert_eq!(dscp(&format!("AF{class}{precedence}")), Some(8 * class + 2 * precedence));
        }
    }

    #[test]
    fn what_is_no_action_is_refused() {
        for (text, cause) in [
            ("", "`` is not an action"),
            ("reject", "`reject` is not an action"),
            ("drop=1", "`drop=1` is not an action"),
            ("dscp", "`dscp` is not an action"),
            ("mark", "`mark` is not an action"),
            ("dscp=", "`` in `dscp=` is not a code point"),
            ("dscp=64", "`64` in `dscp=64` is not a code point"),
            ("dscp=+1", "`+1` in `dscp=+1` is not a code point"),
            ("dscp=0x8", "`0x8` in `dscp=0x8` is not a code point"),
            ("dscp=CS8", "`CS8` in `dscp=CS8` is not a code point"),
            ("dscp=AF14", "`AF14` in `dscp=AF14` is not a code point"),
            ("mark=", "`` in `mark=` is not a mark"),
            ("mark=-1", "`-1` in `mark=-1` is not a mark"),
            ("mark=+1", "`+1` in `mark=+1` is not a mark"),
            ("mark=0x", "`0x` in `mark=0x` is not a mark"),
            ("mark=0x+1", "`0x+1` in `mark=0x+1` is not a mark"),
            ("mark=4294967296", "`4294967296` in `mark=4294967296` is not a mark"),
        ] {
            assert_eq!(parse(text).map_err(|invalid| invalid.to_string()), Err(cause.to_owned()));
        }
    }
}
