//! An attachment for tests to start from.

use std::ffi::OsString;

use shaper_common::{
    abi::Overflow,
    units::{Bytes, Rate},
};

use crate::{
    args::{self, Command},
    model::{AccountChoice, Config, Device, Direction, Found, Hook, HookChoice, Order, Per, State},
};

/// `attach eth0 --rate 1gbit`.
pub(crate) fn config() -> Config {
    Config {
        rate: Rate::new(1_000_000_000).expect("in range"),
        burst: Bytes::new(31_250_000).expect("in range"),
        burst_given: false,
        per: Per::FLOW,
        max_flows: Config::MAX_FLOWS,
        overflow: Overflow::Shared,
        account: AccountChoice::L2,
        overhead: 0,
        mpu: 0,
        hook: HookChoice::Auto,
        order: Order::Last,
    }
}

pub(crate) fn device() -> Device {
    Device { name: "eth0".to_owned(), ifindex: 2, ethernet: true, loopback: false }
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
