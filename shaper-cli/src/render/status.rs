//! `status` for people.

use std::io::{self, Write};

use shaper_common::abi::Overflow;

use super::{
    human::{self, fitting},
    summary,
    table::{Flush, Table},
};
use crate::{
    model::{ByteLimit, Config, Found, Limits, State},
    plan::{attach_line, detach_line},
    shell,
};

/// Columns of a rate, chosen so that the widest table is 80 columns.
const RATE_WIDTH: usize = 12;

/// Columns of a burst.
const BURST_WIDTH: usize = 9;

/// One line for each attachment, and below the table what needs attention.
///
/// # Errors
///
/// If `out` fails.
pub fn status(attachments: &[Found], verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    if attachments.is_empty() {
        return writeln!(out, "nothing is attached");
    }
    let columns = [Flush::Left, Flush::Left, Flush::Left, Flush::Right, Flush::Left, Flush::Right, Flush::Right];
    let mut table = Table::new(columns, ["DEV", "DIR", "HOOK", "RATE", "PER", "BURST", "FLOWS"]);
    for found in attachments {
        let Config { limits, per, .. } = &found.config;
        let (rate, burst) = match limits {
            Limits { rate: Some(ByteLimit { rate, burst, .. }), .. } => (
                fitting(&rate.to_string(), RATE_WIDTH, rate.bits_per_second(), &human::RATE),
                fitting(&burst.to_string(), BURST_WIDTH, burst.get(), &human::BYTES),
            ),
            Limits { block: true, .. } => ("blocked".to_owned(), "-".to_owned()),
            Limits { pps: None, total: None, .. } => ("unlimited".to_owned(), "-".to_owned()),
            _ => ("-".to_owned(), "-".to_owned()),
        };
        table.row([
            found.dev.clone(),
            found.direction.to_string(),
            match found.state {
                State::Active => found.hook.to_string(),
                State::Gone => "gone".to_owned(),
            },
            rate,
            per.to_string(),
            burst,
            found.flows.to_string(),
        ]);
    }
    table.write(out)?;
    for found in attachments {
        if verbose || !is_told(&found.config.limits) {
            detail(found, verbose, out)?;
        }
        rules(found, out)?;
        attention(found, out)?;
    }
    Ok(())
}

/// How many rules there are, for which the table has no room.
fn rules(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let Found { dev, direction, config, .. } = found;
    let count = match config.rules.len() {
        0 => return Ok(()),
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    let list = shell::line(found.netns.as_deref(), "rule list", dev, "");
    writeln!(out, "\n{dev} {direction}: {count} besides the default; `{list}` lists them")
}

/// Whether the table says all of the limits.
fn is_told(limits: &Limits) -> bool {
    let told = Limits { rate: limits.rate, block: limits.block, ..Limits::default() };
    *limits == told
}

/// What the table has no room for.
fn detail(found: &Found, verbose: bool, out: &mut dyn Write) -> io::Result<()> {
    let Found { dev, direction, config, .. } = found;
    writeln!(out, "\n{}", summary::attachment(&format!("{dev} {direction}:"), found))?;
    if verbose {
        writeln!(out, "    {}", summary::settings(config, true))?;
    }
    Ok(())
}

fn attention(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let Found { dev, direction, config, untracked_packets, .. } = found;
    if found.state == State::Gone {
        writeln!(out, "\n{dev} {direction} limits nothing: its device or its program has vanished. To clean up:")?;
        writeln!(out, "    {}", detach_line(found))?;
    }
    if *untracked_packets > 0 {
        let became = match config.overflow {
            Overflow::Shared => "shared one bucket",
            Overflow::Open => "passed",
            Overflow::Closed => "were dropped",
        };
        writeln!(out, "\n{dev} {direction}: {untracked_packets} packets met a full table and {became}.")?;
        if let Some(max_flows) = config.max_flows.checked_mul(2).filter(|larger| *larger <= Config::MOST_FLOWS) {
            let larger = Found { config: Config { max_flows, ..config.clone() }, ..found.clone() };
            writeln!(out, "To have room for more keys (--max-flows):\n    {}", attach_line(&larger))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::{
        model::{Direction, Hook},
        plan::example,
    };

    fn text(attachments: &[Found], verbose: bool) -> String {
        let mut out = Vec::new();
        status(attachments, verbose, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn attachments_are_a_table() {
        let found = example::found();
        let egress = Found { direction: Direction::Egress, hook: Hook::Clsact, flows: 65_536, ..found.clone() };
        assert_eq!(
            text(&[found, egress], false),
            "\
DEV   DIR      HOOK        RATE  PER       BURST  FLOWS
eth0  ingress  tcx     1 Gbit/s  flow  ~29.8 MiB     12
eth0  egress   clsact  1 Gbit/s  flow  ~29.8 MiB  65536
"
        );
        assert_eq!(text(&[], false), "nothing is attached\n");
    }

    #[test]
    fn limits_without_a_column_are_below() {
        let with = |limits| Found { config: Config { limits, ..example::config() }, ..example::found() };
        let pps = Limits { pps: example::limits().pps, ..Limits::default() };
        assert_eq!(
            text(&[with(pps), with(Limits::BLOCK), with(example::limits())], false),
            "\
DEV   DIR      HOOK        RATE  PER       BURST  FLOWS
eth0  ingress  tcx            -  flow          -     12
eth0  ingress  tcx      blocked  flow          -     12
eth0  ingress  tcx   100 Mbit/s  flow  3125000 B     12

eth0 ingress: 10 kpps per flow, burst 2500 packets = 250 ms (tcx)

eth0 ingress: 100 Mbit/s per flow, burst 3125000 B = 250 ms;
    10 kpps, burst 2500 packets = 250 ms;
    peak 200 Mbit/s, burst 6250000 B = 250 ms;
    total 1 Gbit/s, burst 31250000 B = 250 ms; above: dscp=CS1 (tcx)
"
        );
    }

    #[test]
    fn rules_are_counted() {
        let mut found = example::found();
        found.config.rules = vec![example::rule("a")];
        found.config.limits = Limits::default();
        assert_eq!(
            text(&[found], false),
            "\
DEV   DIR      HOOK       RATE  PER   BURST  FLOWS
eth0  ingress  tcx   unlimited  flow      -     12

eth0 ingress: 1 rule besides the default; `shaper rule list eth0` lists them
"
        );
    }

    #[test]
    fn the_widest_table_is_80_columns() {
        let config = Config {
            limits: Limits { rate: example::byte_limit(999_999_999_999, (1 << 40) - 1, true), ..Limits::default() },
            per: "src/32,127".parse().unwrap(),
            max_flows: 1 << 24,
            ..example::config()
        };
        let found =
            Found { dev: "a23456789012345".to_owned(), hook: Hook::Clsact, config, flows: 1 << 24, ..example::found() };
        for line in text(&[found], false).lines() {
            assert!(line.len() <= 80, "{line}");
        }
    }

    #[test]
    fn what_needs_attention_is_below() {
        let found = Found { untracked_packets: 7, ..example::found() };
        assert_eq!(
            text(&[found], true),
            "\
DEV   DIR      HOOK      RATE  PER       BURST  FLOWS
eth0  ingress  tcx   1 Gbit/s  flow  ~29.8 MiB     12

eth0 ingress: 1 Gbit/s per flow, burst 31250000 B = 250 ms (tcx)
    room for 65536 keys; others share a bucket; counts l2 bytes; runs last

eth0 ingress: 7 packets met a full table and shared one bucket.
To have room for more keys (--max-flows):
    shaper attach eth0 --direction ingress --rate 1gbit --max-flows 131072
"
        );
        let found = Found { state: State::Gone, ..example::found() };
        assert_eq!(
            text(&[found], false),
            "\
DEV   DIR      HOOK      RATE  PER       BURST  FLOWS
eth0  ingress  gone  1 Gbit/s  flow  ~29.8 MiB     12

eth0 ingress limits nothing: its device or its program has vanished. To clean up:
    shaper detach eth0 --direction ingress
"
        );
    }
}
