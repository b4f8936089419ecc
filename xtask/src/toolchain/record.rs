//! The toolchain that made the committed object, as it is written beside it: one `name=value` per line.

use std::fmt;

use anyhow::{Context as _, Result};

#[derive(PartialEq, Eq)]
pub(crate) struct Record(Vec<(String, String)>);

impl Record {
    pub(super) fn new<const N: usize>(fields: [(&str, String); N]) -> Self {
        Self(fields.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Reads what `Display` wrote.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let field = |line: &str| {
            let (name, value) = line.split_once('=').with_context(|| format!("`{line}` is not name=value"))?;
            Ok((name.to_owned(), value.to_owned()))
        };
        text.lines().map(field).collect::<Result<_>>().map(Self)
    }

    /// On one line, for a message.
    pub(crate) fn summary(&self) -> String {
        let fields: Vec<_> = self.0.iter().map(|(name, value)| format!("{name} {value}")).collect();
        fields.join(", ")
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| writeln!(f, "{name}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let record = Record::new([("rustc", "1.96.0 (a=b)".to_owned()), ("llvm", "22.1.8".to_owned())]);
        assert_eq!(record.to_string(), "rustc=1.96.0 (a=b)\nllvm=22.1.8\n");
        assert!(Record::parse(&record.to_string()).is_ok_and(|again| again == record));
        assert_eq!(record.summary(), "rustc 1.96.0 (a=b), llvm 22.1.8");
    }

    #[test]
    fn a_damaged_line_is_named() {
        let error = Record::parse("rustc=1\nllvm").err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("`llvm` is not name=value"));
    }
}
