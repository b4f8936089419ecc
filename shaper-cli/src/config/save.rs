//! A configuration as a file.

use std::fmt::Write as _;

use crate::{
    model::{Config, Found, Match, Ports, Rule, Side, protocol},
    plan::{limit_options, options, word},
    text::is_unsafe,
};

/// What is attached, as a file that [`super::read`] reads back. Values at their default are left out.
#[must_use]
pub fn write<'f>(found: impl IntoIterator<Item = &'f Found>) -> String {
    let mut out = String::new();
    out.push_str("# What shaper had attached, as `shaper save` wrote it (shaper ");
    out.push_str(concat!(env!("CARGO_PKG_VERSION"), ").\n"));
    out.push_str("# `shaper diff FILE` compares, `shaper apply -f FILE` makes it so.\n");
    out.push_str("version = 1\n");
    for found in found {
        out.push_str("\n[[attach]]\n");
        text("dev", &found.dev, &mut out);
        text("direction", &found.direction.to_string(), &mut out);
        attachment(&found.config, &mut out);
    }
    out
}

fn attachment(config: &Config, out: &mut String) {
    pairs(options(config), out);
    for rule in &config.rules {
        self::rule(rule, out);
    }
}

fn rule(rule: &Rule, out: &mut String) {
    let Rule { name, matches: Match { nets, side, proto, ports }, per, limits } = rule;
    out.push_str("\n[[attach.rule]]\n");
    text("name", name, out);
    match nets.as_slice() {
        [] => {}
        [net] => text("match", &net.to_string(), out),
        nets => {
            out.push_str("match = [\n");
            for net in nets {
                // Writing to a string does not fail.
                writeln!(out, "    \"{net}\",").ok();
            }
            out.push_str("]\n");
        }
    }
    if *side != Side::default() {
        text("side", &word(side), out);
    }
    if let Some(proto) = proto {
        pair("proto", &protocol::name(*proto), out);
    }
    match ports {
        Ports::Any => {}
        Ports::Either(range) => pair("port", &range.to_string(), out),
        Ports::Source(range) => pair("sport", &range.to_string(), out),
        Ports::Destination(range) => pair("dport", &range.to_string(), out),
        Ports::Both { sport, dport } => {
            pair("sport", &sport.to_string(), out);
            pair("dport", &dport.to_string(), out);
        }
    }
    if let Some(per) = per {
        text("per", &per.to_string(), out);
    }
    pairs(limit_options(limits), out);
}

/// Options of the command line as keys; one without a value is a flag.
fn pairs(options: Vec<(&'static str, String)>, out: &mut String) {
    for (key, value) in options {
        if value.is_empty() {
            out.extend([key, " = true\n"]);
        } else {
            pair(key, &value, out);
        }
    }
}

/// A key whose value is a number, if it is written like one, or text.
fn pair(key: &str, value: &str, out: &mut String) {
    if value.parse::<i64>().is_ok_and(|number| number.to_string() == value) {
        out.extend([key, " = ", value, "\n"]);
    } else {
        text(key, value, out);
    }
}

/// A key and a basic string of TOML. What a terminal would not show is an escape.
fn text(key: &str, value: &str, out: &mut String) {
    out.extend([key, " = \""]);
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_unsafe(c) => {
                write!(out, "\\u{:04x}", u32::from(c)).ok();
            }
            c => out.push(c),
        }
    }
    out.push_str("\"\n");
}
