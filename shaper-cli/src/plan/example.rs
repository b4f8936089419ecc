//! An attachment for tests to start from.

use std::ffi::OsString;

use shaper_common::{
    abi::Overflow,
    units::{Bytes, PacketRate, Packets, Rate},
    verdict::Action,
};

use crate::{
    args::{self, Command},
    model::{
        AccountChoice, ByteLimit, Config, Device, Direction, Found, Hook, HookChoice, Limits, Match, Order,
        PacketLimit, Per, Rule, State,
    },
};

/// `attach eth0 --rate 1gbit`.
pub(crate) fn config() -> Config {
    Config {
        limits: Limits { rate: byte_limit(1_000_000_000, 31_250_000, false), ..Limits::default() },
        per: Per::FLOW,
        max_flows: Config::MAX_FLOWS,
        overflow: Overflow::Shared,
        account: AccountChoice::L2,
        overhead: 0,
        mpu: 0,
        hook: HookChoice::Auto,
        order: Order::Last,
        rules: Vec::new(),
    }
}

pub(crate) fn byte_limit(bits: u64, burst: u64, burst_given: bool) -> Option<ByteLimit> {
    Some(ByteLimit { rate: Rate::new(bits)?, burst: Bytes::new(burst)?, burst_given })
}

pub(crate) fn packet_limit(packets: u64, burst: u64, burst_given: bool) -> Option<PacketLimit> {
    Some(PacketLimit { rate: PacketRate::new(packets)?, burst: Packets::new(burst)?, burst_given })
}

/// Every limit there is.
pub(crate) fn limits() -> Limits {
    Limits {
        rate: byte_limit(100_000_000, 3_125_000, false),
        peak: byte_limit(200_000_000, 6_250_000, false),
        soft: None,
        pps: packet_limit(10_000, 2_500, false),
        total: byte_limit(1_000_000_000, 31_250_000, false),
        exceed: Action::Dscp(8),
        violate: Action::Drop,
        block: false,
    }
}

/// `rule add eth0 10.20.0.0/16 --name NAME --rate 20mbit --per src`.
pub(crate) fn rule(name: &str) -> Rule {
    Rule {
        name: name.to_owned(),
        matches: Match { nets: vec!["10.20.0.0/16".parse().expect("a prefix")], ..Match::default() },
        per: Some("src".parse().expect("a key")),
        limits: Limits { rate: byte_limit(20_000_000, 625_000, false), ..Limits::default() },
    }
}

pub(crate) fn device() -> Device {
    Device { name: "eth0".to_owned(), ifindex: 2, ethernet: true, readable: true, loopback: false }
}

/// [`config`] on [`device`].
pub(crate) fn found() -> Found {
    Found {
        netns: None,
        dev: "eth0".to_owned(),
        ifindex: 2,
        direction: Direction::Ingress,
        hook: Hook::Tcx,
        state: State::Active,
        config: config(),
        flows: 12,
        untracked_packets: 0,
    }
}

/// What a command line without the program's name asks for.
pub(crate) fn command(line: &str) -> Command {
    let words = ["shaper"].into_iter().chain(line.split(' ')).map(OsString::from);
    args::parse(words).expect("a valid command line").command
}
