//! A table while it is read: where its keys stand, and what its limits come to.

use std::{collections::HashMap, ops::Range};

use toml::{
    Spanned,
    de::{DeString, DeValue},
};

use super::{
    diagnostic::Diagnostics,
    key::Key,
    limits::{ALONE, LIMITING, LIMITS},
};
use crate::{args::LimitArgs, error::Error, model::Limits, near::nearest, plan};

/// A table of the file.
pub(super) struct Section {
    header: Range<usize>,
    /// Keys that are given, and where their values stand.
    given: HashMap<&'static str, Range<usize>>,
    args: LimitArgs,
    /// A limit, or a key that may be meant for one, is wrong.
    unsound: bool,
}

impl Section {
    pub(super) fn new(header: Range<usize>) -> Self {
        Self { header, given: HashMap::new(), args: LimitArgs::default(), unsound: false }
    }

    /// Reads a key if it is one of `keys`.
    pub(super) fn read<T>(
        &mut self,
        keys: &'static [Key<T>],
        target: &mut T,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        diagnostics: &mut Diagnostics<'_>,
    ) -> bool {
        let Some(key) = keys.iter().find(|key| key.name == name.get_ref().as_ref()) else { return false };
        match key.read(target, value.get_ref()) {
            Ok(true) => {
                self.given.insert(key.name, value.span());
            }
            Ok(false) => {}
            Err(invalid) => diagnostics.refuse(value.span(), &invalid),
        }
        true
    }

    /// Reads a key if it is a limit.
    pub(super) fn read_limit(
        &mut self,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        diagnostics: &mut Diagnostics<'_>,
    ) -> bool {
        let mut args = std::mem::take(&mut self.args);
        let before = diagnostics.found();
        let known = self.read(LIMITS, &mut args, name, value, diagnostics);
        self.args = args;
        self.unsound |= diagnostics.found() > before;
        known
    }

    /// Reports a key that is none of `known`. A key of the `other` kind of table belongs there.
    pub(super) fn unknown(
        &mut self,
        name: &Spanned<DeString<'_>>,
        known: impl Iterator<Item = &'static str>,
        mut other: impl Iterator<Item = &'static str>,
        kind: &str,
        diagnostics: &mut Diagnostics<'_>,
    ) {
        self.unsound = true;
        let key = name.get_ref().as_ref();
        let (cause, hint) = if other.any(|other| other == key) {
            ("the key belongs into another table".to_owned(), format!("write it under {kind}"))
        } else {
            let known: Vec<&str> = known.collect();
            let hint = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("keys: {}", known.join(", ")),
            };
            ("no such key".to_owned(), hint)
        };
        diagnostics.add(name.span(), format!("`{key}`: {cause}"), hint);
    }

    /// Whether a key is given and right.
    pub(super) fn has(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Where the value of a key stands, or the table begins.
    pub(super) fn place(&self, key: &str) -> Range<usize> {
        self.given.get(key).unwrap_or(&self.header).clone()
    }

    /// Reports two keys that cannot go together.
    pub(super) fn conflict(&self, key: &str, other: &str, diagnostics: &mut Diagnostics<'_>) {
        diagnostics.add(self.place(key), format!("`{key}`: cannot go with `{other}`"), "leave out one of the two");
    }

    /// What the limits come to, if those that go with `unlimited` are `beside_unlimited`. `None` if one is wrong, or if
    /// they do not go together, which is reported.
    pub(super) fn limits(&self, beside_unlimited: &[&str], diagnostics: &mut Diagnostics<'_>) -> Option<Limits> {
        if self.unsound {
            return None;
        }
        let has = |key: &&&'static str| self.has(key);
        let limits = || LIMITS.iter().map(|key| &key.name);
        let alone = ALONE.iter().find(has);
        let goes = |key: &str, alone: &str| key == alone || alone == "unlimited" && beside_unlimited.contains(&key);
        let beside = alone.and_then(|alone| Some((alone, limits().filter(|key| !goes(key, alone)).find(has)?)));
        if let Some((alone, other)) = beside {
            self.conflict(alone, other, diagnostics);
            return None;
        }
        if self.has("soft") && self.has("peak") {
            self.conflict("soft", "peak", diagnostics);
            return None;
        }
        let limiting = || limits().filter(|key| LIMITING.contains(key));
        if limiting().find(has).is_none() {
            let keys: Vec<&str> = limiting().copied().collect();
            diagnostics.lack(self.header.clone(), "nothing is limited", format!("give one of {}", keys.join(", ")));
            return None;
        }
        match plan::limits(&self.args, &Limits::default()) {
            Ok(limits) => Some(limits),
            Err(error) => {
                self.fail(&error, diagnostics);
                None
            }
        }
    }

    /// Reports what the command line would say of words that do not go together, at the key that it names.
    pub(super) fn fail(&self, error: &Error, diagnostics: &mut Diagnostics<'_>) {
        let key = error.token().map_or("", |token| token.trim_start_matches('-'));
        diagnostics.fail(self.place(key), error);
    }
}
