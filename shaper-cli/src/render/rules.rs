//! `rule list` for people.

use std::io::{self, Write};

use super::{
    human::{self, fitting},
    summary,
    table::{Flush, Table},
};
use crate::model::{ByteLimit, Found, Limits, Per, Rule, rule};

/// Columns of a name; together with the others the widest table is 80 columns.
const NAME_WIDTH: usize = 18;

/// Columns of a match.
const MATCH_WIDTH: usize = 27;

/// Columns of a rate.
const RATE_WIDTH: usize = 12;

/// Columns of a line.
const WIDTH: usize = 80;

/// What a line below a name begins with.
const INDENT: &str = "    ";

/// A table for each attachment, the default first. If `verbose`, each rule is followed by all of it.
///
/// # Errors
///
/// If `out` fails.
pub fn rules(attachments: &[Found], verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    for (n, found) in attachments.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        let config = &found.config;
        writeln!(out, "{} {}", found.dev, found.direction)?;
        let mut table = Table::new([Flush::Left; 4], ["RULE", "MATCH", "PER", "LIMIT"]);
        row(rule::DEFAULT, "the rest".to_owned(), config.per.to_string(), short(&config.limits), &mut table);
        for rule in &config.rules {
            let per = rule.per.unwrap_or(config.per);
            row(&rule.name, rule.matches.short(), per.to_string(), short(&rule.limits), &mut table);
            if verbose {
                detail(rule, per, &mut table);
            }
        }
        table.write(out)?;
    }
    Ok(())
}

/// A row; what is too long for its column has a line of its own before it.
fn row(name: &str, matches: String, per: String, limits: String, table: &mut Table<4>) {
    let fits = |text: &str, width| text.chars().count() <= width;
    let [name, matches] = match (name == matches, fits(name, NAME_WIDTH), fits(&matches, MATCH_WIDTH)) {
        (_, true, true) => [name.to_owned(), matches],
        (true, ..) => {
            table.line(name.to_owned());
            [String::new(), String::new()]
        }
        (false, _, false) => {
            table.line(name.to_owned());
            lines(&matches, table);
            [String::new(), String::new()]
        }
        (false, false, true) => {
            table.line(name.to_owned());
            [String::new(), matches]
        }
    };
    table.row([name, matches, per, limits]);
}

/// All limits of a rule, and all its prefixes if there are several.
fn detail(rule: &Rule, per: Per, table: &mut Table<4>) {
    for line in summary::rule("   ", rule, per).lines() {
        table.line(line.to_owned());
    }
    if rule.matches.nets.len() > 1 {
        lines(&rule.matches.to_string(), table);
    }
}

/// Words in lines below a name.
fn lines(text: &str, table: &mut Table<4>) {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH - INDENT.len() {
            table.line(format!("{INDENT}{line}"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    table.line(format!("{INDENT}{line}"));
}

/// The first limit, and how many more there are.
fn short(limits: &Limits) -> String {
    let Limits { rate, peak, pps, total, block, .. } = limits;
    let bits =
        |limit: &ByteLimit| fitting(&limit.rate.to_string(), RATE_WIDTH, limit.rate.bits_per_second(), &human::RATE);
    let own = rate.as_ref().map(bits).into_iter().chain(pps.iter().map(|pps| pps.rate.to_string()));
    // A peak is never the first.
    let others = peak.iter().map(bits).chain(total.iter().map(|total| format!("total {}", bits(total))));
    let mut limits = own.chain(others);
    match (limits.next(), limits.count()) {
        (None, _) if *block => "blocked".to_owned(),
        (None, _) => "unlimited".to_owned(),
        (Some(first), 0) => first,
        (Some(first), others) => format!("{first} +{others}"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        model::{Config, Match, Ports, Side},
        plan::example,
    };

    fn text(rules: Vec<Rule>, verbose: bool) -> String {
        let found = Found { config: Config { rules, ..example::config() }, ..example::found() };
        let mut out = Vec::new();
        super::rules(&[found], verbose, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().for_each(|line| assert!(line.chars().count() <= WIDTH, "{line}"));
        text
    }

    fn named(name: &str, matches: Match, limits: Limits) -> Rule {
        Rule { name: name.to_owned(), matches, per: None, limits }
    }

    #[test]
    fn rules_are_a_table() {
        let dns = Match { proto: Some(17), ports: Ports::Either("53".parse().unwrap()), ..Match::default() };
        let all = Rule { limits: example::limits(), ..example::rule("10.20.0.0/16") };
        let total = Limits { total: example::limits().total, ..Limits::default() };
        assert_eq!(
            text(
                vec![
                    example::rule("guests"),
                    all,
                    named("dns", dns.clone(), Limits { pps: example::limits().pps, ..Limits::default() }),
                    named("any udp port 53", dns, Limits::BLOCK),
                    named("shared", Match::default(), total),
                    named("free", Match::default(), Limits::default()),
                ],
                false
            ),
            "\
eth0 ingress
RULE             MATCH            PER   LIMIT
default          the rest         flow  1 Gbit/s
guests           10.20.0.0/16     src   20 Mbit/s
10.20.0.0/16     10.20.0.0/16     src   100 Mbit/s +3
dns              any udp port 53  flow  10 kpps
any udp port 53  any udp port 53  flow  blocked
shared           any              flow  total 1 Gbit/s
free             any              flow  unlimited
"
        );
        assert_eq!(
            text(Vec::new(), false),
            "eth0 ingress\nRULE     MATCH     PER   LIMIT\ndefault  the rest  flow  1 Gbit/s\n"
        );
    }

    #[test]
    fn what_is_long_has_lines_of_its_own() {
        let long = "2001:db8:1111:2222:3333:4444:5555:6666";
        let ports = Ports::Both { sport: "10000-20000".parse().unwrap(), dport: "30000-40000".parse().unwrap() };
        let matches = Match { nets: vec![long.parse().unwrap()], side: Side::Local, proto: Some(136), ports };
        let limits = Limits { rate: example::byte_limit(999_999_999_999, 1 << 40, true), ..example::limits() };
        let rate = Rule {
            per: Some("src/32,127".parse().unwrap()),
            ..named("eighteen-letters-1", Match { nets: Vec::new(), ..matches.clone() }, limits)
        };
        assert_eq!(
            text(vec![named("web", matches, Limits::BLOCK), rate, example::rule(&"x".repeat(64))], false),
            format!(
                "\
eth0 ingress
RULE     MATCH         PER         LIMIT
default  the rest      flow        1 Gbit/s
web
    {long}/128 udplite sport 10000-20000 dport
    30000-40000 local
                       flow        blocked
eighteen-letters-1
    any udplite sport 10000-20000 dport 30000-40000 local
                       src/32,127  ~999 Gbit/s +3
{}
         10.20.0.0/16  src         20 Mbit/s
",
                "x".repeat(64)
            )
        );
    }

    #[test]
    fn all_of_a_rule_is_shown_when_asked_for() {
        let nets = ["10.20.0.0/16", "2001:db8:20::/48"].map(|net| net.parse().unwrap()).to_vec();
        let guests = Rule { matches: Match { nets, ..Match::default() }, ..example::rule("guests") };
        assert_eq!(
            text(vec![guests], true),
            "\
eth0 ingress
RULE     MATCH            PER   LIMIT
default  the rest         flow  1 Gbit/s
guests   10.20.0.0/16 +1  src   20 Mbit/s
    20 Mbit/s per src, burst 625000 B = 250 ms
    10.20.0.0/16, 2001:db8:20::/48
"
        );
    }
}
