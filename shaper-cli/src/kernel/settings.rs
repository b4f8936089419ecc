//! From what was asked for to the constants of a program.

use shaper_common::{abi::Settings, packet::Link, table::WAYS};

use crate::{model::Config, state::Record};

/// Ways for each flow that is asked for. When the table holds that many flows it is half full, and fewer than one flow
/// in a hundred finds its eight ways taken.
const SPARE: u64 = 2;

/// Sets of the flow table of `config`, a power of two.
pub(super) fn sets(config: &Config) -> u32 {
    let sets = (u64::from(config.max_flows) * SPARE).div_ceil(WAYS as u64).next_power_of_two();
    u32::try_from(sets).unwrap_or(1 << 31)
}

/// The constants of the program that `record` describes.
pub(super) fn settings(record: &Record, epoch_base: u64) -> Settings {
    let config = &record.config;
    let accounting = config.accounting();
    Settings {
        epoch_base,
        secret: record.secret,
        set_mask: sets(config) - 1,
        overhead: accounting.overhead,
        mpu: accounting.mpu,
        account: accounting.account as u8,
        per: config.per.kind as u8,
        prefix_v4: config.per.prefix.v4,
        prefix_v6: config.per.prefix.v6,
        link: if record.ethernet { Link::Ethernet } else { Link::Bare } as u8,
        overflow: config.overflow as u8,
        reserved: [0; 6],
    }
}
