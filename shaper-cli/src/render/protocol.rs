//! Names of IP protocols.

/// The lower-case name of an IP protocol number, or the number.
pub(super) fn name(proto: u8) -> String {
    match proto {
        1 => "icmp",
        2 => "igmp",
        4 => "ipip",
        6 => "tcp",
        17 => "udp",
        33 => "dccp",
        41 => "ipv6",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmpv6",
        89 => "ospf",
        103 => "pim",
        112 => "vrrp",
        132 => "sctp",
        136 => "udplite",
        _ => return proto.to_string(),
    }
    .to_owned()
}
