//! Names of IP protocols.

use crate::error::Invalid;

/// Names and numbers; of several for one number, the first is shown.
const NAMES: [(&str, u8); 18] = [
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ipv6-icmp", 58),
    ("icmp6", 58),
    ("ospf", 89),
    ("pim", 103),
    ("vrrp", 112),
    ("sctp", 132),
    ("udplite", 136),
];

/// Reads the name or the number of an IP protocol.
///
/// # Errors
///
/// If it is neither.
pub fn parse(text: &str) -> Result<u8, Invalid> {
    let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number);
    // `parse` takes a sign.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    named.or_else(|| text.parse().ok().filter(|_| plain)).ok_or_else(|| {
        Invalid::new(
            format!("`{text}` is not a protocol"),
            "protocols: tcp, udp, icmp, icmpv6, sctp, dccp, udplite, gre, esp, ah and so on, or 0 to 255",
        )
    })
}

/// The lower-case name of an IP protocol, or the number, which [`parse`] reads back.
#[must_use]
pub fn name(proto: u8) -> String {
    match NAMES.iter().find(|(_, number)| *number == proto) {
        Some((name, _)) => (*name).to_owned(),
        None => proto.to_string(),
    }
}

/// Whether packets of the protocol have ports that tell flows apart.
#[must_use]
pub fn has_ports(proto: u8) -> bool {
    shaper_common::packet::has_ports(proto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_read_and_written() {
        for proto in 0..=u8::MAX {
            assert_eq!(parse(&name(proto)), Ok(proto));
            assert_eq!(parse(&proto.to_string()), Ok(proto));
        }
        for (text, proto) in [("UDP", 17), ("ipv6-icmp", 58), ("icmp6", 58)] {
            assert_eq!(parse(text), Ok(proto));
        }
        assert_eq!(name(58), "icmpv6");
    }

    #[test]
    fn what_is_no_protocol_is_refused() {
        for text in ["", "256", "-1", "+6", "http", "6 "] {
            let cause = parse(text).map_err(|invalid| invalid.to_string());
            assert_eq!(cause, Err(format!("`{text}` is not a protocol")));
        }
    }
}
