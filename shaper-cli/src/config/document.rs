//! A file as TOML: a tree in which everything knows where it stands.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml_parser::{ParseError, Source as Toml, parser};

use super::{diagnostic::Diagnostics, source::Source};
use crate::{error::Invalid, text::is_unsafe};

/// Words and signs that a file may have: what is read takes some hundred bytes for each. 64 MiB of rules have fewer.
const MOST_WORDS: usize = 1 << 25;

/// Arrays and inline tables within each other; the parser of the tree has this limit, too.
const DEPTH: u32 = 80;

/// Errors after which nobody reads on.
const ENOUGH: usize = 1000;

/// What a file looks like.
const LAYOUT: &str = "a line is `key = \"value\"`, `key = 5` or a header: `[[attach]]` or `[[attach.rule]]`";

/// The tree of a file, or `None` if its structure is not clear; values that are none are reported and left out.
pub(super) fn parse<'s>(source: &'s Source, diagnostics: &mut Diagnostics<'s>) -> Option<DeTable<'s>> {
    if let Some(at) = source.broken_at() {
        let end = at + char::REPLACEMENT_CHARACTER.len_utf8();
        diagnostics.add(at..end, "this is not UTF-8", "write the file in UTF-8");
        return None;
    }
    let text = source.text();
    if let Some(word) = Toml::new(text).lex().nth(MOST_WORDS) {
        let span = word.span();
        diagnostics.add(
            span.start()..span.end(),
            format!("there are more than {MOST_WORDS} words and signs up to here"),
            "a hundred thousand rules take a tenth of that; divide the file by devices",
        );
        return None;
    }
    let structural = structure(text, diagnostics);
    if structural > ENOUGH {
        return None;
    }
    let (tree, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let (span, cause, hint) = syntax(text, error);
        diagnostics.add(span, cause, hint);
    }
    if !errors.is_empty() {
        diagnostics.close_syntax();
    }
    (structural == 0).then(|| tree.into_inner())
}

/// Counts what is wrong with headers, brackets and lines, and reports it if that is too much to read on.
fn structure(text: &str, diagnostics: &mut Diagnostics<'_>) -> usize {
    let mut first = Vec::new();
    let mut count = 0_usize;
    let tokens = Toml::new(text).lex().into_vec();
    let mut ignore = |_: parser::Event| {};
    let mut errors = |error: ParseError| {
        count += 1;
        if first.len() < ENOUGH {
            first.push(error);
        }
    };
    parser::parse_document(&tokens, &mut parser::RecursionGuard::new(&mut ignore, DEPTH), &mut errors);
    if count > ENOUGH {
        for error in &first {
            let span = error.unexpected().map_or(0..0, |span| span.start()..span.end());
            diagnostics.add(span, error.description(), LAYOUT);
        }
        diagnostics.count(count - first.len());
    }
    count
}

/// Place, cause and hint of an error of the parser.
fn syntax(text: &str, error: &toml::de::Error) -> (Range<usize>, String, String) {
    let mut span = error.span().unwrap_or(0..0);
    let message = error.message();
    let bare = ["string values must be quoted", "invalid float", "invalid boolean"];
    if bare.iter().any(|bare| message.starts_with(bare)) {
        span = whole(text, span);
    }
    let word = text.get(span.clone()).unwrap_or_default();
    let (cause, hint) = if message.starts_with("duplicate key") {
        (format!("`{word}`: given more than once"), "give it once; each attachment starts with `[[attach]]`".to_owned())
    } else if bare.iter().any(|bare| message.starts_with(bare)) {
        if word.trim().is_empty() {
            ("there is no value".to_owned(), LAYOUT.to_owned())
        } else if word.contains(is_unsafe) {
            (format!("`{word}` has characters that cannot be shown"), LAYOUT.to_owned())
        } else {
            (format!("`{word}` is not in quotes"), format!("write `\"{word}\"`"))
        }
    } else {
        (message.trim_end_matches(", expected nothing").to_owned(), LAYOUT.to_owned())
    };
    (span, cause, hint)
}

/// The value without quotes of which the parser has marked a part.
fn whole(text: &str, part: Range<usize>) -> Range<usize> {
    let ends = |c: char| c.is_whitespace() || "=,[]{}#\"'".contains(c);
    let (Some(before), Some(after)) = (text.get(..part.start), text.get(part.end..)) else { return part };
    let start = before.char_indices().rfind(|(_, c)| ends(*c)).map_or(0, |(at, c)| at + c.len_utf8());
    let end = after.find(ends).map_or(text.len(), |len| part.end + len);
    if part.is_empty() { part } else { start..end }
}

/// A value as the word that the command line would have, or why it cannot be one.
pub(super) fn word<'v>(
    value: &'v DeValue<'_>,
    number: bool,
    example: &str,
) -> Result<std::borrow::Cow<'v, str>, Invalid> {
    match value {
        DeValue::String(text) => Ok(text.as_ref().into()),
        DeValue::Integer(integer) if number => match i128::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Ok(number.to_string().into()),
            Err(_) => Err(Invalid::new(format!("`{integer}` is too large a number"), format!("write {example}"))),
        },
        other => {
            let takes = if number { "a string or a whole number" } else { "a string" };
            Err(wrong_type(other, takes, example))
        }
    }
}

/// A value of another type than the key `takes`.
pub(super) fn wrong_type(value: &DeValue<'_>, takes: &str, example: &str) -> Invalid {
    let is = match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    };
    Invalid::new(format!("this is {is}, and the key takes {takes}"), format!("write {example}"))
}
