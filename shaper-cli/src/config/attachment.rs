//! `[[attach]]`: a device and what limits it.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::Range,
};

use toml::de::{DeTable, DeValue};

use super::{
    diagnostic::Diagnostics,
    document::wrong_type,
    key::{Key, put},
    limits::LIMITS,
    rule,
    section::Section,
};
use crate::{
    args::{DirectionChoice, value},
    compile::{Slotted, compile},
    error::Invalid,
    model::{Config, Direction, Limits, OVERFLOWS, Rule, overflow_name, overflow_named},
};

/// What a file says about a device.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Name of the device.
    pub dev: String,
    /// Directions.
    pub direction: DirectionChoice,
    /// What is to be in force.
    pub config: Config,
    /// Where the device is named, to say what is wrong with it.
    pub(crate) dev_at: Range<usize>,
    /// Where the direction is named, or the attachment begins.
    pub(crate) direction_at: Range<usize>,
}

/// Longest name of a device.
const LONGEST: usize = 15;

/// Each option of `attach` that is no limit.
pub(super) const SETTINGS: &[Key<Config>] = &[
    Key::text("per", "`\"flow\"` or `\"src/24\"`", |config, text| set(&mut config.per, text.parse())),
    Key::text("hook", "`\"auto\"`", |config, text| set(&mut config.hook, value::choice(text))),
    Key::number("max-flows", "`65536`", |config, text| set(&mut config.max_flows, value::max_flows(text))),
    Key::text("overflow", "`\"shared\"`", |config, text| {
        let policy = || value::not_one_of(text, &OVERFLOWS.map(overflow_name));
        set(&mut config.overflow, overflow_named(text).ok_or_else(policy))
    }),
    Key::text("account", "`\"l2\"`", |config, text| set(&mut config.account, value::choice(text))),
    Key::number("overhead", "`4`", |config, text| set(&mut config.overhead, value::overhead(text))),
    Key::number("mpu", "`64`", |config, text| set(&mut config.mpu, value::mpu(text))),
    Key::text("order", "`\"last\"`", |config, text| set(&mut config.order, value::choice(text))),
];

/// Where an attachment is.
#[derive(Default)]
struct Words {
    dev: Option<String>,
    direction: Option<DirectionChoice>,
}

/// The keys for that.
const OWN: &[Key<Words>] = &[
    Key::text("dev", "`\"eth0\"`", |words, text| put(&mut words.dev, device(text))),
    Key::text("direction", "`\"ingress\"`", |words, text| put(&mut words.direction, value::choice(text))),
];

/// Limits that go with `unlimited`, which is said of keys.
const BESIDE_UNLIMITED: &[&str] = &["total", "total-burst"];

/// The rules of an attachment.
const RULE: &str = "rule";

fn set<V>(place: &mut V, value: Result<V, Invalid>) -> Result<(), Invalid> {
    *place = value?;
    Ok(())
}

impl Attachment {
    /// Reports rules that the data plane cannot hold.
    pub(super) fn compile(&self, diagnostics: &mut Diagnostics<'_>) {
        // Which number a rule has makes no difference.
        let rules: Vec<Slotted<'_>> = self.config.rules.iter().map(|rule| Slotted { slot: 1, rule }).collect();
        for direction in self.direction.directions() {
            if let Err(refused) = compile(&rules, *direction) {
                diagnostics.add(self.dev_at.clone(), refused.to_string(), refused.hint());
                return;
            }
        }
    }
}

/// The keys of an attachment that are no limit.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    OWN.iter().map(|key| key.name).chain([RULE]).chain(SETTINGS.iter().map(|key| key.name))
}

/// Reads an attachment that begins at `header`. `None` if something is wrong with it, which is reported.
pub(super) fn read(table: &DeTable<'_>, header: Range<usize>, diagnostics: &mut Diagnostics<'_>) -> Option<Attachment> {
    let mut config = Config::of(Limits::default());
    let mut section = Section::new(header.clone());
    let mut words = Words::default();
    for (key, value) in table {
        if key.get_ref() == RULE {
            continue;
        }
        if !section.read(OWN, &mut words, key, value, diagnostics)
            && !section.read(SETTINGS, &mut config, key, value, diagnostics)
            && !section.read_limit(key, value, diagnostics)
        {
            let known = keys().chain(LIMITS.iter().map(|key| key.name));
            section.unknown(key, known, rule::keys(), "`[[attach.rule]]`", diagnostics);
        }
    }
    if !table.contains_key("dev") {
        diagnostics.lack(header, "`dev`: missing", "name the device, like `dev = \"eth0\"`");
    }
    let limits = section.limits(BESIDE_UNLIMITED, diagnostics);
    if let Some(value) = table.get(RULE) {
        config.rules = read_rules(value.get_ref(), value.span(), diagnostics);
    }
    config.limits = limits?;
    Some(Attachment {
        dev: words.dev?,
        direction: words.direction.unwrap_or(DirectionChoice::Ingress),
        config,
        dev_at: section.place("dev"),
        direction_at: section.place("direction"),
    })
}

/// The name of a device, as the kernel allows it.
fn device(name: &str) -> Result<String, Invalid> {
    if name.contains(['*', '?', '[']) {
        return Err(Invalid::new(
            format!("`{name}` is a pattern, and patterns are not supported"),
            "name the device; each device has an `[[attach]]` of its own",
        ));
    }
    let allowed = |c: char| !(c.is_whitespace() || c.is_control() || "/:".contains(c));
    if name.is_empty() || name.len() > LONGEST || name == "." || name == ".." || !name.chars().all(allowed) {
        return Err(Invalid::new(
            format!("`{name}` is not the name of a device"),
            format!("names have 1 to {LONGEST} bytes, without `/`, `:` and spaces; `ip link` lists them"),
        ));
    }
    Ok(name.to_owned())
}

fn read_rules(value: &DeValue<'_>, at: Range<usize>, diagnostics: &mut Diagnostics<'_>) -> Vec<Rule> {
    let tables = |value: &DeValue<'_>| wrong_type(value, "tables", "`[[attach.rule]]` above the keys of a rule");
    let DeValue::Array(array) = value else {
        diagnostics.refuse(at, &tables(value));
        return Vec::new();
    };
    let mut rules = rule::Rules::default();
    for value in array {
        match value.get_ref() {
            // In the order of the file, which is their age.
            DeValue::Table(table) => rules.read(table, value.span(), diagnostics),
            other => diagnostics.refuse(value.span(), &tables(other)),
        }
    }
    rules.into_inner()
}

/// Which attachment has a device and direction first.
#[derive(Default)]
pub(super) struct Places {
    taken: HashMap<(String, Direction), usize>,
}

impl Places {
    /// Takes the places of `attachment`, and reports those that are taken.
    pub(super) fn take(&mut self, attachment: &Attachment, diagnostics: &mut Diagnostics<'_>) {
        for direction in attachment.direction.directions() {
            match self.taken.entry((attachment.dev.clone(), *direction)) {
                Entry::Vacant(place) => {
                    place.insert(attachment.dev_at.start);
                }
                Entry::Occupied(place) => {
                    let line = diagnostics.source().line(*place.get());
                    diagnostics.add(
                        attachment.dev_at.clone(),
                        format!("{} {direction} is on line {line} already", attachment.dev),
                        "each direction of a device has one `[[attach]]`",
                    );
                    return;
                }
            }
        }
    }
}
