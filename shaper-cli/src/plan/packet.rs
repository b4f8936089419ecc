//! A packet in words.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    args::Explain,
    error::{Error, Result},
    model::{Question, protocol},
};

/// The form of a packet.
const EXAMPLE: &str =
    "write it like 'udp 10.20.0.7:53 > 192.0.2.9:4000' or 'tcp [2001:db8::1]:443 > [2001:db8::2]:5000'";

/// The packet that `explain` is asked about.
///
/// # Errors
///
/// If it is none.
pub fn packet(args: &Explain) -> Result<Question> {
    let text = args.packet.join(" ").replace("->", " > ").replace('>', " > ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let [proto, src, ">" | "to", dst] = words.as_slice() else {
        return Err(shape(&words));
    };
    let number = protocol::parse(proto).map_err(|invalid| invalid.given_for("PACKET"))?;
    let ((src_address, sport), (dst_address, dport)) = (endpoint(src)?, endpoint(dst)?);
    if src_address.is_ipv4() != dst_address.is_ipv4() {
        let cause = format!("is of another IP version than `{src}`");
        return Err(Error::usage(*dst, cause, "write two IPv4 or two IPv6 addresses"));
    }
    let with_port = sport.map(|_| src).or(dport.map(|_| dst));
    if let Some(with_port) = with_port.filter(|_| !protocol::has_ports(number)) {
        let cause = format!("{} has no ports", protocol::name(number));
        return Err(Error::usage(*with_port, cause, "protocols with ports: tcp, udp, udplite, sctp, dccp"));
    }
    if sport.is_some() != dport.is_some() {
        let without = if sport.is_some() { dst } else { src };
        let hint = "give both ports, or none for a fragment";
        return Err(Error::usage(*without, "has no port, and the other end has one", hint));
    }
    Ok(Question {
        src: src_address,
        dst: dst_address,
        proto: number,
        sport: sport.unwrap_or(0),
        dport: dport.unwrap_or(0),
        bytes: args.bytes,
    })
}

/// What is wrong with words that are too many or too few.
fn shape(words: &[&str]) -> Error {
    let is_arrow = |word: &&&str| matches!(**word, ">" | "to");
    let (token, cause) = match words {
        [_] | [_, _] => ("PACKET", "it has no destination".to_owned()),
        [.., last] if is_arrow(&last) => ("PACKET", "it has no destination".to_owned()),
        [_, arrow, ..] if is_arrow(&arrow) => (*arrow, "stands where the source address belongs".to_owned()),
        [_, _, arrow, _, more, ..] if is_arrow(&arrow) => (*more, "follows the destination".to_owned()),
        [_, _, other, ..] => (*other, "stands where `>` belongs".to_owned()),
        [] => ("PACKET", "it is empty".to_owned()),
    };
    Error::usage(token, cause, EXAMPLE)
}

/// An address and the port behind it.
fn endpoint(text: &str) -> Result<(IpAddr, Option<u16>)> {
    let refuse = |part: &str, what: &str| Error::usage(text, format!("`{part}` is not {what}"), EXAMPLE);
    let port = |digits: &str| {
        // `parse` takes a sign.
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse().ok().filter(|port| plain && *port > 0).ok_or_else(|| refuse(digits, "a port of 1 to 65535"))
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (address, behind) = rest.split_once(']').ok_or_else(|| refuse(text, "an IPv6 address in brackets"))?;
        let v6: Ipv6Addr = address.parse().map_err(|_bad| refuse(address, "an IPv6 address"))?;
        return match behind.strip_prefix(':') {
            Some(digits) => Ok((v6.into(), Some(port(digits)?))),
            None if behind.is_empty() => Ok((v6.into(), None)),
            None => Err(refuse(behind, "a port")),
        };
    }
    // With two colons it is IPv6, which has brackets if a port follows.
    match text.split_once(':') {
        Some((address, digits)) if !digits.contains(':') => {
            let v4: Ipv4Addr = address.parse().map_err(|_bad| refuse(address, "an IPv4 address"))?;
            Ok((v4.into(), Some(port(digits)?)))
        }
        _ => Ok((text.parse().map_err(|_bad| refuse(text, "an IP address"))?, None)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use crate::args::Explain;

    fn asked(text: &str) -> Result<Question> {
        packet(&Explain { dev: "eth0".to_owned(), packet: vec![text.to_owned()], bytes: 1514, direction: None })
    }

    #[test]
    fn packets_are_read() {
        for (text, src, sport, dst, dport, proto) in [
            ("udp 10.0.0.7:53 > 192.0.2.9:4000", "10.0.0.7", 53, "192.0.2.9", 4000, 17),
            ("UDP 10.0.0.7:53->192.0.2.9:4000", "10.0.0.7", 53, "192.0.2.9", 4000, 17),
            ("6 10.0.0.7:1 to 192.0.2.9:65535", "10.0.0.7", 1, "192.0.2.9", 65_535, 6),
            ("tcp [2001:db8::1]:443 > [::2]:5000", "2001:db8::1", 443, "::2", 5000, 6),
            ("icmpv6 2001:db8::1 > [::2]", "2001:db8::1", 0, "::2", 0, 58),
            ("udp 10.0.0.7 > 192.0.2.9", "10.0.0.7", 0, "192.0.2.9", 0, 17),
        ] {
            let (src, dst) = (src.parse().unwrap(), dst.parse().unwrap());
            assert_eq!(asked(text).unwrap(), Question { src, dst, proto, sport, dport, bytes: 1514 }, "{text}");
        }
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        for (text, cause) in [
            ("", "`PACKET`: it is empty"),
            ("udp 10.0.0.7:53", "`PACKET`: it has no destination"),
            ("udp 10.0.0.7:53 >", "`PACKET`: it has no destination"),
            ("10.0.0.7:53 > 192.0.2.9:4000", "`>`: stands where the source address belongs"),
            ("udp 10.0.0.7:53 192.0.2.9:4000", "`192.0.2.9:4000`: stands where `>` belongs"),
            ("udp 10.0.0.7:53 > 192.0.2.9:4000 64", "`64`: follows the destination"),
            ("http 10.0.0.7 > 192.0.2.9", "`PACKET`: `http` is not a protocol"),
            ("udp 10.0.0:53 > 192.0.2.9:4000", "`10.0.0:53`: `10.0.0` is not an IPv4 address"),
            ("udp guests > 192.0.2.9", "`guests`: `guests` is not an IP address"),
            ("udp 10.0.0.7:0 > 192.0.2.9:1", "`10.0.0.7:0`: `0` is not a port of 1 to 65535"),
            ("udp 10.0.0.7:+1 > 192.0.2.9:1", "`10.0.0.7:+1`: `+1` is not a port of 1 to 65535"),
            ("udp [::1:53 > [::2]:1", "`[::1:53`: `[::1:53` is not an IPv6 address in brackets"),
            ("udp [10.0.0.7]:53 > [::2]:1", "`[10.0.0.7]:53`: `10.0.0.7` is not an IPv6 address"),
            ("udp [::1]53 > [::2]:1", "`[::1]53`: `53` is not a port"),
            ("udp 10.0.0.7:1 > [::2]:1", "`[::2]:1`: is of another IP version than `10.0.0.7:1`"),
            ("icmp 10.0.0.7 > 10.0.0.8:1", "`10.0.0.8:1`: icmp has no ports"),
            ("udp 10.0.0.7 > 10.0.0.8:1", "`10.0.0.7`: has no port, and the other end has one"),
        ] {
            let error = asked(text).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.exit_code()), (cause, 1));
        }
    }
}
