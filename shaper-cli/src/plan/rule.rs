//! What `rule` makes of the rules of an attachment.

use std::collections::HashSet;

use super::{change::Change, limits::limits};
use crate::{
    args::{RuleDel, RuleEdit, RuleWords},
    compile::{Slotted, compile},
    error::{Error, Result},
    model::{Config, Device, Found, Limits, Match, Part, Ports, Rule, protocol, rule},
    near::nearest,
    shell,
};

/// Another set of rules for one direction of a device.
#[derive(Clone, Debug)]
pub struct RuleChange {
    /// The whole of what is to be in force.
    pub change: Change,
    /// In which rule it differs from what is.
    pub edit: Edit,
}

/// What becomes of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It comes.
    Added(Rule),
    /// It stays, and its limits may be others.
    Replaced {
        /// What it was.
        before: Box<Rule>,
        /// What it is to be.
        after: Box<Rule>,
    },
    /// It goes.
    Deleted(Rule),
}

/// Whether the words about a rule go together, whatever is attached.
///
/// # Errors
///
/// If they do not.
pub fn check_rule(words: &RuleWords) -> Result<()> {
    matches(words).map(|_| ())
}

/// What `rule add` makes of `found`, on `device`.
///
/// # Errors
///
/// If the arguments do not go together, or not with the rules that are there.
pub fn add(args: &RuleEdit, device: &Device, found: &Found) -> Result<RuleChange> {
    let matches = matches(&args.words)?;
    let name = match &args.words.name {
        Some(name) => name.clone(),
        None => default_name(&matches)?,
    };
    let limits = limits(&args.limits, &Limits::default())?;
    let rules = &found.config.rules;
    let parts: HashSet<Part> = matches.parts().collect();
    let taken = rules.iter().find_map(|rule| Some((rule, rule.matches.parts().find(|part| parts.contains(part))?)));
    if let Some((rule, part)) = taken {
        return Err(Error::usage(
            one(part).to_string(),
            format!("the rule `{}` of {} matches it already", rule.name, place(found)),
            format!("`{}` and new limits change that rule", replace_line(found, &rule.name)),
        ));
    }
    if rules.iter().any(|rule| rule.name == name) {
        return Err(Error::usage(
            "--name",
            format!("`{name}` is a rule of {} already, and matches something else", place(found)),
            format!("give another name; `{}` and new limits change that rule", replace_line(found, &name)),
        ));
    }
    let rule = Rule { name, matches, per: args.per, limits };
    let mut config = found.config.clone();
    config.rules.push(rule.clone());
    // Said by a dry run too. Numbers do not matter here.
    let slotted: Vec<Slotted<'_>> = config.rules.iter().map(|rule| Slotted { slot: 1, rule }).collect();
    compile(&slotted, found.direction)?;
    Ok(RuleChange { change: change(device, found, config), edit: Edit::Added(rule) })
}

/// What `rule replace` makes of `found`, on `device`.
///
/// # Errors
///
/// If the arguments do not go together, or there is no such rule.
pub fn replace(args: &RuleEdit, device: &Device, found: &Found) -> Result<RuleChange> {
    let at = find(
        &args.words,
        found,
        &format!("`{}` adds a rule", shell::line(found.netns.as_deref(), "rule add", &found.dev, " ..")),
    )?;
    let limits = limits(&args.limits, &Limits::default())?;
    let before = found.config.rules[at].clone();
    let after = Rule { per: args.per, limits, ..before.clone() };
    let mut config = found.config.clone();
    config.rules[at].clone_from(&after);
    let [before, after] = [before, after].map(Box::new);
    Ok(RuleChange { change: change(device, found, config), edit: Edit::Replaced { before, after } })
}

/// What `rule del` makes of `found`, on `device`.
///
/// # Errors
///
/// If the arguments do not go together, or there is no such rule.
pub fn del(args: &RuleDel, device: &Device, found: &Found) -> Result<RuleChange> {
    let list = shell::line(found.netns.as_deref(), "rule list", &found.dev, "");
    let at = find(&args.words, found, &format!("`{list}` lists the rules"))?;
    let mut config = found.config.clone();
    let rule = config.rules.remove(at);
    Ok(RuleChange { change: change(device, found, config), edit: Edit::Deleted(rule) })
}

fn change(device: &Device, found: &Found, config: Config) -> Change {
    Change { device: device.clone(), direction: found.direction, config, before: Some(found.clone()) }
}

/// What the words match.
pub(crate) fn matches(words: &RuleWords) -> Result<Match> {
    let RuleWords { nets, name: _, proto, port, sport, dport, side } = words;
    let mut seen = HashSet::new();
    if let Some(twice) = nets.iter().find(|net| !seen.insert(**net)) {
        return Err(Error::usage(twice.to_string(), "given more than once", "give it once"));
    }
    if nets.is_empty() && side.is_some() {
        return Err(Error::usage("--side", "says whose address is in CIDR, and there is none", "give a CIDR too"));
    }
    let (option, ports) = match (*port, *sport, *dport) {
        (Some(port), ..) => ("--port", Ports::Either(port)),
        (None, None, None) => ("", Ports::Any),
        (None, Some(sport), None) => ("--sport", Ports::Source(sport)),
        (None, None, Some(dport)) => ("--dport", Ports::Destination(dport)),
        (None, Some(sport), Some(dport)) => ("--sport", Ports::Both { sport, dport }),
    };
    if let Some(proto) = proto.filter(|proto| ports != Ports::Any && !protocol::has_ports(*proto)) {
        return Err(Error::usage(
            option,
            format!("{} has no ports", protocol::name(proto)),
            "protocols with ports: tcp, udp, udplite, sctp, dccp",
        ));
    }
    Ok(Match { nets: nets.clone(), side: side.unwrap_or_default(), proto: *proto, ports })
}

/// What a rule is called that nobody gave a name.
fn default_name(matches: &Match) -> Result<String> {
    let name = matches.short();
    rule::name(&name).map_err(|_long| {
        Error::usage(
            "--name",
            format!("missing, and `{name}` is too long for a name"),
            "give a name, like --name guests",
        )
    })
}

/// The place of the rule that is meant by its name or by all of what it matches.
fn find(words: &RuleWords, found: &Found, hint: &str) -> Result<usize> {
    let rules = &found.config.rules;
    let matches = matches(words)?;
    let Some(name) = &words.name else { return find_match(&matches, found, hint) };
    let Some(at) = rules.iter().position(|rule| rule.name == *name) else {
        let hint = match nearest(name, rules.iter().map(|rule| rule.name.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None => hint.to_owned(),
        };
        return Err(Error::usage("--name", format!("{} has no rule `{name}`", place(found)), hint));
    };
    if matches != Match::default() && !alike(&matches, &rules[at].matches) {
        return Err(Error::usage(
            "--name",
            format!("the rule `{name}` matches `{}`, not `{}`", rules[at].matches.short(), matches.short()),
            "leave out the name or the match; to match something else, delete the rule and add it",
        ));
    }
    Ok(at)
}

fn find_match(matches: &Match, found: &Found, hint: &str) -> Result<usize> {
    let rules = &found.config.rules;
    let parts: HashSet<Part> = matches.parts().collect();
    // A part belongs to one rule.
    let Some(at) = rules.iter().position(|rule| rule.matches.parts().any(|part| parts.contains(&part))) else {
        return Err(Error::usage(matches.short(), format!("no rule of {} matches just that", place(found)), hint));
    };
    if alike(matches, &rules[at].matches) {
        return Ok(at);
    }
    let name = &rules[at].name;
    Err(Error::usage(
        matches.short(),
        format!("the rule `{name}` of {} matches `{}`", place(found), rules[at].matches.short()),
        format!("name what is meant: --name {}", shell::quoted(name)),
    ))
}

/// Whether two matches are the same, in whatever order their prefixes are.
fn alike(a: &Match, b: &Match) -> bool {
    let parts = |of: &Match| of.parts().collect::<HashSet<Part>>();
    a.nets.len() == b.nets.len() && parts(a) == parts(b)
}

/// A match of one part.
fn one((net, side, proto, ports): Part) -> Match {
    Match { nets: net.into_iter().collect(), side, proto, ports }
}

fn place(found: &Found) -> String {
    format!("{} {}", found.dev, found.direction)
}

fn replace_line(found: &Found, name: &str) -> String {
    shell::line(found.netns.as_deref(), "rule replace", &found.dev, &format!(" --name {}", shell::quoted(name)))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use std::net::IpAddr;

    use shaper_common::rule::MAX_CHAIN;

    use super::*;
    use crate::{
        args::{Command, RuleCommand},
        model::{Direction, Net, Outcome, Per, PortRange},
        plan::{
            example::{self, command},
            other_rules, rule_add_line, rule_del_line, rule_replace_line,
        },
        render,
    };

    /// What a line makes of `found`.
    fn planned(line: &str, found: &Found) -> Result<RuleChange> {
        let Command::Rule(args) = command(line) else { panic!("not about a rule") };
        match &args.command {
            RuleCommand::Add(args) => add(args, &example::device(), found),
            RuleCommand::Replace(args) => replace(args, &example::device(), found),
            RuleCommand::Del(args) => del(args, &example::device(), found),
            RuleCommand::List(_) => panic!("changes nothing"),
        }
    }

    /// What there is after some lines.
    fn after(lines: &[&str]) -> Found {
        lines.iter().fold(example::found(), |found, line| {
            let RuleChange { change, .. } = planned(line, &found).unwrap();
            assert_eq!(change.before.unwrap().config, found.config);
            Found { config: change.config, ..found }
        })
    }

    fn refused(line: &str, found: &Found) -> [String; 2] {
        let error = planned(line, found).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        [error.to_string(), error.hint().into_owned()]
    }

    const GUESTS: &str = "rule add eth0 10.20.0.0/16 2001:db8:20::/48 --name guests --rate 20mbit --per src";
    const DNS: &str = "rule add eth0 --proto udp --port 53 --pps 200";

    #[test]
    fn rules_are_added_replaced_and_deleted() {
        let found = after(&[GUESTS, DNS]);
        let [guests, dns] = found.config.rules.as_slice() else { panic!("{:?}", found.config.rules) };
        assert_eq!((guests.name.as_str(), guests.per), ("guests", Some("src".parse().unwrap())));
        assert_eq!(guests.matches.to_string(), "10.20.0.0/16, 2001:db8:20::/48");
        assert_eq!(guests.limits, example::rule("").limits);
        assert_eq!((dns.name.as_str(), dns.per), ("any udp port 53", None::<Per>));
        for which in ["--name guests", "2001:db8:20::/48 10.20.0.0/16", "10.20.0.0/16 2001:db8:20::/48 --name guests"] {
            let line = format!("rule replace eth0 {which} --rate 20mbit --per src");
            let same = planned(&line, &found).unwrap();
            assert_eq!(same.change.outcome(), Outcome::Unchanged);
            let line = format!("rule replace eth0 {which} --total 5gbit");
            let RuleChange { change, edit } = planned(&line, &found).unwrap();
            let [Rule { name, matches, per: None, limits }, second] = change.config.rules.as_slice() else {
                panic!("{change:?}")
            };
            assert_eq!((name, matches, second), (&guests.name, &guests.matches, dns));
            assert_eq!((limits.rate, limits.total), (None, example::byte_limit(5_000_000_000, 156_250_000, false)));
            assert_eq!(
                edit,
                Edit::Replaced { before: guests.clone().into(), after: change.config.rules[0].clone().into() }
            );
            let gone = planned(&format!("rule del eth0 {which}"), &found).unwrap();
            assert_eq!(
                (gone.change.config.rules.as_slice(), gone.edit),
                (&[dns.clone()][..], Edit::Deleted(guests.clone()))
            );
        }
        let left = after(&[GUESTS, DNS, "rule del eth0 --proto udp --port 53"]).config.rules;
        assert_eq!(left.as_slice(), std::slice::from_ref(guests));
    }

    #[test]
    fn what_is_there_is_not_added_again() {
        let found = after(&[GUESTS, DNS]);
        for (line, cause, hint) in [
            (
                "rule add eth0 10.20.0.0/16 --rate 1gbit",
                "`10.20.0.0/16`: the rule `guests` of eth0 ingress matches it already",
                "`shaper rule replace eth0 --name guests` and new limits change that rule",
            ),
            (
                "rule add eth0 --proto 17 --port 53-53 --block",
                "`any udp port 53`: the rule `any udp port 53` of eth0 ingress matches it already",
                "`shaper rule replace eth0 --name 'any udp port 53'` and new limits change that rule",
            ),
            (
                "rule add eth0 10.30.0.0/16 --name guests --block",
                "`--name`: `guests` is a rule of eth0 ingress already, and matches something else",
                "give another name; `shaper rule replace eth0 --name guests` and new limits change that rule",
            ),
        ] {
            assert_eq!(refused(line, &found), [cause, hint], "{line}");
        }
        // Less or more of it is something else.
        for line in ["10.20.0.0/16 --proto udp", "10.20.0.0/17", "10.20.0.0/16 --side local", "--proto udp --sport 53"]
        {
            assert!(planned(&format!("rule add eth0 {line} --block"), &found).is_ok(), "{line}");
        }
    }

    #[test]
    fn what_the_data_plane_cannot_hold_is_refused() {
        let mut found = example::found();
        let ports = |port: u16| Ports::Either(PortRange { first: port, last: port });
        let rule = |port: u16| Rule {
            matches: Match { ports: ports(port), ..Match::default() },
            ..example::rule(&port.to_string())
        };
        found.config.rules = (1..=MAX_CHAIN as u16).map(rule).collect();
        let [cause, _] = refused("rule add eth0 --port 60000 --block", &found);
        assert!(cause.contains("its addresses can meet"), "{cause}");
        assert!(planned("rule add eth0 10.0.0.0/8 --block --side local", &example::found()).is_ok());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let found = after(&[GUESTS, DNS]);
        for (line, cause, hint) in [
            ("rule del eth0 --name guest", "`--name`: eth0 ingress has no rule `guest`", "did you mean `guests`?"),
            (
                "rule del eth0 --name servers",
                "`--name`: eth0 ingress has no rule `servers`",
                "`shaper rule list eth0` lists the rules",
            ),
            (
                "rule replace eth0 10.30.0.0/16 --block",
                "`10.30.0.0/16`: no rule of eth0 ingress matches just that",
                "`shaper rule add eth0 ..` adds a rule",
            ),
            (
                "rule del eth0 10.20.0.0/16",
                "`10.20.0.0/16`: the rule `guests` of eth0 ingress matches `10.20.0.0/16 +1`",
                "name what is meant: --name guests",
            ),
            (
                "rule del eth0 10.30.0.0/16 --name guests",
                "`--name`: the rule `guests` matches `10.20.0.0/16 +1`, not `10.30.0.0/16`",
                "leave out the name or the match; to match something else, delete the rule and add it",
            ),
        ] {
            assert_eq!(refused(line, &found), [cause, hint], "{line}");
        }
    }

    #[test]
    fn words_that_do_not_go_together_are_refused() {
        for (words, cause, hint) in [
            ("10.0.0.0/8 ::/0 10.0.0.0/8", "`10.0.0.0/8`: given more than once", "give it once"),
            ("--side local", "`--side`: says whose address is in CIDR, and there is none", "give a CIDR too"),
            (
                "--proto icmp --dport 53",
                "`--dport`: icmp has no ports",
                "protocols with ports: tcp, udp, udplite, sctp, dccp",
            ),
            (
                "2001:db8:1111:2222:3333:4444:5555:6666 --proto udplite --dport 10000-20000",
                "`--name`: missing, and `2001:db8:1111:2222:3333:4444:5555:6666/128 udplite dport 10000-20000` is too \
                 long for a name",
                "give a name, like --name guests",
            ),
        ] {
            assert_eq!(refused(&format!("rule add eth0 {words} --block"), &example::found()), [cause, hint], "{words}");
        }
    }

    #[test]
    fn lines_lead_back() {
        for options in [
            "10.20.0.0/16 --rate 20mbit --per src/24",
            "10.20.0.0/16 2001:db8:20::/48 --name guests --rate 20mbit --burst 1mb --total 5gbit",
            "192.0.2.7 --proto tcp --dport 80-90 --side local --unlimited",
            "--proto 200 --block",
            "--sport 1 --dport 2 --pps 100 --exceed mark=7",
            "--port 53 --name it's --total 8mbit",
        ] {
            let [before, gone] = [after(&[]), after(&[&format!("rule add eth0 {options}")])];
            let rule = gone.config.rules[0].clone();
            // Words as a shell would read them.
            let plain = |line: String| line.strip_prefix("shaper ").unwrap().replace(r"'it'\''s'", "it's");
            let add = plain(rule_add_line(&before, &rule));
            assert_eq!(planned(&add, &before).unwrap().change.config, gone.config, "{add}");
            if !rule.name.contains(' ') {
                let del = plain(rule_del_line(&gone, &rule.name));
                assert_eq!(planned(&del, &gone).unwrap().change.config, before.config, "{del}");
                let other = Found {
                    config: planned(&format!("rule replace eth0 --name {} --rate 8bit", rule.name), &gone)
                        .unwrap()
                        .change
                        .config,
                    ..gone.clone()
                };
                let replace = plain(rule_replace_line(&other, &rule));
                assert_eq!(planned(&replace, &other).unwrap().change.config, gone.config, "{replace}");
            }
        }
        let found = Found { netns: Some("a".to_owned()), direction: Direction::Egress, ..example::found() };
        assert_eq!(
            rule_del_line(&found, "any udp port 53"),
            "shaper -n a rule del eth0 --direction egress --name 'any udp port 53'"
        );
        assert_eq!(
            rule_add_line(&found, &example::rule("guests")),
            "shaper -n a rule add eth0 10.20.0.0/16 --direction egress --name guests --per src --rate 20mbit"
        );
    }

    /// What takes the square of their number of steps would not end here.
    #[test]
    fn a_hundred_thousand_rules_are_normal() {
        let mut found = example::found();
        found.config.rules = (0..100_000_u32)
            .map(|n| {
                let net = Net::around(IpAddr::from((0x0a00_0000 + (n << 8)).to_be_bytes()), 24);
                Rule { matches: Match { nets: vec![net], ..Match::default() }, ..example::rule(&net.to_string()) }
            })
            .collect();
        let added = planned("rule add eth0 192.0.2.0/24 --block", &found).unwrap().change;
        assert_eq!(added.config.rules.len(), 100_001);
        let replaced = planned("rule replace eth0 10.200.7.0/24 --block", &found).unwrap();
        assert!(matches!(&replaced.edit, Edit::Replaced { after, .. } if after.name == "10.200.7.0/24"));
        assert_eq!(refused("rule del eth0 --name 10.200.7.0/2", &found)[1], "did you mean `10.200.7.0/24`?");
        let rule = other_rules(&added).into_iter().map(|rule| rule.name.as_str());
        assert!(rule.eq(["192.0.2.0/24"]));
        let mut out = Vec::new();
        let after = Found { config: added.config.clone(), ..found };
        render::changed(&added, Outcome::Updated, &after, false, &mut out).unwrap();
        render::rules(std::slice::from_ref(&after), false, &mut out).unwrap();
        render::json::rules(&[after], &mut out).unwrap();
    }
}
