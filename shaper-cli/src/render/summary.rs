//! An attachment in a line, or a few where it has many limits.

use shaper_common::{abi::Overflow, verdict::Action};

use crate::{
    model::{AccountChoice, ByteLimit, Config, Found, Limits, Order, Per, Rule, action},
    plan::word,
};

/// Columns of a line.
const WIDTH: usize = 80;

/// What a line that goes on from the one before begins with.
const INDENT: &str = "    ";

/// `eth0 ingress: 1 Gbit/s per flow, burst 256 MiB = 2.15 s (hook auto)`, with `start` for what stands before the
/// limits and `end` for what is in brackets. Without a line break at the end.
pub(super) fn limits(start: &str, config: &Config, end: &str) -> String {
    let mut phrases = phrases(&config.limits, config.per, "total ");
    if let Some(last) = phrases.last_mut() {
        last.push_str(&format!(" ({end})"));
    }
    lines(start.to_owned(), &phrases)
}

/// `rule guests: 20 Mbit/s per src, burst 625000 B = 250 ms`, likewise, with the key of the attachment for a rule that
/// has none.
pub(super) fn rule(start: &str, rule: &Rule, per: Per) -> String {
    let phrases = phrases(&rule.limits, rule.per.unwrap_or(per), "total of the rule ");
    let first = phrases.first().map_or(0, |phrase| phrase.chars().count());
    // Names of rules may be long. With the space before and the semicolon behind.
    let start =
        if start.chars().count() + first + 2 > WIDTH { format!("{start}\n{}", &INDENT[1..]) } else { start.to_owned() };
    lines(start, &phrases)
}

/// The phrases behind `start`, in as many lines as they need.
fn lines(start: String, phrases: &[String]) -> String {
    let mut line = start.lines().last().unwrap_or_default().chars().count();
    let mut text = start;
    for (n, phrase) in phrases.iter().enumerate() {
        let width = phrase.chars().count();
        // With the space before it and the semicolon that may follow.
        if n > 0 && line + width + 2 > WIDTH {
            text.extend([";\n", INDENT, phrase]);
            line = INDENT.len() + width;
        } else {
            let separator = if n == 0 { " " } else { "; " };
            text.extend([separator, phrase]);
            line += separator.len() + width;
        }
    }
    text
}

/// [`limits`] of what is attached: `eth0 ingress: 1 Gbit/s per flow, burst 256 MiB = 2.15 s (tcx)`.
pub(super) fn attachment(start: &str, found: &Found) -> String {
    limits(start, &found.config, &found.hook.to_string())
}

/// Each limit, and what happens above.
fn phrases(limits: &Limits, per: Per, total_name: &str) -> Vec<String> {
    let Limits { rate, peak, pps, total, exceed, violate, block, .. } = limits;
    let mut phrases = Vec::new();
    let bytes = |name: &str, limit: &ByteLimit, per: &str| {
        let ByteLimit { rate, burst, .. } = limit;
        format!("{name}{rate}{per}, burst {burst} = {}", burst.time_at(*rate))
    };
    let mut per = format!(" per {per}");
    if let Some(rate) = rate {
        phrases.push(bytes("", rate, &std::mem::take(&mut per)));
    }
    if let Some(pps) = pps {
        phrases.push(format!("{}{per}, burst {} = {}", pps.rate, pps.burst, pps.burst.time_at(pps.rate)));
    }
    phrases.extend(peak.iter().map(|peak| bytes("peak ", peak, "")));
    phrases.extend(total.iter().map(|total| bytes(total_name, total, "")));
    if *block {
        phrases.push("everything is blocked".to_owned());
    } else if phrases.is_empty() {
        phrases.push("unlimited".to_owned());
    }
    for (name, action) in [("above", *exceed), ("above the peak", *violate)] {
        if action != Action::default() {
            phrases.push(format!("{name}: {}", action::word(action)));
        }
    }
    phrases
}

/// The other settings in words: those that are no default, or all. Empty if there is nothing to say.
pub(super) fn settings(config: &Config, all: bool) -> String {
    let table = format!("room for {} keys", config.max_flows);
    let others = match config.overflow {
        Overflow::Shared => "others share a bucket",
        Overflow::Open => "others pass",
        Overflow::Closed => "others are dropped",
    };
    let mut counting = format!("counts {} bytes", word(&config.account));
    if config.overhead != 0 {
        counting.push_str(&format!(" {:+}", config.overhead));
    }
    if config.mpu != 0 {
        counting.push_str(&format!(", at least {}", config.mpu));
    }
    let counts_as_usual = config.account == AccountChoice::default() && config.overhead == 0 && config.mpu == 0;
    let order = match config.order {
        Order::First => "runs first",
        Order::Last => "runs last",
    };
    let phrases = [
        (config.max_flows == Config::MAX_FLOWS, table.as_str()),
        (config.overflow == Overflow::Shared, others),
        (counts_as_usual, counting.as_str()),
        (config.order == Order::default(), order),
    ];
    let said = phrases.into_iter().filter(|(default, _)| all || !default).map(|(_, phrase)| phrase);
    said.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example;

    #[test]
    fn many_limits_take_a_few_lines() {
        let config = Config { limits: example::limits(), ..example::config() };
        let text = limits("eth0 ingress:", &config, "tcx");
        assert_eq!(
            text,
            "eth0 ingress: 100 Mbit/s per flow, burst 3125000 B = 250 ms;\n    \
             10 kpps, burst 2500 packets = 250 ms;\n    \
             peak 200 Mbit/s, burst 6250000 B = 250 ms;\n    \
             total 1 Gbit/s, burst 31250000 B = 250 ms; above: dscp=CS1 (tcx)"
        );
        text.lines().for_each(|line| assert!(line.len() <= WIDTH, "{line}"));
    }

    #[test]
    fn the_first_limit_says_of_whom() {
        let line = |limits| super::limits("eth0 ingress:", &Config { limits, ..example::config() }, "tcx");
        let all = example::limits();
        let none = Limits::default();
        assert_eq!(
            line(Limits { pps: all.pps, exceed: Action::Mark(7), ..none.clone() }),
            "eth0 ingress: 10 kpps per flow, burst 2500 packets = 250 ms; above: mark=7 (tcx)"
        );
        assert_eq!(
            line(Limits { total: all.total, ..none.clone() }),
            "eth0 ingress: total 1 Gbit/s, burst 31250000 B = 250 ms (tcx)"
        );
        assert_eq!(
            line(Limits { rate: all.rate, peak: all.peak, violate: Action::Ecn, ..none }),
            "eth0 ingress: 100 Mbit/s per flow, burst 3125000 B = 250 ms;\n    \
             peak 200 Mbit/s, burst 6250000 B = 250 ms; above the peak: ecn (tcx)"
        );
        assert_eq!(line(Limits::BLOCK), "eth0 ingress: everything is blocked (tcx)");
        assert_eq!(line(Limits::default()), "eth0 ingress: unlimited (tcx)");
    }

    #[test]
    fn a_rule_with_a_long_name_begins_a_line_with_its_limits() {
        let guests = example::rule("guests");
        let limits = "20 Mbit/s per src, burst 625000 B = 250 ms";
        assert_eq!(rule("rule guests:", &guests, Per::FLOW), format!("rule guests: {limits}"));
        let start = format!("rule {}:", "x".repeat(64));
        assert_eq!(rule(&start, &guests, Per::FLOW), format!("{start}\n    {limits}"));
        let total = Limits { total: example::limits().total, ..guests.limits.clone() };
        let shared = Rule { per: None, limits: total, ..guests };
        assert_eq!(
            rule("rule guests:", &shared, Per::FLOW),
            "rule guests: 20 Mbit/s per flow, burst 625000 B = 250 ms;\n    \
             total of the rule 1 Gbit/s, burst 31250000 B = 250 ms"
        );
    }
}
