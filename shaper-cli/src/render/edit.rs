//! What became of a rule or would, and how to undo it.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use super::summary;
use crate::{
    model::{Found, Net, Outcome, Rule},
    plan::{Change, Edit, RuleChange, rule_add_line, rule_del_line, rule_replace_line},
};

/// Prefixes of a rule that a line to be typed can have.
const TYPED: usize = 16;

/// What was done to a rule of `change`: `found` is what is there now.
///
/// # Errors
///
/// If `out` fails.
pub fn edited(change: &Change, edit: &Edit, outcome: Outcome, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    match edit {
        Edit::Added(rule) => {
            told("added", "to", rule, change, out)?;
            writeln!(out, "undo: {}", rule_del_line(found, &rule.name))
        }
        Edit::Replaced { after, .. } if outcome == Outcome::Unchanged => told("unchanged", "of", after, change, out),
        Edit::Replaced { before, after } => {
            told("replaced", "of", after, change, out)?;
            writeln!(out, "undo: {}", rule_replace_line(found, before))
        }
        Edit::Deleted(rule) => {
            told("deleted", "of", rule, change, out)?;
            bring_back(rule, change, found, out)
        }
    }
}

/// What would be done to a rule.
///
/// # Errors
///
/// If `out` fails.
pub fn would_edit(RuleChange { change, edit }: &RuleChange, out: &mut dyn Write) -> io::Result<()> {
    match edit {
        Edit::Added(rule) => told("would add", "to", rule, change, out),
        Edit::Replaced { before, after } if before == after => told("unchanged", "of", after, change, out),
        Edit::Replaced { before, after } => {
            told("would replace", "of", after, change, out)?;
            writeln!(out, "{}", summary::rule("    now:", before, change.config.per))
        }
        Edit::Deleted(rule) => told("would delete", "of", rule, change, out),
    }
}

/// The rule with its limits, and what it matches if its name does not say so.
fn told(done: &str, place: &str, rule: &Rule, change: &Change, out: &mut dyn Write) -> io::Result<()> {
    let start = format!("{done} rule {} {place} {} {}:", rule.name, change.device.name, change.direction);
    writeln!(out, "{}", summary::rule(&start, rule, change.config.per))?;
    let matches = rule.matches.short();
    if matches == rule.name { Ok(()) } else { writeln!(out, "    {matches}") }
}

/// How to have a deleted rule again.
fn bring_back(rule: &Rule, change: &Change, found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let nets = &rule.matches.nets;
    if nets.len() > TYPED {
        let count = nets.len();
        return writeln!(
            out,
            "    its {count} prefixes are too many to type; `shaper save` keeps rules before a change"
        );
    }
    writeln!(out, "undo: {}", rule_add_line(found, rule))?;
    let rules = change.before.as_ref().map_or(&[][..], |before| &before.config.rules);
    let younger = rules.iter().skip_while(|other| other.name != rule.name).skip(1);
    let own: HashSet<&Net> = nets.iter().collect();
    let rival = |other: &Rule| match other.matches.nets.as_slice() {
        [] => own.is_empty(),
        others => others.iter().any(|net| own.contains(net)),
    };
    let Some(rival) = younger.into_iter().find(|other| rival(other)) else { return Ok(()) };
    writeln!(out, "    it would then be younger than rule {}, which has a prefix of it", rival.name)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        model::{Config, Direction, Limits, Match},
        plan::example,
    };

    /// From these rules to those.
    fn change(before: &[Rule], after: &[Rule]) -> (Change, Found) {
        let with = |rules: &[Rule]| Found {
            config: Config { rules: rules.to_vec(), ..example::config() },
            ..example::found()
        };
        let (before, after) = (with(before), with(after));
        let change = Change {
            device: example::device(),
            direction: Direction::Ingress,
            config: after.config.clone(),
            before: Some(before),
        };
        (change, after)
    }

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_became_of_a_rule_is_said_with_how_to_undo_it() {
        let guests = example::rule("guests");
        let unlimited = Rule { per: None, limits: Limits::default(), ..guests.clone() };
        let nobody = Rule { limits: Limits::BLOCK, ..example::rule("10.20.0.0/16") };
        let (change, found) = change(&[guests.clone(), nobody.clone()], std::slice::from_ref(&nobody));
        let said = |edit, outcome| text(|out| edited(&change, &edit, outcome, &found, out));
        let would = |edit| text(|out| would_edit(&RuleChange { change: change.clone(), edit }, out));
        assert_eq!(
            said(Edit::Added(guests.clone()), Outcome::Updated),
            "added rule guests to eth0 ingress: 20 Mbit/s per src, burst 625000 B = 250 ms\n    \
             10.20.0.0/16\n\
             undo: shaper rule del eth0 --direction ingress --name guests\n"
        );
        let replaced = Edit::Replaced { before: guests.clone().into(), after: unlimited.into() };
        assert_eq!(
            said(replaced.clone(), Outcome::Updated),
            "replaced rule guests of eth0 ingress: unlimited\n    \
             10.20.0.0/16\n\
             undo: shaper rule replace eth0 --direction ingress --name guests --per src --rate 20mbit\n"
        );
        assert_eq!(
            would(replaced),
            "would replace rule guests of eth0 ingress: unlimited\n    \
             10.20.0.0/16\n    \
             now: 20 Mbit/s per src, burst 625000 B = 250 ms\n"
        );
        let same = Edit::Replaced { before: nobody.clone().into(), after: nobody.into() };
        let unchanged = "unchanged rule 10.20.0.0/16 of eth0 ingress: everything is blocked\n";
        assert_eq!([said(same.clone(), Outcome::Unchanged), would(same)], [unchanged, unchanged]);
        assert_eq!(
            said(Edit::Deleted(guests.clone()), Outcome::Updated),
            "deleted rule guests of eth0 ingress: \
             20 Mbit/s per src, burst 625000 B = 250 ms\n    \
             10.20.0.0/16\n\
             undo: shaper rule add eth0 10.20.0.0/16 --direction ingress --name guests --per src --rate 20mbit\n    \
             it would then be younger than rule 10.20.0.0/16, which has a prefix of it\n"
        );
        assert!(would(Edit::Deleted(guests)).starts_with("would delete rule guests of eth0 ingress:"));
    }

    #[test]
    fn a_rule_that_nobody_would_type_is_not_a_line() {
        let nets = (0..17_u8).map(|n| Net::around([10, n, 0, 0].into(), 16)).collect();
        let many = Rule { matches: Match { nets, ..Match::default() }, ..example::rule("many") };
        let (change, found) = change(std::slice::from_ref(&many), &[]);
        let said = text(|out| edited(&change, &Edit::Deleted(many), Outcome::Updated, &found, out));
        assert!(
            said.ends_with("    its 17 prefixes are too many to type; `shaper save` keeps rules before a change\n")
        );
    }
}
