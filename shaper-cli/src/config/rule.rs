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
    temporary::{net, port, proto},
};
use crate::{
    args::value,
    error::Invalid,
    model::{Match, Net, Per, PortRange, Ports, Rule, Side},
    text::is_unsafe,
};

/// The words of a rule besides its limits.
#[derive(Default)]
pub(super) struct Words {
    name: Option<String>,
    side: Option<Side>,
    proto: Option<u8>,
    port: Option<PortRange>,
    sport: Option<PortRange>,
    dport: Option<PortRange>,
    per: Option<Per>,
}

/// The keys of a rule that are no limit.
pub(super) const KEYS: &[Key<Words>] = &[
    Key::text("name", "`\"guests\"`", |words, text| put(&mut words.name, name(text))),
    Key::text("side", "`\"remote\"`", |words, text| put(&mut words.side, value::choice(text))),
    Key::number("proto", "`\"udp\"` or `17`", |words, text| put(&mut words.proto, proto(text))),
    Key::number("port", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.port, port(text))),
    Key::number("sport", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.sport, port(text))),
    Key::number("dport", "`53` or `\"5000-5999\"`", |words, text| put(&mut words.dport, port(text))),
    Key::text("per", "`\"src\"` or `\"src/24\"`", |words, text| put(&mut words.per, text.parse())),
];

/// Longest name, bytes.
const LONGEST: usize = 64;

/// What the rest of an attachment is called.
const DEFAULT: &str = "default";

/// What a rule matches.
const MATCH: &str = "match";

/// Those keys, and the one that is none of them.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name).chain([MATCH])
}

/// What all rules of an attachment have to differ in.
type Matched = (Option<Net>, Side, Option<u8>, Ports);

/// The rules of an attachment while they are read.
#[derive(Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    /// Where each name is given.
    names: HashMap<String, usize>,
    /// Where each match is given.
    matches: HashMap<Matched, usize>,
}

impl Rules {
    /// The rules that are right.
    pub(super) fn into_inner(self) -> Vec<Rule> {
        self.rules
    }

    /// Reads the rule that begins at `header`. What is wrong with it is reported.
    pub(super) fn read(&mut self, table: &DeTable<'_>, header: Range<usize>, diagnostics: &mut Diagnostics<'_>) {
        let before = diagnostics.len();
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
        let ports = ports(&words, &section, diagnostics);
        if !table.contains_key("name") {
            diagnostics.lack(header.clone(), "`name`: missing", "name the rule, like `name = \"guests\"`");
        }
        let limits = section.limits(diagnostics);
        // What is the same is asked of words that are right.
        if diagnostics.len() > before {
            return;
        }
        let (Some(limits), Some(name), Some(ports)) = (limits, words.name, ports) else { return };
        self.name(&name, section.place("name"), diagnostics);
        let matched = |net| (net, words.side.unwrap_or_default(), words.proto, ports);
        if nets.is_empty() {
            self.claim(matched(None), header, diagnostics);
        }
        for (net, at) in &nets {
            self.claim(matched(Some(*net)), at.clone(), diagnostics);
        }
        let nets = nets.into_iter().map(|(net, _)| net).collect();
        let matches = Match { nets, side: words.side.unwrap_or_default(), proto: words.proto, ports };
        self.rules.push(Rule { name, matches, per: words.per, limits });
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

    fn claim(&mut self, matched: Matched, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) {
        match self.matches.entry(matched) {
            Entry::Vacant(place) => {
                place.insert(at.start);
            }
            Entry::Occupied(place) => {
                let line = diagnostics.source().line(*place.get());
                let what = matched.0.map_or_else(|| "this".to_owned(), |net| net.to_string());
                diagnostics.add(
                    at,
                    format!("{what} is matched on line {line} already, with the same side, protocol and ports"),
                    "leave it out of one of the two",
                );
            }
        }
    }
}

/// A name for a rule.
fn name(text: &str) -> Result<String, Invalid> {
    let cause = if text.is_empty() || text.len() > LONGEST {
        format!("`{text}` has {} bytes", text.len())
    } else if text.chars().any(is_unsafe) {
        format!("`{text}` has characters that cannot be shown")
    } else if text == DEFAULT {
        format!("`{text}` is what no rule matches")
    } else {
        return Ok(text.to_owned());
    };
    Err(Invalid::new(cause, format!("names have 1 to {LONGEST} bytes that can be shown, and none is `{DEFAULT}`")))
}

/// Which ports the words of a rule name.
fn ports(words: &Words, section: &Section, diagnostics: &mut Diagnostics<'_>) -> Option<Ports> {
    match (words.port, words.sport, words.dport) {
        (None, None, None) => Some(Ports::Any),
        (Some(port), None, None) => Some(Ports::Either(port)),
        (None, Some(sport), None) => Some(Ports::Source(sport)),
        (None, None, Some(dport)) => Some(Ports::Destination(dport)),
        (None, Some(sport), Some(dport)) => Some(Ports::Both { sport, dport }),
        (Some(_), sport, _) => {
            section.conflict("port", if sport.is_some() { "sport" } else { "dport" }, diagnostics);
            None
        }
    }
}

/// A prefix, or an array of them, with their places.
fn read_nets(value: &DeValue<'_>, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) -> Vec<(Net, Range<usize>)> {
    const EXAMPLE: &str = "`\"10.20.0.0/16\"` or `[\"10.20.0.0/16\", \"2001:db8:20::/48\"]`";
    let mut nets = Vec::new();
    let mut read = |value: &DeValue<'_>, at: Range<usize>| match word(value, false, EXAMPLE).and_then(|text| net(&text))
    {
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
