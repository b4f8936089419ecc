//! JSON for programs: one line, `"schema": 1`. Fields are added and never change; limits that do not exist are null.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use shaper_common::{
    abi::Count,
    key::Key,
    verdict::{Reason, Verdict},
};

use super::{identity::Identity, stats::passed};
use crate::model::{
    AccountChoice, ByteLimit, Direction, Explanation, Flow, Found, Hook, Layer, Limits, Net, Per, Ports, Question,
    Rule, RuleStats, Side, State, action, protocol, rule,
};

/// Version of the fields below.
const SCHEMA: u32 = 1;

/// The action of an attachment that blocks everything.
const BLOCK: &str = "block";

/// `{"schema":1,"attachments":[..]}`.
///
/// # Errors
///
/// If `out` fails.
pub fn status(attachments: &[Found], out: &mut dyn Write) -> io::Result<()> {
    document("attachments", attachments, Attachment::of, out)
}

/// `{"schema":1,"stats":[..]}`.
///
/// # Errors
///
/// If `out` fails.
pub fn stats(rules: &[RuleStats], out: &mut dyn Write) -> io::Result<()> {
    document("stats", rules, Stats::of, out)
}

/// `{"schema":1,"flows":[..]}`.
///
/// # Errors
///
/// If `out` fails.
pub fn flows(flows: &[Flow], out: &mut dyn Write) -> io::Result<()> {
    document("flows", flows, Row::of, out)
}

/// `{"schema":1,"rules":[..]}`, the default of each attachment before its rules.
///
/// # Errors
///
/// If `out` fails.
pub fn rules<'a>(attachments: &'a [Found], out: &mut dyn Write) -> io::Result<()> {
    let of_one = |found: &'a Found| {
        std::iter::once((found, None)).chain(found.config.rules.iter().map(move |rule| (found, Some(rule))))
    };
    let rules: Vec<(&Found, Option<&Rule>)> = attachments.iter().flat_map(of_one).collect();
    document("rules", &rules, |(found, rule)| Listed::of(found, *rule), out)
}

/// `{"schema":1,"explanations":[..]}`.
///
/// # Errors
///
/// If `out` fails.
pub fn explain(question: &Question, answers: &[(&Found, Explanation)], out: &mut dyn Write) -> io::Result<()> {
    document("explanations", answers, |(found, answer)| Explained::of(question, found, answer), out)
}

/// Limits, of an attachment or of a rule.
#[derive(Serialize)]
struct Numbers {
    rate_bits_per_second: Option<u64>,
    burst_bytes: Option<u64>,
    rate_packets_per_second: Option<u64>,
    burst_packets: Option<u64>,
    peak_bits_per_second: Option<u64>,
    peak_burst_bytes: Option<u64>,
    total_bits_per_second: Option<u64>,
    total_burst_bytes: Option<u64>,
}

impl Numbers {
    fn of(limits: &Limits) -> Self {
        let bits = |limit: ByteLimit| limit.rate.bits_per_second();
        let burst = |limit: ByteLimit| limit.burst.get();
        Self {
            rate_bits_per_second: limits.rate.map(bits),
            burst_bytes: limits.rate.map(burst),
            rate_packets_per_second: limits.pps.map(|limit| limit.rate.packets_per_second()),
            burst_packets: limits.pps.map(|limit| limit.burst.get()),
            peak_bits_per_second: limits.peak.map(bits),
            peak_burst_bytes: limits.peak.map(burst),
            total_bits_per_second: limits.total.map(bits),
            total_burst_bytes: limits.total.map(burst),
        }
    }
}

#[derive(Serialize)]
struct Attachment<'a> {
    netns: Option<&'a str>,
    dev: &'a str,
    ifindex: u32,
    direction: Direction,
    hook: Hook,
    state: State,
    per: String,
    #[serde(flatten)]
    limits: Numbers,
    action: String,
    account: AccountChoice,
    max_flows: u32,
    flows: u64,
    untracked_packets: u64,
    /// Besides the default.
    rules: usize,
}

impl<'a> Attachment<'a> {
    fn of(found: &'a Found) -> Self {
        let config = &found.config;
        let limits = &config.limits;
        Self {
            netns: found.netns.as_deref(),
            dev: &found.dev,
            ifindex: found.ifindex,
            direction: found.direction,
            hook: found.hook,
            state: found.state,
            per: config.per.to_string(),
            limits: Numbers::of(limits),
            action: action_word(limits),
            account: config.account,
            max_flows: config.max_flows,
            flows: found.flows,
            untracked_packets: found.untracked_packets,
            rules: config.rules.len(),
        }
    }
}

#[derive(Serialize)]
struct Stats<'a> {
    dev: &'a str,
    direction: Direction,
    rule: &'a str,
    passed_packets: u64,
    passed_bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    marked_packets: u64,
    marked_bytes: u64,
    exempt_packets: u64,
    exempt_bytes: u64,
    reasons: Reasons<'a>,
}

impl<'a> Stats<'a> {
    fn of(rule: &'a RuleStats) -> Self {
        let counters = &rule.counters;
        let passed = passed(counters);
        let exempt = counters.reasons[Reason::Exempt as usize];
        Self {
            dev: &rule.dev,
            direction: rule.direction,
            rule: &rule.rule,
            passed_packets: passed.packets,
            passed_bytes: passed.bytes,
            dropped_packets: counters.dropped.packets,
            dropped_bytes: counters.dropped.bytes,
            marked_packets: counters.marked.packets,
            marked_bytes: counters.marked.bytes,
            exempt_packets: exempt.packets,
            exempt_bytes: exempt.bytes,
            reasons: Reasons(&counters.reasons),
        }
    }
}

/// An object with every reason, zeros too.
struct Reasons<'a>(&'a [Count; Reason::COUNT]);

impl Serialize for Reasons<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Value {
            packets: u64,
            bytes: u64,
        }
        to.collect_map(
            Reason::ALL
                .iter()
                .zip(self.0)
                .map(|(reason, count)| (reason.name(), Value { packets: count.packets, bytes: count.bytes })),
        )
    }
}

#[derive(Serialize)]
struct Row<'a> {
    dev: &'a str,
    direction: Direction,
    rule: &'a str,
    src: Option<String>,
    dst: Option<String>,
    proto: Option<String>,
    sport: Option<u16>,
    dport: Option<u16>,
    passed_packets: u64,
    passed_bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    marked_packets: u64,
    level_bytes: Option<u64>,
}

impl<'a> Row<'a> {
    fn of(flow: &'a Flow) -> Self {
        let Identity { src, dst, proto, sport, dport } = Identity::of(&flow.key, &flow.per);
        Self {
            dev: &flow.dev,
            direction: flow.direction,
            rule: &flow.rule,
            src,
            dst,
            proto,
            sport,
            dport,
            passed_packets: flow.passed.packets,
            passed_bytes: flow.passed.bytes,
            dropped_packets: flow.dropped.packets,
            dropped_bytes: flow.dropped.bytes,
            marked_packets: flow.marked_packets,
            level_bytes: flow.level_bytes,
        }
    }
}

fn action_word(limits: &Limits) -> String {
    if limits.block { BLOCK.to_owned() } else { action::word(limits.exceed) }
}

/// A rule; the default has no side, for it has no match.
#[derive(Serialize)]
struct Listed<'a> {
    dev: &'a str,
    direction: Direction,
    name: &'a str,
    r#match: &'a [Net],
    side: Option<Side>,
    proto: Option<String>,
    port: Option<String>,
    sport: Option<String>,
    dport: Option<String>,
    per: String,
    #[serde(flatten)]
    limits: Numbers,
    action: String,
    violate: String,
    block: bool,
}

impl<'a> Listed<'a> {
    fn of(found: &'a Found, rule: Option<&'a Rule>) -> Self {
        let config = &found.config;
        let limits = rule.map_or(&config.limits, |rule| &rule.limits);
        let (port, sport, dport) = match rule.map_or(Ports::Any, |rule| rule.matches.ports) {
            Ports::Any => (None, None, None),
            Ports::Either(port) => (Some(port), None, None),
            Ports::Source(sport) => (None, Some(sport), None),
            Ports::Destination(dport) => (None, None, Some(dport)),
            Ports::Both { sport, dport } => (None, Some(sport), Some(dport)),
        };
        Self {
            dev: &found.dev,
            direction: found.direction,
            name: rule.map_or(rule::DEFAULT, |rule| &rule.name),
            r#match: rule.map_or(&[], |rule| &rule.matches.nets),
            side: rule.map(|rule| rule.matches.side),
            proto: rule.and_then(|rule| rule.matches.proto).map(protocol::name),
            port: port.map(|port| port.to_string()),
            sport: sport.map(|sport| sport.to_string()),
            dport: dport.map(|dport| dport.to_string()),
            per: rule.and_then(|rule| rule.per).unwrap_or(config.per).to_string(),
            limits: Numbers::of(limits),
            action: action_word(limits),
            violate: action::word(limits.violate),
            block: limits.block,
        }
    }
}

/// A packet, and what would happen to it.
#[derive(Serialize)]
struct Explained<'a> {
    dev: &'a str,
    direction: Direction,
    packet: Packet,
    rule: &'a str,
    per: String,
    key: KeyParts,
    tracked: bool,
    layers: Vec<LayerLevel>,
    cost_bytes: u64,
    verdict: &'static str,
    reason: &'static str,
    marked: bool,
}

#[derive(Serialize)]
struct Packet {
    proto: String,
    src: IpAddr,
    sport: u16,
    dst: IpAddr,
    dport: u16,
    bytes: u32,
}

#[derive(Serialize)]
struct KeyParts {
    src: Option<String>,
    dst: Option<String>,
    proto: Option<String>,
    sport: Option<u16>,
    dport: Option<u16>,
}

impl KeyParts {
    fn of(key: &Key, per: &Per) -> Self {
        let Identity { src, dst, proto, sport, dport } = Identity::of(key, per);
        Self { src, dst, proto, sport, dport }
    }
}

/// A limit; level and burst are packets for `pps` and bytes for the others.
#[derive(Serialize)]
struct LayerLevel {
    reason: &'static str,
    level: u64,
    burst: u64,
}

impl<'a> Explained<'a> {
    fn of(question: &Question, found: &'a Found, answer: &'a Explanation) -> Self {
        let Question { src, dst, proto, sport, dport, bytes } = *question;
        let layer = |layer: &Layer| LayerLevel { reason: layer.reason.name(), level: layer.level, burst: layer.burst };
        Self {
            dev: &found.dev,
            direction: found.direction,
            packet: Packet { proto: protocol::name(proto), src, sport, dst, dport, bytes },
            rule: &answer.rule,
            per: answer.per.to_string(),
            key: KeyParts::of(&answer.key, &answer.per),
            tracked: answer.tracked,
            layers: answer.layers.iter().map(layer).collect(),
            cost_bytes: answer.cost_bytes,
            verdict: match answer.verdict {
                Verdict::Pass => "pass",
                Verdict::Drop => "drop",
            },
            reason: answer.reason.name(),
            marked: answer.marked,
        }
    }
}

/// An array that is made while it is written: there may be millions of flows.
struct Rows<'a, T, F> {
    items: &'a [T],
    row: F,
}

impl<'a, T, R: Serialize, F: Fn(&'a T) -> R> Serialize for Rows<'a, T, F> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.items.iter().map(&self.row))
    }
}

fn document<'a, T, R: Serialize>(
    name: &str,
    items: &'a [T],
    row: impl Fn(&'a T) -> R,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::new(&mut *out);
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("schema", &SCHEMA)?;
    map.serialize_entry(name, &Rows { items, row })?;
    map.end()?;
    writeln!(out)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use shaper_common::abi::RuleCounts;

    use super::*;
    use crate::{model::Match, plan::example, render::flows::tests::flow};

    fn text(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn attachments_have_all_their_fields() {
        assert_eq!(
            text(|out| status(&[example::found()], out)),
            concat!(
                r#"{"schema":1,"attachments":[{"netns":null,"dev":"eth0","ifindex":2,"direction":"ingress","#,
                r#""hook":"tcx","state":"active","per":"flow","rate_bits_per_second":1000000000,"#,
                r#""burst_bytes":31250000,"rate_packets_per_second":null,"burst_packets":null,"#,
                r#""peak_bits_per_second":null,"peak_burst_bytes":null,"total_bits_per_second":null,"#,
                r#""total_burst_bytes":null,"action":"drop","account":"l2","max_flows":65536,"flows":12,"#,
                r#""untracked_packets":0,"rules":0}]}"#,
                "\n"
            )
        );
        let mut found = example::found();
        found.config.limits = example::limits();
        let all = text(|out| status(&[found.clone()], out));
        let fields = concat!(
            r#""rate_bits_per_second":100000000,"burst_bytes":3125000,"rate_packets_per_second":10000,"#,
            r#""burst_packets":2500,"peak_bits_per_second":200000000,"peak_burst_bytes":6250000,"#,
            r#""total_bits_per_second":1000000000,"total_burst_bytes":31250000,"action":"dscp=CS1","#,
        );
        assert!(all.contains(fields), "{all}");
        found.config.limits = Limits::BLOCK;
        found.config.rules = vec![example::rule("a"), example::rule("b")];
        let blocked = text(|out| status(&[found], out));
        assert!(blocked.contains(r#""rules":2}"#), "{blocked}");
        assert!(blocked.contains(r#""rate_bits_per_second":null,"burst_bytes":null,"#), "{blocked}");
        assert!(blocked.contains(r#""action":"block","#), "{blocked}");
        assert_eq!(text(|out| status(&[], out)), "{\"schema\":1,\"attachments\":[]}\n");
    }

    #[test]
    fn counters_have_every_reason() {
        let mut counters = RuleCounts::default();
        counters.reasons[Reason::Conform as usize] = Count { packets: 3, bytes: 300 };
        counters.reasons[Reason::Rate as usize] = Count { packets: 2, bytes: 200 };
        counters.reasons[Reason::Exempt as usize] = Count { packets: 1, bytes: 42 };
        counters.dropped = Count { packets: 2, bytes: 200 };
        let rule =
            RuleStats { dev: "eth0".to_owned(), direction: Direction::Egress, rule: "default".to_owned(), counters };
        assert_eq!(
            text(|out| stats(&[rule], out)),
            concat!(
                r#"{"schema":1,"stats":[{"dev":"eth0","direction":"egress","rule":"default","#,
                r#""passed_packets":3,"passed_bytes":300,"dropped_packets":2,"dropped_bytes":200,"#,
                r#""marked_packets":0,"marked_bytes":0,"exempt_packets":1,"exempt_bytes":42,"reasons":{"#,
                r#""conform":{"packets":3,"bytes":300},"rate":{"packets":2,"bytes":200},"#,
                r#""pps":{"packets":0,"bytes":0},"peak":{"packets":0,"bytes":0},"total":{"packets":0,"bytes":0},"#,
                r#""device_total":{"packets":0,"bytes":0},"oversize":{"packets":0,"bytes":0},"#,
                r#""untracked":{"packets":0,"bytes":0},"blocked":{"packets":0,"bytes":0},"#,
                r#""delay":{"packets":0,"bytes":0},"exempt":{"packets":1,"bytes":42}}}]}"#,
                "\n"
            )
        );
    }

    #[test]
    fn without_a_rate_the_level_is_null() {
        let flow = Flow { level_bytes: None, ..flow("dev", 0, ("", 0), ("", 0)) };
        assert!(text(|out| flows(&[flow], out)).ends_with("\"level_bytes\":null}]}\n"));
    }

    #[test]
    fn flows_have_the_parts_of_their_key() {
        for (flow, parts) in [
            (
                flow("flow", 6, ("10.0.0.1", 40_000), ("10.0.0.2", 443)),
                r#""src":"10.0.0.1","dst":"10.0.0.2","proto":"tcp","sport":40000,"dport":443"#,
            ),
            (
                flow("flow", 250, ("2001:db8::1", 0), ("2001:db8::2", 0)),
                r#""src":"2001:db8::1","dst":"2001:db8::2","proto":"250","sport":0,"dport":0"#,
            ),
            (
                flow("src", 0, ("::ffff:10.0.0.1", 0), ("", 0)),
                r#""src":"::ffff:10.0.0.1","dst":null,"proto":null,"sport":null,"dport":null"#,
            ),
            (
                flow("src/24", 0, ("10.0.0.0", 0), ("", 0)),
                r#""src":"10.0.0.0/24","dst":null,"proto":null,"sport":null,"dport":null"#,
            ),
            (
                flow("dst/24,48", 0, ("", 0), ("2001:db8::", 0)),
                r#""src":null,"dst":"2001:db8::/48","proto":null,"sport":null,"dport":null"#,
            ),
            (
                flow("pair", 0, ("10.0.0.1", 0), ("10.0.0.2", 0)),
                r#""src":"10.0.0.1","dst":"10.0.0.2","proto":null,"sport":null,"dport":null"#,
            ),
            (flow("dev", 0, ("", 0), ("", 0)), r#""src":null,"dst":null,"proto":null,"sport":null,"dport":null"#),
        ] {
            let expected = [
                r#"{"schema":1,"flows":[{"dev":"eth0","direction":"ingress","rule":"default","#,
                parts,
                r#","passed_packets":1000,"passed_bytes":1500000,"dropped_packets":2,"dropped_bytes":3000,"#,
                r#""marked_packets":0,"level_bytes":31250000}]}"#,
                "\n",
            ];
            assert_eq!(text(|out| flows(&[flow], out)), expected.concat());
        }
    }

    #[test]
    fn rules_have_all_their_fields() {
        let mut found = example::found();
        let port = |text: &str| text.parse().unwrap();
        let all = Rule {
            matches: Match {
                nets: vec!["10.0.0.7".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
                side: Side::Local,
                proto: Some(17),
                ports: Ports::Both { sport: port("53"), dport: port("1000-2000") },
            },
            per: None,
            limits: example::limits(),
            ..example::rule("all")
        };
        let any = Rule {
            matches: Match { ports: Ports::Either(port("53")), ..Match::default() },
            limits: Limits::BLOCK,
            ..example::rule("any")
        };
        found.config.rules = vec![all, any];
        let no_limit = concat!(
            r#""rate_packets_per_second":null,"burst_packets":null,"peak_bits_per_second":null,"#,
            r#""peak_burst_bytes":null,"total_bits_per_second":null,"total_burst_bytes":null,"#,
        );
        assert_eq!(
            text(|out| rules(&[found], out)),
            [
                r#"{"schema":1,"rules":[{"dev":"eth0","direction":"ingress","name":"default","match":[],"side":null,"#,
                r#""proto":null,"port":null,"sport":null,"dport":null,"per":"flow","#,
                r#""rate_bits_per_second":1000000000,"burst_bytes":31250000,"#,
                no_limit,
                r#""action":"drop","violate":"drop","block":false},"#,
                r#"{"dev":"eth0","direction":"ingress","name":"all","match":["10.0.0.7/32","2001:db8::/32"],"#,
                r#""side":"local","proto":"udp","port":null,"sport":"53","dport":"1000-2000","per":"flow","#,
                r#""rate_bits_per_second":100000000,"burst_bytes":3125000,"rate_packets_per_second":10000,"#,
                r#""burst_packets":2500,"peak_bits_per_second":200000000,"peak_burst_bytes":6250000,"#,
                r#""total_bits_per_second":1000000000,"total_burst_bytes":31250000,"#,
                r#""action":"dscp=CS1","violate":"drop","block":false},"#,
                r#"{"dev":"eth0","direction":"ingress","name":"any","match":[],"side":"remote","proto":null,"#,
                r#""port":"53","sport":null,"dport":null,"per":"src","#,
                r#""rate_bits_per_second":null,"burst_bytes":null,"#,
                no_limit,
                r#""action":"block","violate":"drop","block":true}]}"#,
                "\n",
            ]
            .concat()
        );
    }

    #[test]
    fn explanations_have_all_their_fields() {
        let (question, answer) = crate::render::explain::tests::example();
        assert_eq!(
            text(|out| explain(&question, &[(&example::found(), answer)], out)),
            concat!(
                r#"{"schema":1,"explanations":[{"dev":"eth0","direction":"ingress","packet":{"proto":"udp","#,
                r#""src":"10.20.0.7","sport":53,"dst":"192.0.2.9","dport":4000,"bytes":1514},"rule":"guests","#,
                r#""per":"src","key":{"src":"10.20.0.7","dst":null,"proto":null,"sport":null,"dport":null},"#,
                r#""tracked":true,"layers":[{"reason":"rate","level":1200,"burst":625000},"#,
                r#"{"reason":"pps","level":50,"burst":64},{"reason":"total","level":31250000,"burst":31250000}],"#,
                r#""cost_bytes":1514,"verdict":"drop","reason":"rate","marked":false}]}"#,
                "\n"
            )
        );
    }
}
