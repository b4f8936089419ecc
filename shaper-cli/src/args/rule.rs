//! `shaper rule`.

use clap::{ArgGroup, Args, Subcommand};

use super::{DirectionChoice, LimitArgs};
use crate::model::{Net, Per, PortRange, Side, protocol, rule};

/// `shaper rule`: limits for a part of what an attachment sees.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct Rule {
    /// What is to be done.
    #[command(subcommand)]
    pub command: RuleCommand,
}

/// What is done with rules.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum RuleCommand {
    /// Limit what a rule matches
    #[command(override_usage = "\
    shaper rule add [OPTIONS] <--rate|--pps|--total|--block|--unlimited>
                          <DEV> [CIDR]...")]
    #[command(after_help = "\
Examples:
  shaper rule add eth0 10.20.0.0/16 --rate 20mbit --per src
  shaper rule add eth0 10.20.0.0/16 2001:db8:20::/48 --name guests --rate 20mbit
  shaper rule add eth0 --proto udp --port 53 --name dns --pps 200 --per src
  shaper rule add eth0 198.51.100.0/24 --block
  shaper rule add eth0 192.0.2.7 --unlimited           only the device's total

The longest prefix that matches wins; among equal ones the rule that names
ports, then the one that names a protocol, then the older. What no rule matches
has the limits of the attachment.")]
    Add(RuleEdit),
    /// Give a rule other limits; its name, match and age stay
    #[command(override_usage = "\
    shaper rule replace [OPTIONS] <--rate|--pps|--total|--block|--unlimited>
                          <DEV> [CIDR]...")]
    #[command(after_help = "\
Examples:
  shaper rule replace eth0 --name guests --rate 30mbit --per src
  shaper rule replace eth0 10.20.0.0/16 --rate 30mbit --total 5gbit

The rule is found by its name, or by all of what it matches. Options that are
not named go back to their defaults; counters and levels stay.")]
    Replace(RuleEdit),
    /// Take a rule away
    Del(RuleDel),
    /// Show the rules
    List(RuleList),
}

/// `shaper rule add` and `shaper rule replace`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group(ArgGroup::new("limit").args(["rate", "pps", "total", "block", "unlimited"]).required(true).multiple(true)))]
#[command(mut_arg("total", |arg| arg.help(TOTAL)), mut_arg("block", |arg| arg.help(BLOCK)))]
#[command(mut_arg("unlimited", |arg| arg.help(UNLIMITED).conflicts_with_all(["total", "total_burst"])))]
pub struct RuleEdit {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Which rule.
    #[command(flatten)]
    pub words: RuleWords,
    /// What gets a bucket of its own, as in attach [default: as the attachment]
    #[arg(long, value_name = "KEY")]
    pub per: Option<Per>,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `shaper rule del`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  shaper rule del eth0 --name guests
  shaper rule del eth0 10.20.0.0/16 --proto udp --port 53

The rule is found by its name, or by all of what it matches.")]
pub struct RuleDel {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Which rule.
    #[command(flatten)]
    pub words: RuleWords,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `shaper rule list`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RuleList {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
}

/// What tells a rule from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct RuleWords {
    /// Addresses: 10.20.0.0/16, 2001:db8::/32 or 192.0.2.7; several share the rule's total [default: any]
    #[arg(value_name = "CIDR")]
    pub nets: Vec<Net>,
    /// What the rule is called [default: what it matches]
    #[arg(long, value_parser = rule::name, allow_hyphen_values = true, value_name = "NAME")]
    pub name: Option<String>,
    /// Only this IP protocol: tcp, udp, icmp, icmpv6, sctp, .. or a number
    #[arg(long, value_parser = protocol::parse, allow_hyphen_values = true, value_name = "PROTO")]
    pub proto: Option<u8>,
    /// Only from or to this port, or these: 53 or 1000-2000
    ///
    /// Fragments have no ports; they match if the rest does.
    #[arg(long, allow_hyphen_values = true, value_name = "PORT", conflicts_with_all = ["sport", "dport"])]
    pub port: Option<PortRange>,
    /// Only from this port, likewise
    #[arg(long, allow_hyphen_values = true, value_name = "PORT")]
    pub sport: Option<PortRange>,
    /// Only to this port, likewise
    #[arg(long, allow_hyphen_values = true, value_name = "PORT")]
    pub dport: Option<PortRange>,
    /// Whose address is in CIDR: the other end's, or this end's [default: remote]
    ///
    /// Remote is the source of what is received and the destination of what is sent.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "remote|local")]
    pub side: Option<Side>,
}

/// Help of options that mean the rule here.
const TOTAL: &str = "What everything that the rule matches may send together, in this direction";
const BLOCK: &str = "Drop what the rule matches";
const UNLIMITED: &str = "No limit but the device's total";
