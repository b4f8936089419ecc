//! `shaper attach`.

use clap::{ArgGroup, Args};
use shaper_common::abi::Overflow;

use super::{DirectionChoice, LimitArgs, value};
use crate::model::{AccountChoice, Config, HookChoice, Order, Per};

/// `shaper attach`: what is not named is the default, also where something is attached already.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group(ArgGroup::new("limit").args(["rate", "pps", "total", "block", "unlimited"]).required(true).multiple(true)))]
#[command(override_usage = "shaper attach [OPTIONS] <--rate|--pps|--total|--block|--unlimited> <DEV>")]
#[command(after_help = "\
Examples:
  shaper attach eth0 --rate 1gbit --burst 2gbit        each flow
  shaper attach eth0 --rate 20mbit --per src/24        each /24 (IPv6: /64)
  shaper attach eth0 --pps 10kpps --per src            packets of each sender
  shaper attach eth0 --rate 50mbit --total 900mbit     each, and all together
  shaper attach eth0 --rate 50mbit --exceed dscp=CS1   mark the excess, pass it
  shaper attach eth0 --direction egress --rate 100mbit --per dev --account wire
  shaper attach eth0 --unlimited                       only rules limit

Attaching again updates in place: options that are not named go back to their
defaults; rules, counters and the levels of all buckets stay. `shaper set`
changes a limit and leaves the rest.")]
pub struct Attach {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What gets a bucket of its own: flow, src, dst, pair, src/N, dst/N, src/N,M (IPv4, IPv6) or dev
    #[arg(long, default_value_t = Per::FLOW, value_name = "KEY")]
    pub per: Per,
    /// Which packets
    #[arg(long, value_enum, default_value_t = DirectionChoice::Ingress, hide_possible_values = true,
          value_name = "ingress|egress|both")]
    pub direction: DirectionChoice,
    /// Where the program runs: auto is TCX where the kernel has it (Linux 6.6), else clsact
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "auto|tcx|clsact")]
    pub hook: HookChoice,
    /// Keys that there is room for at once, 1 to 16777216
    #[arg(long, default_value_t = Config::MAX_FLOWS, value_parser = value::max_flows, allow_hyphen_values = true, value_name = "N")]
    pub max_flows: u32,
    /// What becomes of keys that find no room: share one bucket, pass, or are dropped
    #[arg(long, default_value = "shared", value_parser = value::overflow(), hide_possible_values = true,
          value_name = "shared|open|closed")]
    pub overflow: Overflow,
    /// Which bytes count: the Ethernet frame, the frame without link header, or the frame as it occupies a wire
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "l2|l3|wire")]
    pub account: AccountChoice,
    /// Bytes added to each packet, -64 to 256
    #[arg(long, default_value_t = 0, value_parser = value::overhead, allow_hyphen_values = true, value_name = "N")]
    pub overhead: i32,
    /// Least bytes a packet counts, overhead included, 0 to 256
    #[arg(long, default_value_t = 0, value_parser = value::mpu, allow_hyphen_values = true, value_name = "N")]
    pub mpu: u32,
    /// Before or after the programs that are on the hook now
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, value_name = "first|last")]
    pub order: Order,
    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}
