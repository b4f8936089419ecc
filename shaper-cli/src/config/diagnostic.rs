//! What is wrong with a file, place by place.

use std::{collections::HashSet, fmt::Write as _, ops::Range};

use super::source::Source;
use crate::{
    error::{Error, Invalid},
    text,
};

/// Errors that are shown: a person corrects the first few and asks again.
const SHOWN: usize = 20;

/// Errors that are kept to find the first among them.
const KEPT: usize = 100_000;

/// Columns of an excerpt.
const WIDTH: usize = 72;

/// Characters of a cause or hint: the words in it are of any length.
const LONGEST: usize = 400;

/// What is wrong at one place.
#[derive(Debug)]
struct Diagnostic {
    span: Range<usize>,
    cause: String,
    hint: String,
}

/// What is wrong with a file.
#[derive(Debug)]
pub struct Diagnostics<'s> {
    source: &'s Source,
    errors: Vec<Diagnostic>,
    /// Errors that are only counted.
    others: usize,
    /// Errors that follow from others and are not said.
    unsaid: usize,
    /// Lines that are no TOML. What follows from that is not said.
    unread: HashSet<usize>,
}

impl<'s> Diagnostics<'s> {
    /// Nothing yet.
    pub(crate) fn new(source: &'s Source) -> Self {
        Self { source, errors: Vec::new(), others: 0, unsaid: 0, unread: HashSet::new() }
    }

    /// The file.
    #[must_use]
    pub const fn source(&self) -> &'s Source {
        self.source
    }

    /// Marks what is at `span`.
    pub(crate) fn add(&mut self, span: Range<usize>, cause: impl Into<String>, hint: impl Into<String>) {
        if !self.unread.is_empty() && self.unread.contains(&self.source.line(span.start)) {
            self.unsaid += 1;
            return;
        }
        if self.errors.len() >= KEPT {
            self.others += 1;
        } else {
            self.errors.push(Diagnostic { span, cause: cause.into(), hint: hint.into() });
        }
    }

    /// Marks a word that was refused.
    pub(super) fn refuse(&mut self, span: Range<usize>, invalid: &Invalid) {
        self.add(span, in_the_file(&invalid.to_string()), in_the_file(invalid.hint()));
    }

    /// Marks what the command line would fail with.
    pub(super) fn fail(&mut self, span: Range<usize>, error: &Error) {
        let cause = match error.token() {
            Some(token) => format!("`{}`: {}", token.trim_start_matches('-'), error.cause()),
            None => error.cause(),
        };
        self.add(span, in_the_file(&cause), in_the_file(&error.hint()));
    }

    /// Marks what lacks something; not if part of the file could not be read, where it may be.
    pub(super) fn lack(&mut self, span: Range<usize>, cause: impl Into<String>, hint: impl Into<String>) {
        if self.unread.is_empty() {
            self.add(span, cause, hint);
        } else {
            self.unsaid += 1;
        }
    }

    /// Takes all errors so far for lines that are no TOML, one for each.
    pub(super) fn close_syntax(&mut self) {
        self.errors.sort_by_key(|error| error.span.start);
        let source = self.source;
        self.errors.dedup_by_key(|error| source.line(error.span.start));
        self.unread = self.errors.iter().map(|error| source.line(error.span.start)).collect();
    }

    /// Counts errors that are not shown one by one.
    pub(super) const fn count(&mut self, errors: usize) {
        self.others += errors;
    }

    /// How many errors were found, said or not: what has none is sound.
    pub(super) fn found(&self) -> usize {
        self.len() + self.unsaid
    }

    /// How many errors there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.errors.len() + self.others
    }

    /// Whether the file is right.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The errors for people, in the order of the file: the first [`SHOWN`], and how many there are besides.
    #[must_use]
    pub fn render(&self) -> String {
        let mut errors: Vec<&Diagnostic> = self.errors.iter().collect();
        errors.sort_by_key(|error| error.span.start);
        let mut out = String::new();
        for Diagnostic { span, cause, hint } in errors.iter().take(SHOWN) {
            let position = self.source.position(span.start);
            let number = position.line.to_string();
            let (line, marked) = self.source.excerpt(span, WIDTH);
            let name = self.source.name();
            let (cause, hint) = (short(cause), short(hint));
            // Writing to a string does not fail.
            writeln!(out, "error: {name}:{number}:{}: {cause}", position.column).ok();
            writeln!(out, "  {number} | {line}").ok();
            let (left, carets) = (" ".repeat(marked.start), "^".repeat(marked.len()));
            writeln!(out, "  {:1$} | {left}{carets}", "", number.len()).ok();
            writeln!(out, " hint: {hint}").ok();
        }
        let more = self.len().saturating_sub(SHOWN);
        if more > 0 {
            writeln!(out, "and {more} more").ok();
        }
        out
    }

    /// The failure of a command that was given the file.
    #[must_use]
    pub fn failure(&self) -> Error {
        Error::File { file: self.source.name().to_owned(), errors: self.len() }
    }
}

/// One line of a bearable length.
fn short(text: &str) -> String {
    let mut line = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == LONGEST {
            line.push_str("...");
            break;
        }
        match c {
            '\t' => line.push(' '),
            c if text::is_unsafe(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

/// What was written for the command line, in the words of the file: `--peak 9bit` is `peak = "9bit"`.
pub(super) fn in_the_file(text: &str) -> String {
    let mut out = String::new();
    for (n, part) in text.split('`').enumerate() {
        if n > 0 {
            out.push('`');
        }
        match part.strip_prefix("--").filter(|_| n % 2 == 1) {
            Some(option) => match option.split_once(' ') {
                Some((name, value)) => out.extend([name, " = \"", value, "\""]),
                None => out.push_str(option),
            },
            None => out.push_str(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, span: Range<usize>) -> String {
        let source = Source::new("f", text.as_bytes().to_vec());
        let mut diagnostics = Diagnostics::new(&source);
        diagnostics.add(span, "C", "H");
        diagnostics.render()
    }

    #[test]
    fn a_place_is_shown_with_its_line() {
        assert_eq!(
            marked("a\nrate = \"10mbps\" # x\nb", 9..17),
            "error: f:2:8: C\n  2 | rate = \"10mbps\" # x\n    |        ^^^^^^^^\n hint: H\n"
        );
        assert_eq!(marked("", 0..0), "error: f:1:1: C\n  1 | \n    | ^\n hint: H\n");
        assert_eq!(marked("ab\r\n", 2..2), "error: f:1:3: C\n  1 | ab\n    |   ^\n hint: H\n");
        assert_eq!(marked("a = [\n1]", 4..8), "error: f:1:5: C\n  1 | a = [\n    |     ^\n hint: H\n");
        // Beyond the end, and between the bytes of a character.
        assert_eq!(marked("ä", 1..9), "error: f:1:1: C\n  1 | ä\n    | ^\n hint: H\n");
    }

    #[test]
    fn what_controls_a_terminal_is_not_shown_as_it_is() {
        assert_eq!(
            marked("\t\u{1b}\u{202e}x", 5..6),
            "error: f:1:4: C\n  1 |  \\u{1b}\\u{202e}x\n    |                ^\n hint: H\n"
        );
        assert_eq!(short("a\u{1b}\nb\tc"), "a\\u{1b}\\u{a}b c");
        assert_eq!(short(&"x".repeat(1000)), format!("{}...", "x".repeat(LONGEST)));
    }

    #[test]
    fn a_long_line_is_cut_around_what_is_marked() {
        for (before, length, after) in
            [(0, 5, 0), (100, 5, 100), (0, 5, 1_000_000), (1_000_000, 5, 0), (60, 1_000_000, 9), (70, 0, 0), (71, 1, 0)]
        {
            let text = format!("{}{}{}", "b".repeat(before), "m".repeat(length), "a".repeat(after));
            let shown = marked(&text, before..before + length);
            let lines: Vec<&str> = shown.lines().collect();
            assert!(lines.iter().all(|line| line.len() <= 6 + WIDTH), "{shown}");
            let carets: String =
                lines[1].chars().zip(lines[2].chars()).filter(|pair| pair.1 == '^').map(|pair| pair.0).collect();
            assert!(carets.chars().all(|c| c == 'm') && (!carets.is_empty() || length == 0), "{shown}");
            assert!(length > 50 || carets.len() == length, "{shown}");
        }
    }

    #[test]
    fn only_the_first_are_shown() {
        let source = Source::new("f", vec![b'x'; 30]);
        let mut diagnostics = Diagnostics::new(&source);
        (0..25).rev().for_each(|at| diagnostics.add(at..at + 1, format!("cause {at}"), "H"));
        diagnostics.count(3);
        let text = diagnostics.render();
        assert!(text.starts_with("error: f:1:1: cause 0\n") && text.ends_with(" hint: H\nand 8 more\n"), "{text}");
        assert_eq!(diagnostics.failure().to_string(), "f: 28 errors");
    }

    #[test]
    fn options_are_keys_in_a_file() {
        assert_eq!(in_the_file("the nearest is `--peak 9bit`"), "the nearest is `peak = \"9bit\"`");
        assert_eq!(
            in_the_file("give a `--peak` that does, or `--soft 10%`"),
            "give a `peak` that does, or `soft = \"10%\"`"
        );
        assert_eq!(in_the_file("`x`: no --option"), "`x`: no --option");
    }
}
