//! JSON for programs: one line, `"schema": 1`. Fields are added and never change; limits that do not exist are null.

use std::io::{self, Write};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use shaper_common::{abi::Count, verdict::Reason};

use super::{identity::Identity, stats::passed};
use crate::model::{AccountChoice, ByteLimit, Direction, Flow, Found, Hook, RuleStats, State, action};

/// Version of the fields below.
const SCHEMA: u32 = 1;

/// The action of an attachment that blocks everything.
const BLOCK: &str = "block";

/// Rules of an attachment, `default` included.
const RULES: u32 = 1;

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

#[derive(Serialize)]
struct Attachment<'a> {
    netns: Option<&'a str>,
    dev: &'a str,
    ifindex: u32,
    direction: Direction,
    hook: Hook,
    state: State,
    per: String,
    rate_bits_per_second: Option<u64>,
    burst_bytes: Option<u64>,
    rate_packets_per_second: Option<u64>,
    burst_packets: Option<u64>,
    peak_bits_per_second: Option<u64>,
    peak_burst_bytes: Option<u64>,
    total_bits_per_second: Option<u64>,
    total_burst_bytes: Option<u64>,
    action: String,
    account: AccountChoice,
    max_flows: u32,
    flows: u64,
    untracked_packets: u64,
    rules: u32,
}

impl<'a> Attachment<'a> {
    fn of(found: &'a Found) -> Self {
        let config = &found.config;
        let limits = &config.limits;
        let bits = |limit: ByteLimit| limit.rate.bits_per_second();
        let burst = |limit: ByteLimit| limit.burst.get();
        Self {
            netns: found.netns.as_deref(),
            dev: &found.dev,
            ifindex: found.ifindex,
            direction: found.direction,
            hook: found.hook,
            state: found.state,
            per: config.per.to_string(),
            rate_bits_per_second: limits.rate.map(bits),
            burst_bytes: limits.rate.map(burst),
            rate_packets_per_second: limits.pps.map(|limit| limit.rate.packets_per_second()),
            burst_packets: limits.pps.map(|limit| limit.burst.get()),
            peak_bits_per_second: limits.peak.map(bits),
            peak_burst_bytes: limits.peak.map(burst),
            total_bits_per_second: limits.total.map(bits),
            total_burst_bytes: limits.total.map(burst),
            action: if limits.block { BLOCK.to_owned() } else { action::word(limits.exceed) },
            account: config.account,
            max_flows: config.max_flows,
            flows: found.flows,
            untracked_packets: found.untracked_packets,
            rules: RULES,
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
        let Identity { src, dst, proto, sport, dport } = Identity::of(flow);
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
    use crate::{model::Limits, plan::example, render::flows::tests::flow};

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
                r#""untracked_packets":0,"rules":1}]}"#,
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
        let blocked = text(|out| status(&[found], out));
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
}
