//! What becomes of the rules of an attachment.

use std::{
    collections::HashMap,
    io::{self, Write},
};

use super::summary;
use crate::model::{Config, Rule};

/// Rules that are named; more are counted, unless somebody wants them all.
const NAMED: usize = 20;

/// Writes each rule that comes (`+`), goes (`-`) or changes (`~`), with its limits.
pub(super) fn rules(before: &Config, after: &Config, all: bool, out: &mut dyn Write) -> io::Result<()> {
    let (per, before, after) = (after.per, before.rules.as_slice(), after.rules.as_slice());
    let old: HashMap<&str, &Rule> = before.iter().map(|rule| (rule.name.as_str(), rule)).collect();
    let new: HashMap<&str, &Rule> = after.iter().map(|rule| (rule.name.as_str(), rule)).collect();
    let gone = before.iter().filter(|rule| !new.contains_key(rule.name.as_str())).map(|rule| ('-', rule));
    let others = after.iter().filter_map(|rule| match old.get(rule.name.as_str()) {
        None => Some(('+', rule)),
        Some(old) if **old != *rule => Some(('~', rule)),
        Some(_) => None,
    });
    let differences: Vec<(char, &Rule)> = gone.chain(others).collect();
    let named = if all { differences.len() } else { NAMED };
    for (sign, rule) in differences.iter().take(named) {
        match sign {
            '-' => writeln!(out, "    - rule {}", rule.name)?,
            sign => {
                writeln!(out, "{}", summary::rule(&format!("    {sign} rule {}:", rule.name), rule, per))?;
                // The rest is in the name, if nobody gave one.
                if rule.name != rule.matches.short()
                    && old.get(rule.name.as_str()).is_none_or(|old| old.matches != rule.matches)
                {
                    writeln!(out, "        {}", rule.matches.short())?;
                }
            }
        }
    }
    if differences.len() > named {
        writeln!(out, "    and {} rules more", differences.len() - named)?;
    }
    let stay = |rules: &[Rule], others: &HashMap<&str, &Rule>| -> Vec<String> {
        let both = rules.iter().filter(|rule| others.contains_key(rule.name.as_str()));
        both.map(|rule| rule.name.clone()).collect()
    };
    // Of two rules that match alike, the older wins.
    if stay(before, &new) != stay(after, &old) {
        writeln!(out, "    the rules in another order")?;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::model::{Limits, Match};

    fn named(names: &[&str]) -> Vec<Rule> {
        let rule = |name: &&str| Rule {
            name: (*name).to_owned(),
            matches: Match::default(),
            per: None,
            limits: Limits::BLOCK,
        };
        names.iter().map(rule).collect()
    }

    fn text(before: &[Rule], after: &[Rule], all: bool) -> String {
        let mut out = Vec::new();
        let config = |rules: &[Rule]| Config { rules: rules.to_vec(), ..Config::of(Limits::BLOCK) };
        rules(&config(before), &config(after), all, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rules_come_go_and_change() {
        let before = named(&["a", "b", "c"]);
        assert_eq!(text(&before, &before, false), "");
        let mut after = named(&["b", "c", "d"]);
        after[0].limits = Limits::default();
        assert_eq!(
            text(&before, &after, false),
            "    - rule a\n    ~ rule b: unlimited\n    + rule d: everything is blocked\n        any\n"
        );
        assert_eq!(text(&before, &named(&["a", "c", "b"]), false), "    the rules in another order\n");
    }

    #[test]
    fn many_rules_are_counted() {
        let names: Vec<String> = (0..25).map(|n| n.to_string()).collect();
        let after = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let short = text(&[], &after, false);
        assert_eq!((short.lines().count(), short.lines().last()), (41, Some("    and 5 rules more")));
        assert_eq!(text(&[], &after, true).lines().count(), 50);
    }
}
