//! The options that `attach`, `set` and `rule` share.

use clap::Args;
use shaper_common::{
    units::{Burst, PacketBurst, PacketRate, Rate, Share},
    verdict::Action,
};

use super::value;
use crate::model::action;

/// Limits as typed; [`crate::plan`] says which go together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct LimitArgs {
    /// What each key may send, like 100mbit, 1.5gbit or 12MB/s
    #[arg(long, value_parser = value::rate, allow_hyphen_values = true)]
    pub rate: Option<Rate>,
    /// How much may pass at once: a size like 64kb or 2gbit, or a time at the rate like 250ms
    ///
    /// Without it: 250 ms at the rate, 256 KiB at least; it then follows the rate when that changes.
    #[arg(long, value_parser = value::burst, allow_hyphen_values = true)]
    pub burst: Option<Burst>,
    /// How many packets each key may send per second, like 500, 10kpps or 1mpps
    ///
    /// A GSO packet counts as the packets it becomes on the wire.
    #[arg(long, value_parser = value::packet_rate, allow_hyphen_values = true, value_name = "N")]
    pub pps: Option<PacketRate>,
    /// How many packets may pass at once: a number, or a time at the rate like 250ms
    ///
    /// Without it: 250 ms at the rate, 64 at least.
    #[arg(long, value_parser = value::packet_burst, allow_hyphen_values = true, value_name = "N")]
    pub pps_burst: Option<PacketBurst>,
    /// A second, higher rate (RFC 2698): what exceeds only --rate gets --exceed, what exceeds the peak --violate
    #[arg(long, value_parser = value::rate, allow_hyphen_values = true, value_name = "RATE")]
    pub peak: Option<Rate>,
    /// How much may pass at once at the peak; default as for --burst
    #[arg(long, value_parser = value::burst, allow_hyphen_values = true, value_name = "BURST")]
    pub peak_burst: Option<Burst>,
    /// A peak of the rate and this share of it, like 10%
    #[arg(long, value_parser = value::share, allow_hyphen_values = true, value_name = "SHARE",
          conflicts_with = "peak")]
    pub soft: Option<Share>,
    /// What everything on the device may send together, in this direction
    #[arg(long, value_parser = value::rate, allow_hyphen_values = true, value_name = "RATE")]
    pub total: Option<Rate>,
    /// How much may pass at once of the total; default as for --burst
    #[arg(long, value_parser = value::burst, allow_hyphen_values = true, value_name = "BURST")]
    pub total_burst: Option<Burst>,
    /// What happens above --rate or --pps: drop, pass, ecn, dscp=NAME or mark=N [default: drop]
    ///
    /// dscp takes CS0 to CS7, AF11 to AF43, EF, VA, LE, DF or 0 to 63; mark a number or 0x and hex digits. ecn marks
    /// what is ECN-capable and drops the rest.
    #[arg(long, value_parser = action::parse, allow_hyphen_values = true, value_name = "ACTION")]
    pub exceed: Option<Action>,
    /// What happens above the peak, likewise [default: drop]
    #[arg(long, value_parser = action::parse, allow_hyphen_values = true, value_name = "ACTION")]
    pub violate: Option<Action>,
    /// Drop everything but ARP, neighbour discovery and what is not IP
    #[arg(long, conflicts_with_all = ["rate", "burst", "pps", "pps_burst", "peak", "peak_burst", "soft", "total",
          "total_burst", "exceed", "violate"])]
    pub block: bool,
    /// No limit for any key: only rules limit, and --total
    #[arg(long, conflicts_with_all = ["rate", "burst", "pps", "pps_burst", "peak", "peak_burst", "soft", "exceed",
          "violate", "block"])]
    pub unlimited: bool,
}
