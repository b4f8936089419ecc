//! `[[attach.rule]]`: what a rule matches and what limits that.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::Range,
};

use toml::de::{DeTable, DeValue};

use super::{
    attachment,
    diagnostic::Diagnostics,
    document::{word, wrong_type},
    key::{Key, put},
    limits::LIMITS,
    section::Section,
};
use crate::{
    args::{RuleWords, value},
    model::{Net, Part, Per, Rule, protocol, rule},
    plan,
};

/// A rule besides its limits and its addresses.
#[derive(Default)]
pub(super) struct Words {
    rule: RuleWords,
    per: Option<Per>,
}

/// The keys of a rule that are no limit.
pub(super) const KEYS: &[Key<Words>] = &[
    Key::text("name", "`\"guests\"`", |words, text| put(&mut words.rule.name, rule::name(text))),
    Key::text("side", "`\"remote\"`", |words, text| put(&mut words.rule.side, value::choice(text))),
    Key::number("proto", "`\"udp\"` or `17`", |words, text| put(&mut words.rule.proto, protocol::parse(text))),
    Key::number("port", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.rule.port, text.parse())),
    Key::number("sport", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.rule.sport, text.parse())),
    Key::number("dport", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.rule.dport, text.parse())),
    Key::text("per", "`\"src\"` or `\"src/24\"`", |words, text| put(&mut words.per, text.parse())),
];

/// What a rule matches.
const MATCH: &str = "match";

/// Limits that go with `unlimited`.
const BESIDE_UNLIMITED: &[&str] = &[];

/// Those keys, and the one that is none of them.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name).chain([MATCH])
}

/// The rules of an attachment while they are read.
#[derive(Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Where each name is given.
    names: HashMap<String, usize>,
    /// Where each match is given.
    matches: HashMap<Part, usize>,
}

impl Rules {
    /// The rules that are right.
    pub(super) fn into_inner(self) -> Vec<Rule> {
        self.rules
    }

    /// Reads the rule that begins at `header`. What is wrong with it is reported.
    pub(super) fn read(&mut self, table: &DeTable<'_>, header: Range<usize>, diagnostics: &mut Diagnostics<'_>) {
        let before = diagnostics.found();
        let mut words = Words::default();
        let mut section = Section::new(header.clone());
        let mut nets = Vec::new();
        for (key, value) in table {
            if key.get_ref() == MATCH {
                nets = read_nets(value.get_ref(), value.span(), diagnostics);
            } else if !section.read(KEYS, &mut words, key, value, diagnostics)
                && !section.read_limit(key, value, diagnostics)
            {
                let known = keys().chain(LIMITS.iter().map(|key| key.name));
                section.unknown(key, known, attachment::keys(), "`[[attach]]`", diagnostics);
            }
        }
        let beside = ["sport", "dport"].into_iter().find(|key| section.has("port") && section.has(key));
        if let Some(key) = beside {
            section.conflict("port", key, diagnostics);
        }
        let limits = section.limits(BESIDE_UNLIMITED, diagnostics);
        // What goes together, and what is the same, is asked of words that are right.
        if diagnostics.found() > before {
            return;
        }
        let Words { rule: mut words, per } = words;
        words.nets = nets.iter().map(|(net, _)| *net).collect();
        let matches = match plan::matches(&words) {
            Ok(matches) => matches,
            Err(error) => {
                // A prefix is named by itself.
                let named = error.token().and_then(|token| nets.iter().rfind(|(net, _)| net.to_string() == token));
                match named {
                    Some((_, at)) => diagnostics.fail(at.clone(), &error),
                    None => section.fail(&error, diagnostics),
                }
                return;
            }
        };
        let name = words.name.map_or_else(|| rule::name(&matches.short()), Ok);
        let (Some(limits), Ok(name)) = (limits, name) else {
            let cause = format!("`name`: missing, and `{}` is too long for a name", matches.short());
            diagnostics.lack(header, cause, "name the rule, like `name = \"guests\"`");
            return;
        };
        self.name(&name, section.place("name"), diagnostics);
        for (n, part) in matches.parts().enumerate() {
            let at = nets.get(n).map_or_else(|| header.clone(), |(_, at)| at.clone());
            self.claim(part, at, diagnostics);
        }
        self.rules.push(Rule { name, matches, per, limits });
    }

    fn name(&mut self, name: &str, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) {
        match self.names.entry(name.to_owned()) {
            Entry::Vacant(place) => {
                place.insert(at.start);
            }
            Entry::Occupied(place) => {
                let line = diagnostics.source().line(*place.get());
                diagnostics.add(
                    at,
                    format!("`{name}` is the name of the rule on line {line}"),
                    "each rule of an attachment has a name of its own",
                );
            }
        }
    }

    fn claim(&mut self, part: Part, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) {
        match self.matches.entry(part) {
            Entry::Vacant(place) => {
                place.insert(at.start);
            }
            Entry::Occupied(place) => {
                let line = diagnostics.source().line(*place.get());
                let what = part.0.map_or_else(|| "this".to_owned(), |net| net.to_string());
                diagnostics.add(
                    at,
                    format!("{what} is matched on line {line} already, with the same side, protocol and ports"),
                    "leave it out of one of the two",
                );
            }
        }
    }
}

/// A prefix, or an array of them, with their places.
fn read_nets(value: &DeValue<'_>, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) -> Vec<(Net, Range<usize>)> {
    const EXAMPLE: &str = "`\"10.20.0.0/16\"` or `[\"10.20.0.0/16\", \"2001:db8:20::/48\"]`";
    let mut nets = Vec::new();
    let mut read =
        |value: &DeValue<'_>, at: Range<usize>| match word(value, false, EXAMPLE).and_then(|text| text.parse()) {
            Ok(net) => nets.push((net, at)),
            Err(invalid) => diagnostics.refuse(at, &invalid),
        };
    match value {
        DeValue::String(_) => read(value, at),
        DeValue::Array(array) if array.is_empty() => {
            diagnostics.add(at, "no address is in no prefix", "leave `match` out for any address");
        }
        DeValue::Array(array) => array.iter().for_each(|net| read(net.get_ref(), net.span())),
        other => diagnostics.refuse(at, &wrong_type(other, "a string or an array of strings", EXAMPLE)),
    }
    nets
}
