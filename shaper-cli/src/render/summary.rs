//! An attachment in a line.

use shaper_common::abi::Overflow;

use crate::{
    model::{AccountChoice, Config, Found, Order},
    plan::word,
};

/// `1 Gbit/s per flow, burst 256 MiB = 2.15 s`.
pub(super) fn limits(config: &Config) -> String {
    let Config { rate, burst, per, .. } = config;
    format!("{rate} per {per}, burst {burst} = {}", burst.time_at(*rate))
}

/// `1 Gbit/s per flow, burst 256 MiB = 2.15 s (tcx)`.
pub(super) fn attachment(found: &Found) -> String {
    format!("{} ({})", limits(&found.config), found.hook)
}

/// The other settings in words: those that are no default, or all. Empty if there is nothing to say.
pub(super) fn settings(config: &Config, all: bool) -> String {
    let table = format!("room for {} keys", config.max_flows);
    let others = match config.overflow {
        Overflow::Shared => "others share a bucket",
        Overflow::Open => "others pass",
        Overflow::Closed => "others are dropped",
    };
    let mut counting = format!("counts {} bytes", word(&config.account));
    if config.overhead != 0 {
        counting.push_str(&format!(" {:+}", config.overhead));
    }
    if config.mpu != 0 {
        counting.push_str(&format!(", at least {}", config.mpu));
    }
    let counts_as_usual = config.account == AccountChoice::default() && config.overhead == 0 && config.mpu == 0;
    let order = match config.order {
        Order::First => "runs first",
        Order::Last => "runs last",
    };
    let phrases = [
        (config.max_flows == Config::MAX_FLOWS, table.as_str()),
        (config.overflow == Overflow::Shared, others),
        (counts_as_usual, counting.as_str()),
        (config.order == Order::default(), order),
    ];
    let said = phrases.into_iter().filter(|(default, _)| all || !default).map(|(_, phrase)| phrase);
    said.collect::<Vec<_>>().join("; ")
}
