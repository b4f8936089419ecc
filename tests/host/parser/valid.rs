//! Well-formed packets: what was built is what is read, and etherparse reads the same.

use etherparse::{LinkExtSlice, NetSlice, SlicedPacket, TransportSlice};
use proptest::prelude::*;
use shaper_common::{
    key::Family,
    packet::{Facts, Link, MAX_OFFSET, Parsed, parse, proto},
};
use tests::frames::{Frame, v4, v6};

use super::generate::frames;
use crate::property::{config, regressions};

proptest! {
    #![proptest_config(config(regressions!("parser-valid"), 3000))]

    #[test]
    fn what_was_built_is_what_is_read(frame in frames(9, 10)) {
        let parsed = parse(&frame.bytes()[..], frame.link);
        prop_assert_eq!(parsed, frame.parsed());
        if let Parsed::Limited(facts) = parsed {
            prop_assert!(facts.l2_len <= facts.l4_offset && facts.l4_offset < MAX_OFFSET);
        }
    }

    #[test]
    fn etherparse_reads_the_same(frame in frames(3, 6)) {
        let bytes = frame.bytes();
        let read = match frame.link {
            Link::Ethernet => SlicedPacket::from_ethernet(&bytes),
            Link::Bare => SlicedPacket::from_ip(&bytes),
        };
        // Headers in an order that etherparse refuses, or cut off; there is a test for bytes that nobody vouches for.
        if let Ok(read) = read {
            agrees(&frame, &bytes, &read)?;
        }
    }
}

fn agrees(frame: &Frame, bytes: &[u8], read: &SlicedPacket<'_>) -> Result<(), TestCaseError> {
    let parsed = parse(bytes, frame.link);
    let (family, src, dst, payload) = match &read.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header();
            (Family::V4, v4(header.source_addr()), v4(header.destination_addr()), ip.payload())
        }
        Some(NetSlice::Ipv6(ip)) => {
            let header = ip.header();
            (Family::V6, v6(header.source_addr()), v6(header.destination_addr()), ip.payload())
        }
        Some(NetSlice::Arp(_)) | None => {
            prop_assert_eq!(parsed, Parsed::Exempt);
            return Ok(());
        }
    };
    let Parsed::Limited(facts) = parsed else {
        let Some(TransportSlice::Icmpv6(icmp)) = &read.transport else {
            return Err(TestCaseError::fail("nothing but discovery is exempt"));
        };
        prop_assert!((133..=137).contains(&icmp.type_u8()));
        return Ok(());
    };
    prop_assert_eq!((facts.family, facts.src, facts.dst), (family, src, dst));
    let tags = read.link_exts.iter().filter(|tag| matches!(tag, LinkExtSlice::Vlan(_))).count();
    prop_assert_eq!(facts.l2_len as usize, if frame.link == Link::Bare { 0 } else { 14 + 4 * tags });

    // etherparse stops at a mobility header.
    let number = payload.ip_number.0;
    if family == Family::V6 && number == proto::MOBILITY {
        return Ok(());
    }
    prop_assert_eq!(facts.fragment, payload.fragmented);
    if !payload.fragmented {
        prop_assert_eq!(facts.proto, number);
        prop_assert_eq!(facts.l4_offset as usize, offset(bytes, payload.payload));
    }
    let Facts { sport, dport, .. } = facts;
    match &read.transport {
        Some(TransportSlice::Udp(udp)) => prop_assert_eq!((sport, dport), (udp.source_port(), udp.destination_port())),
        Some(TransportSlice::Tcp(tcp)) => prop_assert_eq!((sport, dport), (tcp.source_port(), tcp.destination_port())),
        // etherparse does not read the ports of others; what was built says them.
        _ if [proto::SCTP, proto::DCCP, proto::UDP_LITE].contains(&number) => {}
        _ => prop_assert_eq!((sport, dport), (0, 0)),
    }
    Ok(())
}

/// Where `part` lies in `whole`.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
