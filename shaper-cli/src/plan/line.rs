//! Command lines that lead to a state, to tell people how to undo a change.

use clap::ValueEnum;
use shaper_common::{abi::Overflow, verdict::Action};

use crate::{
    model::{
        AccountChoice, ByteLimit, Config, Found, HookChoice, Limits, Match, Net, Order, Per, Ports, Rule, Side, action,
        overflow_name, protocol,
    },
    shell,
};

/// The command line that attaches what `found` is, rules apart, which attaching again leaves as they are. Options at
/// their default are not in it.
#[must_use]
pub fn attach_line(found: &Found) -> String {
    let mut text = direction(found);
    for (name, value) in options(&found.config) {
        text.extend([" --", name]);
        if !value.is_empty() {
            text.extend([" ", &value]);
        }
    }
    line("attach", found, &text)
}

/// The options of `attach` that lead to `config`, rules apart, with their values; one without is a flag.
pub(crate) fn options(config: &Config) -> Vec<(&'static str, String)> {
    let mut options = limit_options(&config.limits);
    let others = [
        (config.per != Per::FLOW, "per", config.per.to_string()),
        (config.max_flows != Config::MAX_FLOWS, "max-flows", config.max_flows.to_string()),
        (config.overflow != Overflow::Shared, "overflow", overflow_name(config.overflow).to_owned()),
        (config.account != AccountChoice::default(), "account", word(&config.account)),
        (config.overhead != 0, "overhead", config.overhead.to_string()),
        (config.mpu != 0, "mpu", config.mpu.to_string()),
        (config.hook != HookChoice::default(), "hook", word(&config.hook)),
        (config.order != Order::default(), "order", word(&config.order)),
    ];
    options.extend(others.into_iter().filter(|(given, ..)| *given).map(|(_, name, value)| (name, value)));
    options
}

/// The options that stand for `limits`, likewise.
pub(crate) fn limit_options(limits: &Limits) -> Vec<(&'static str, String)> {
    let Limits { rate, peak, soft, pps, total, exceed, violate, block } = limits;
    let mut options = Vec::new();
    let mut bytes = |names: [&'static str; 2], limit: &Option<ByteLimit>, spelling: Option<String>| {
        let Some(limit) = limit else { return };
        let [rate_name, burst_name] = names;
        options.push(spelling.map_or_else(|| (rate_name, limit.rate.spelling().to_string()), |share| ("soft", share)));
        if limit.burst_given {
            options.push((burst_name, limit.burst.spelling().to_string()));
        }
    };
    bytes(["rate", "burst"], rate, None);
    bytes(["peak", "peak-burst"], peak, soft.map(|share| share.to_string()));
    bytes(["total", "total-burst"], total, None);
    if let Some(pps) = pps {
        options.push(("pps", pps.rate.spelling().to_string()));
        if pps.burst_given {
            options.push(("pps-burst", pps.burst.get().to_string()));
        }
    }
    for (name, action) in [("exceed", *exceed), ("violate", *violate)] {
        if action != Action::default() {
            options.push((name, action::word(action)));
        }
    }
    if *block {
        options.push(("block", String::new()));
    } else if rate.is_none() && pps.is_none() && total.is_none() {
        options.push(("unlimited", String::new()));
    }
    options
}

/// The command line that adds `rule` to `found`; its prefixes have to be few.
#[must_use]
pub fn rule_add_line(found: &Found, rule: &Rule) -> String {
    let mut options = match_options(&rule.matches);
    if rule.name != rule.matches.short() {
        options.push(("name", rule.name.clone()));
    }
    rule_line("add", found, &rule.matches.nets, options, rule)
}

/// The command line that gives a rule of `found` the limits of `rule`.
#[must_use]
pub fn rule_replace_line(found: &Found, rule: &Rule) -> String {
    rule_line("replace", found, &[], vec![("name", rule.name.clone())], rule)
}

/// The command line that deletes a rule of `found`.
#[must_use]
pub fn rule_del_line(found: &Found, name: &str) -> String {
    let options = format!("{} --name {}", direction(found), shell::quoted(name));
    line("rule del", found, &options)
}

fn rule_line(
    command: &str,
    found: &Found,
    nets: &[Net],
    mut options: Vec<(&'static str, String)>,
    rule: &Rule,
) -> String {
    options.extend(rule.per.map(|per| ("per", per.to_string())));
    options.extend(limit_options(&rule.limits));
    let mut text: String = nets.iter().map(|net| format!(" {net}")).collect();
    text.push_str(&direction(found));
    for (name, value) in options {
        text.extend([" --", name]);
        if !value.is_empty() {
            text.extend([" ", &*shell::quoted(&value)]);
        }
    }
    line(&format!("rule {command}"), found, &text)
}

/// The options that stand for `matches`, prefixes apart.
fn match_options(matches: &Match) -> Vec<(&'static str, String)> {
    let Match { nets: _, side, proto, ports } = matches;
    let mut options = Vec::new();
    options.extend(proto.map(|proto| ("proto", protocol::name(proto))));
    match ports {
        Ports::Any => {}
        Ports::Either(port) => options.push(("port", port.to_string())),
        Ports::Source(sport) => options.push(("sport", sport.to_string())),
        Ports::Destination(dport) => options.push(("dport", dport.to_string())),
        Ports::Both { sport, dport } => {
            options.extend([("sport", sport.to_string()), ("dport", dport.to_string())]);
        }
    }
    if *side != Side::default() {
        options.push(("side", word(side)));
    }
    options
}

/// The command line that detaches `found`.
#[must_use]
pub fn detach_line(found: &Found) -> String {
    line("detach", found, &direction(found))
}

/// The word of an option's value.
pub(crate) fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn direction(found: &Found) -> String {
    format!(" --direction {}", found.direction)
}

fn line(command: &str, found: &Found, options: &str) -> String {
    shell::line(found.netns.as_deref(), command, &found.dev, options)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        args::Command,
        model::Direction,
        plan::{
            attach,
            example::{self, command},
        },
    };

    #[test]
    fn defaults_are_not_spelled_out() {
        let found = example::found();
        assert_eq!(attach_line(&found), "shaper attach eth0 --direction ingress --rate 1gbit");
        assert_eq!(detach_line(&found), "shaper detach eth0 --direction ingress");
        let found = Found { netns: Some("it's".to_owned()), direction: Direction::Egress, ..found };
        assert_eq!(detach_line(&found), r"shaper -n 'it'\''s' detach eth0 --direction egress");
        let found = Found { dev: "--all".to_owned(), netns: Some("NS".to_owned()), ..found };
        assert_eq!(detach_line(&found), "shaper -n NS detach --direction egress -- --all");
        assert_eq!(attach_line(&found), "shaper -n NS attach --direction egress --rate 1gbit -- --all");
    }

    #[test]
    fn the_line_leads_to_the_configuration() {
        for options in [
            "--rate 1gbit",
            "--rate 1000001 --burst 65537",
            "--rate 12MB/s --burst 2gbit --per src/24 --max-flows 1 --overflow open --account wire",
            "--block --per dev",
            "--unlimited",
            "--unlimited --total 1gbit",
            "--pps 1500 --pps-burst 7 --exceed mark=0xff",
            "--rate 1gbit --soft 12.5% --peak-burst 1s --violate ecn --exceed pass",
            "--rate 1gbit --peak 1001mbit --total 3gbit --total-burst 1gb --pps 10kpps --exceed dscp=ef",
            "--rate 1gbit --overhead -4 --mpu 64 --hook clsact --order first --per pair --overflow closed --account l3",
        ] {
            let config = |line: &str| match command(line) {
                Command::Attach(args) => attach(&args, &example::device(), &[]).unwrap().remove(0).config,
                other => panic!("{other:?}"),
            };
            let wanted = config(&format!("attach eth0 {options}"));
            let line = attach_line(&Found { config: wanted.clone(), ..example::found() });
            assert_eq!(config(line.strip_prefix("shaper ").unwrap()), wanted, "{line}");
        }
    }
}
