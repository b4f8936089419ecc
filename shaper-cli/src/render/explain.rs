//! `explain` for people.

use std::{
    io::{self, Write},
    net::IpAddr,
};

use shaper_common::verdict::{Reason, Verdict};

use super::{
    flows::{Name, endpoint},
    human,
    table::{Flush, Table},
};
use crate::model::{Explanation, Found, Layer, Question, protocol};

/// The packet, and what each attachment would do with it.
///
/// # Errors
///
/// If `out` fails.
pub fn explain(question: &Question, answers: &[(&Found, Explanation)], out: &mut dyn Write) -> io::Result<()> {
    let Question { src, dst, proto, sport, dport, bytes } = question;
    let end = |address: &IpAddr, port: u16| endpoint(&address.to_string(), Some(port));
    let proto_name = protocol::name(*proto);
    writeln!(out, "{proto_name} {}", end(src, *sport))?;
    writeln!(out, "{:1$}> {2}", "", proto_name.len().saturating_sub(1), end(dst, *dport))?;
    let fragment = if *sport == 0 && protocol::has_ports(*proto) { ", a fragment" } else { "" };
    writeln!(out, "{bytes} bytes{fragment}")?;
    for (found, answer) in answers {
        writeln!(out)?;
        one(found, answer, out)?;
    }
    Ok(())
}

fn one(found: &Found, answer: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let Explanation { rule, per, key, tracked, layers, cost_bytes, .. } = answer;
    writeln!(out, "{} {}", found.dev, found.direction)?;
    writeln!(out, "    rule     {rule}")?;
    let name = Name::of(key, per, &found.dev);
    writeln!(out, "    key      {}", name.first)?;
    if let Some(second) = &name.second {
        writeln!(out, "             {second}")?;
    }
    writeln!(out, "             per {per}, {}", if *tracked { "has a bucket" } else { "has no bucket yet" })?;
    writeln!(out, "    cost     {cost_bytes} B")?;
    if !layers.is_empty() {
        let columns = [Flush::Left, Flush::Right, Flush::Right, Flush::Left];
        let mut table = Table::new(columns, ["    LIMIT", "HOLDS", "OF", ""]);
        for Layer { reason, level, burst } in layers {
            let packets = *reason == Reason::Pps;
            let unit = if packets { "packets".to_owned() } else { format!("bytes, {}", human::bytes(*level)) };
            table.row([format!("    {}", reason.name()), level.to_string(), burst.to_string(), unit]);
        }
        table.write(out)?;
    }
    writeln!(out, "    {}", verdict(answer))
}

/// What would happen, the reason, and that in words.
fn verdict(answer: &Explanation) -> String {
    let Explanation { verdict, reason, marked, .. } = answer;
    let verdict = match verdict {
        Verdict::Pass if *marked => "passes with a mark",
        Verdict::Pass => "passes",
        Verdict::Drop => "dropped",
    };
    let words = match reason {
        Reason::Conform => "it fits every limit",
        Reason::Rate => "its bucket holds too few bytes",
        Reason::Pps => "its bucket holds too few packets",
        Reason::Peak => "it exceeds the peak",
        Reason::Total => "the total of the rule is used up",
        Reason::DeviceTotal => "the total of the device is used up",
        Reason::Oversize => "it is larger than a burst, and never fits",
        Reason::Untracked => "there is no room for its key",
        Reason::Blocked => "everything here is blocked",
        Reason::Delay => "it would wait too long",
        Reason::Exempt => "such packets are never limited",
    };
    format!("{verdict}: {}, {words}", reason.name())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
pub(super) mod tests {
    use shaper_common::key::Key;

    use super::*;
    use crate::{plan::example, render::flows::tests::flow};

    /// A packet that its bucket has no room for.
    pub(in crate::render) fn example() -> (Question, Explanation) {
        let question = Question {
            src: "10.20.0.7".parse().unwrap(),
            dst: "192.0.2.9".parse().unwrap(),
            proto: 17,
            sport: 53,
            dport: 4000,
            bytes: 1514,
        };
        let layer = |reason, level, burst| Layer { reason, level, burst };
        let answer = Explanation {
            rule: "guests".to_owned(),
            per: "src".parse().unwrap(),
            key: flow("src", 0, ("10.20.0.7", 0), ("", 0)).key,
            tracked: true,
            layers: vec![
                layer(Reason::Rate, 1200, 625_000),
                layer(Reason::Pps, 50, 64),
                layer(Reason::Total, 31_250_000, 31_250_000),
            ],
            cost_bytes: 1514,
            verdict: Verdict::Drop,
            reason: Reason::Rate,
            marked: false,
        };
        (question, answer)
    }

    fn text(question: &Question, answers: &[Explanation]) -> String {
        let found = example::found();
        let answers: Vec<(&Found, Explanation)> = answers.iter().map(|answer| (&found, answer.clone())).collect();
        let mut out = Vec::new();
        explain(question, &answers, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().for_each(|line| assert!(line.len() <= 80, "{line}"));
        text
    }

    #[test]
    fn a_packet_meets_its_rule_its_key_and_its_limits() {
        let (question, answer) = example();
        assert_eq!(
            text(&question, &[answer]),
            "\
udp 10.20.0.7:53
  > 192.0.2.9:4000
1514 bytes

eth0 ingress
    rule     guests
    key      10.20.0.7
             per src, has a bucket
    cost     1514 B
    LIMIT     HOLDS        OF
    rate       1200    625000  bytes, 1.1 KiB
    pps          50        64  packets
    total  31250000  31250000  bytes, 29 MiB
    dropped: rate, its bucket holds too few bytes
"
        );
    }

    #[test]
    fn the_widest_answer_is_80_columns() {
        let (src, dst) = ("2001:db8:1111:2222:3333:4444:5555:6666", "2001:db8:1111:2222:3333:4444:5555:7777");
        let (_, answer) = example();
        let key: Key = flow("flow", 136, (src, 65_535), (dst, 65_535)).key;
        let question = Question {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            proto: 136,
            sport: 65_535,
            dport: 65_535,
            bytes: u32::MAX,
        };
        let mut answer = Explanation {
            rule: "x".repeat(64),
            per: "flow".parse().unwrap(),
            key,
            tracked: false,
            cost_bytes: u64::MAX,
            ..answer
        };
        answer.layers[0] = Layer { reason: Reason::DeviceTotal, level: u64::MAX, burst: u64::MAX };
        for reason in Reason::ALL {
            text(&question, &[Explanation { reason: *reason, ..answer.clone() }]);
        }
    }

    #[test]
    fn what_passes_and_what_is_unlimited_is_said() {
        let (question, answer) = example();
        let passes = Explanation { verdict: Verdict::Pass, reason: Reason::Conform, layers: Vec::new(), ..answer };
        let marked = Explanation { marked: true, reason: Reason::Rate, ..passes.clone() };
        let fragment = Question { sport: 0, dport: 0, ..question };
        let text = text(&fragment, &[passes, marked]);
        for part in [
            "udp 10.20.0.7\n  > 192.0.2.9\n1514 bytes, a fragment\n",
            "    cost     1514 B\n    passes: conform, it fits every limit\n",
            "    passes with a mark: rate, its bucket holds too few bytes\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
