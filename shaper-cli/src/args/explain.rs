//! `shaper explain`.

use clap::Args;

use super::{DirectionChoice, value};

/// Least bytes of a packet that is asked about: headers of any kind fit in.
const LEAST: u32 = 64;
/// Most bytes of a packet on a wire.
const MOST: u32 = 65_535;

/// `shaper explain`: what would happen to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = "\
Examples:
  shaper explain eth0 'udp 10.20.0.7:53 > 192.0.2.9:4000'
  shaper explain eth0 'tcp [2001:db8::1]:443 > [2001:db8::2]:50000' --bytes 64
  shaper explain eth0 'icmp 10.20.0.7 > 192.0.2.9'

PACKET is 'PROTO SOURCE[:PORT] > DESTINATION[:PORT]'. Its quotes keep the shell
from writing a file; `to` may stand for `>`. UDP and the like without ports are
fragments. Nothing is charged.")]
pub struct Explain {
    /// Device, like eth0
    #[arg(value_name = "DEV")]
    pub dev: String,
    /// Protocol, source and destination, like 'udp 10.20.0.7:53 > 192.0.2.9:4000'
    #[arg(required = true, value_name = "PACKET")]
    pub packet: Vec<String>,
    /// Bytes of its frame, Ethernet header included, 64 to 65535
    ///
    /// A GSO packet is charged as the packets that it becomes on the wire: ask about one of those.
    #[arg(long, default_value_t = 1514, value_parser = value::number(LEAST, MOST), allow_hyphen_values = true,
          value_name = "N")]
    pub bytes: u32,
    /// Only this direction [default: all that are attached]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ingress|egress|both")]
    pub direction: Option<DirectionChoice>,
}
