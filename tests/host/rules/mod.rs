//! Which rule a packet meets: what the tool lays out and the data plane looks up, against one pass over all rules.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod book;
mod choice;
mod drawn;
mod keys;
mod layout;
mod model;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Instant,
};

use proptest::{prelude::*, sample::Index as Chosen};
use shaper_cli::{
    compile::{Compiled, Placed, Slotted, TooMany, compile, key_decides},
    error::Error,
    model::{Direction, Limits, Match, Net, Per, PortRange, Ports, Rule, Side},
};
use shaper_common::{
    abi::DEFAULT_RULE,
    key::{self, Family, Key},
    packet::Facts,
    rule::{Boundary, End, Index, Link, MAX_CHAIN, MAX_STEPS, NO_LINK, Rules, Table, kind, lookup},
};
use tests::frames::{v4, v6};

use self::{
    book::{Book, NOBODYS, check_layout},
    drawn::near_ends,
    model::{Packet, expected},
};
use crate::property::{config, regressions};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ESP: u8 = 50;

fn net(text: &str) -> Net {
    let (address, len) = text.split_once('/').unwrap();
    Net::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

fn to(nets: &[&str]) -> Match {
    Match { nets: nets.iter().copied().map(net).collect(), ..Match::default() }
}

fn either(first: u16, last: u16) -> Ports {
    Ports::Either(PortRange { first, last })
}

fn rule(matches: Match) -> Rule {
    Rule { name: String::new(), matches, per: None, limits: Limits::default() }
}

/// The rules in the order of age, with numbers that are not.
fn slotted(rules: &[Rule]) -> Vec<Slotted<'_>> {
    rules.iter().enumerate().map(|(age, rule)| Slotted { slot: 1_000_000 - age as u32, rule }).collect()
}

/// How old the rule with this number is.
fn age(slot: u32) -> Option<u32> {
    if slot == DEFAULT_RULE { None } else { Some(1_000_000 - slot) }
}
