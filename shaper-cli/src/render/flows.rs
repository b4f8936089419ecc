//! `flows` for people.

use std::io::{self, Write};

use shaper_common::key;

use super::{human, identity::Identity, summary};
use crate::{
    args::Sort,
    model::{Flow, Found, Per},
};

/// Columns of a whole line.
const WIDTH: usize = 80;

/// Columns of each number, the gap before it included.
const NUMBER_WIDTH: usize = 8;

/// Columns of an identity. The longest half of one, an IPv6 endpoint behind `udplite `, just fits.
const IDENTITY_WIDTH: usize = WIDTH - 3 * NUMBER_WIDTH;

/// Between an identity and a rule.
const GAP: &str = "  ";

/// Stands between source and destination, and before a destination on a line of its own.
const TO: &str = "> ";

/// The first `flows` of the `tracked` ones of an attachment. A flow takes one line, or two where two addresses are too
/// long for one; no address is ever cut.
///
/// # Errors
///
/// If `out` fails.
pub fn flows(
    found: &Found,
    flows: &[Flow],
    tracked: usize,
    sort: Sort,
    verbose: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", summary::attachment(&format!("{} {}:", found.dev, found.direction), found))?;
    if flows.is_empty() {
        return writeln!(out, "no flows");
    }
    let order = match sort {
        Sort::Dropped => "most dropped first",
        Sort::Passed => "most passed first",
        Sort::Level if flows.iter().all(|flow| flow.level_bytes.is_none()) => {
            "without a rate there are no levels: most passed first"
        }
        Sort::Level => "emptiest bucket first",
    };
    writeln!(out, "{} of {tracked} flows, {order}", flows.len())?;
    // Rules may have keys of their own.
    let per = flows.iter().all(|flow| flow.per.kind == found.config.per.kind).then_some(found.config.per.kind);
    let header = match per {
        None => "KEY",
        Some(key::Per::Flow) => "FLOW",
        Some(key::Per::Src) => "SOURCE",
        Some(key::Per::Dst) => "DESTINATION",
        Some(key::Per::Pair) => "SOURCE > DESTINATION",
        Some(key::Per::Dev) => "DEVICE",
    };
    let names: Vec<Name> = flows.iter().map(|flow| Name::of(&flow.key, &flow.per, &flow.dev)).collect();
    let width = names.iter().map(Name::width).max().unwrap_or_default().max(header.len());
    let rules = Rules::of(found, flows, width);
    let numbers = ["PASSED", "DROPPED", "LEVEL"].map(str::to_owned);
    row(header, width, rules.cell("RULE"), &numbers, out)?;
    for (flow, name) in flows.iter().zip(&names) {
        let level = flow.level_bytes.map_or_else(|| "-".to_owned(), human::bytes);
        let numbers = [human::bytes(flow.passed.bytes), human::bytes(flow.dropped.bytes), level];
        row(&name.first, width, rules.cell(&flow.rule), &numbers, out)?;
        if let Some(second) = &name.second {
            writeln!(out, "{second}")?;
        }
        if let Rules::Line = rules {
            writeln!(out, "    rule {}", flow.rule)?;
        }
        if verbose {
            let Flow { passed, dropped, marked_packets, .. } = flow;
            writeln!(
                out,
                "    packets: {} passed ({marked_packets} marked), {} dropped",
                passed.packets, dropped.packets
            )?;
        }
    }
    Ok(())
}

fn row(name: &str, width: usize, rule: String, numbers: &[String; 3], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{name:<width$}{rule}")?;
    for number in numbers {
        write!(out, " {number:>0$}", NUMBER_WIDTH - 1)?;
    }
    writeln!(out)
}

/// Where the rules of flows are shown.
enum Rules {
    /// There are none but the default.
    Nowhere,
    /// In a column of this width.
    Column(usize),
    /// Below each flow: one has too long a name for a column.
    Line,
}

impl Rules {
    /// Where they fit if identities are so wide.
    fn of(found: &Found, flows: &[Flow], width: usize) -> Self {
        if found.config.rules.is_empty() {
            return Self::Nowhere;
        }
        let longest = flows.iter().map(|flow| flow.rule.chars().count()).max().unwrap_or_default().max("RULE".len());
        if width + GAP.len() + longest <= IDENTITY_WIDTH { Self::Column(longest) } else { Self::Line }
    }

    fn cell(&self, rule: &str) -> String {
        match self {
            Self::Column(width) => format!("{GAP}{rule:<width$}"),
            Self::Nowhere | Self::Line => String::new(),
        }
    }
}

/// A flow's identity on one line or two.
pub(super) struct Name {
    pub(super) first: String,
    pub(super) second: Option<String>,
}

impl Name {
    pub(super) fn of(key: &key::Key, per: &Per, dev: &str) -> Self {
        let Identity { src, dst, proto, sport, dport } = Identity::of(key, per);
        let proto = proto.map_or_else(String::new, |proto| format!("{proto} "));
        let one = |first| Self { first, second: None };
        match (src.map(|src| endpoint(&src, sport)), dst.map(|dst| endpoint(&dst, dport))) {
            (Some(src), Some(dst)) => {
                let line = format!("{proto}{src} {TO}{dst}");
                if line.len() <= IDENTITY_WIDTH {
                    one(line)
                } else {
                    let indent = proto.len().saturating_sub(TO.len());
                    Self { first: format!("{proto}{src}"), second: Some(format!("{:indent$}{TO}{dst}", "")) }
                }
            }
            (Some(side), None) | (None, Some(side)) => one(side),
            (None, None) if per.kind == key::Per::Dev => one(dev.to_owned()),
            (None, None) => one("(no readable IP header)".to_owned()),
        }
    }

    fn width(&self) -> usize {
        self.first.len()
    }
}

/// An address with its port, if it has one.
pub(super) fn endpoint(address: &str, port: Option<u16>) -> String {
    match port {
        None | Some(0) => address.to_owned(),
        Some(port) if address.contains(':') => format!("[{address}]:{port}"),
        Some(port) => format!("{address}:{port}"),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
pub(super) mod tests {
    use std::net::IpAddr;

    use shaper_common::{
        abi::Count,
        key::{Address, Family, Key},
    };

    use super::*;
    use crate::{model::Direction, plan::example};

    fn address(text: &str) -> (Address, Family) {
        let mut octets = [0; 16];
        let family = match text.parse().unwrap() {
            IpAddr::V4(address) => {
                octets[..4].copy_from_slice(&address.octets());
                Family::V4
            }
            IpAddr::V6(address) => {
                octets = address.octets();
                Family::V6
            }
        };
        let word = |at: usize| u64::from_ne_bytes(*octets[at..].first_chunk().unwrap());
        ([word(0), word(8)], family)
    }

    /// A flow whose key is what `per` makes of it; "" is an address that is not in the key.
    pub(in crate::render) fn flow(per: &str, proto: u8, src: (&str, u16), dst: (&str, u16)) -> Flow {
        let part = |text: &str| if text.is_empty() { Default::default() } else { address(text) };
        let ((src, sport), (dst, dport)) = ((part(src.0), src.1), (part(dst.0), dst.1));
        let family = if src.1 == Family::None { dst.1 } else { src.1 };
        Flow {
            dev: "eth0".to_owned(),
            direction: Direction::Ingress,
            rule: "default".to_owned(),
            per: per.parse().unwrap(),
            key: Key { src: src.0, dst: dst.0, sport, dport, proto, family },
            passed: Count { packets: 1_000, bytes: 1_500_000 },
            dropped: Count { packets: 2, bytes: 3_000 },
            marked_packets: 0,
            level_bytes: Some(31_250_000),
        }
    }

    fn text(flows: &[Flow], verbose: bool) -> String {
        let mut found = example::found();
        found.config.per = flows.first().map_or(Per::FLOW, |flow| flow.per);
        let mut out = Vec::new();
        super::flows(&found, flows, 30, Sort::Dropped, verbose, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().for_each(|line| assert!(line.len() <= WIDTH, "{line}"));
        text
    }

    #[test]
    fn short_addresses_take_one_line() {
        let flows = [
            flow("flow", 6, ("10.0.0.1", 40_000), ("10.0.0.2", 443)),
            flow("flow", 1, ("10.0.0.1", 0), ("10.0.0.2", 0)),
            flow("flow", 17, ("2001:db8::1", 53), ("2001:db8::2", 4096)),
            flow("flow", 0, ("", 0), ("", 0)),
        ];
        assert_eq!(
            text(&flows, false),
            "\
eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)
4 of 30 flows, most dropped first
FLOW                                       PASSED DROPPED   LEVEL
tcp 10.0.0.1:40000 > 10.0.0.2:443         1.4 MiB 2.9 KiB  29 MiB
icmp 10.0.0.1 > 10.0.0.2                  1.4 MiB 2.9 KiB  29 MiB
udp [2001:db8::1]:53 > [2001:db8::2]:4096 1.4 MiB 2.9 KiB  29 MiB
(no readable IP header)                   1.4 MiB 2.9 KiB  29 MiB
"
        );
    }

    #[test]
    fn long_addresses_take_two_lines_and_are_whole() {
        let (src, dst) = ("2001:db8:1111:2222:3333:4444:5555:6666", "2001:db8:1111:2222:3333:4444:5555:7777");
        assert_eq!(
            text(&[flow("flow", 136, (src, 65_535), (dst, 65_535))], true),
            "\
eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)
1 of 30 flows, most dropped first
FLOW                                                    PASSED DROPPED   LEVEL
udplite [2001:db8:1111:2222:3333:4444:5555:6666]:65535 1.4 MiB 2.9 KiB  29 MiB
      > [2001:db8:1111:2222:3333:4444:5555:7777]:65535
    packets: 1000 passed (0 marked), 2 dropped
"
        );
        assert_eq!(
            text(&[flow("pair", 0, (src, 0), (dst, 0))], false),
            "\
eth0 ingress: 1 Gbit/s per pair, burst 31250000 B = 250 ms (tcx)
1 of 30 flows, most dropped first
SOURCE > DESTINATION                    PASSED DROPPED   LEVEL
2001:db8:1111:2222:3333:4444:5555:6666 1.4 MiB 2.9 KiB  29 MiB
> 2001:db8:1111:2222:3333:4444:5555:7777
"
        );
    }

    #[test]
    fn keys_show_what_is_in_them() {
        for (flow, name) in [
            (flow("src", 0, ("10.0.0.1", 0), ("", 0)), "10.0.0.1"),
            (flow("src/24", 0, ("10.0.0.0", 0), ("", 0)), "10.0.0.0/24"),
            (flow("dst/24", 0, ("", 0), ("2001:db8::", 0)), "2001:db8::/64"),
            (flow("pair", 0, ("10.0.0.1", 0), ("10.0.0.2", 0)), "10.0.0.1 > 10.0.0.2"),
            (flow("dev", 0, ("", 0), ("", 0)), "eth0"),
            (flow("src", 0, ("", 0), ("", 0)), "(no readable IP header)"),
        ] {
            assert_eq!(Name::of(&flow.key, &flow.per, &flow.dev).first, name);
        }
    }

    #[test]
    fn without_a_rate_there_is_no_level() {
        let flow = Flow { level_bytes: None, ..flow("src", 0, ("10.0.0.1", 0), ("", 0)) };
        assert!(text(&[flow], false).ends_with("10.0.0.1 1.4 MiB 2.9 KiB       -\n"));
    }

    #[test]
    fn rules_have_a_column_where_they_fit() {
        let mut found = example::found();
        found.config.rules = vec![example::rule("guests")];
        let in_rule = |rule: &str, flow: Flow| Flow { rule: rule.to_owned(), ..flow };
        let text = |flows: &[Flow]| {
            let mut out = Vec::new();
            super::flows(&found, flows, 2, Sort::Dropped, false, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            text.lines().for_each(|line| assert!(line.len() <= WIDTH, "{line}"));
            text.lines().skip(2).map(|line| format!("{line}\n")).collect::<String>()
        };
        let flow_of_default = flow("flow", 6, ("10.0.0.1", 40_000), ("10.0.0.2", 443));
        assert_eq!(
            text(&[in_rule("guests", flow("src", 0, ("10.20.0.1", 0), ("", 0))), flow_of_default]),
            "\
KEY                                RULE     PASSED DROPPED   LEVEL
10.20.0.1                          guests  1.4 MiB 2.9 KiB  29 MiB
tcp 10.0.0.1:40000 > 10.0.0.2:443  default 1.4 MiB 2.9 KiB  29 MiB
"
        );
        let long = in_rule(&"x".repeat(64), flow("flow", 1, ("10.0.0.1", 0), ("10.0.0.2", 0)));
        assert_eq!(
            text(&[long]),
            format!(
                "\
FLOW                      PASSED DROPPED   LEVEL
icmp 10.0.0.1 > 10.0.0.2 1.4 MiB 2.9 KiB  29 MiB
    rule {}
",
                "x".repeat(64)
            )
        );
    }

    #[test]
    fn no_flows_is_said() {
        assert!(text(&[], false).ends_with("(tcx)\nno flows\n"));
    }
}
