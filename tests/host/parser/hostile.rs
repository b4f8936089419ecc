//! Bytes that somebody made up: no panic, no forged port, and nothing but what is not IP goes free.

use proptest::{collection::vec, prelude::*, sample::Index};
use shaper_common::{
    key::Family,
    packet::{Facts, Link, MAX_OFFSET, Parsed, parse, proto},
};
use tests::frames::{IPV4, IPV6, QINQ, QINQ_OLD, VLAN};

use super::{generate::frames, referee};
use crate::property::{config, regressions};

const LINKS: [Link; 2] = [Link::Ethernet, Link::Bare];

/// What happens to a frame on its way.
#[derive(Clone, Debug)]
enum Damage {
    Overwrite(Index, u8),
    /// In the first bytes, where the headers are.
    OverwriteHeader(usize, u8),
    FlipBit(usize),
    Truncate(Index),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        4 => (12..110_usize, prop_oneof![any::<u8>(), prop::sample::select(&INTERESTING)])
            .prop_map(|(at, byte)| Damage::OverwriteHeader(at, byte)),
        3 => (12 * 8..110 * 8_usize).prop_map(Damage::FlipBit),
        2 => any::<Index>().prop_map(Damage::Truncate),
        1 => vec(any::<u8>(), 1..20).prop_map(Damage::Append),
    ]
}

/// Bytes that mean something somewhere: header numbers, versions, ethertypes.
const INTERESTING: [u8; 20] =
    [0, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 132, 135, 0x45, 0x46, 0x4f, 0x60, 0x81, 255];

/// Bytes of which every other means something.
fn noise(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = |[pick, byte]: [u8; 2]| if pick % 2 == 0 { byte } else { INTERESTING[usize::from(byte) % 20] };
    vec(any::<[u8; 2]>().prop_map(byte), 0..most)
}

fn damaged(mut bytes: Vec<u8>, damages: Vec<Damage>) -> Vec<u8> {
    for damage in damages {
        match damage {
            Damage::Overwrite(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            Damage::OverwriteHeader(at, byte) if at < bytes.len() => bytes[at] = byte,
            Damage::FlipBit(bit) if bit / 8 < bytes.len() => bytes[bit / 8] ^= 1 << (bit % 8),
            Damage::Truncate(at) if !bytes.is_empty() => bytes.truncate(at.index(bytes.len())),
            Damage::Append(more) => bytes.extend(more),
            _ => {}
        }
    }
    bytes
}

/// The IP version a frame claims and where its IP header starts, read in the plainest way.
fn claimed(bytes: &[u8], link: Link) -> Option<(Family, usize)> {
    if link == Link::Bare {
        return match bytes.first()? >> 4 {
            4 => Some((Family::V4, 0)),
            6 => Some((Family::V6, 0)),
            _ => None,
        };
    }
    let mut at = 12;
    for tags in 0.. {
        let ethertype = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        match ethertype {
            IPV4 => return Some((Family::V4, at + 2)),
            IPV6 => return Some((Family::V6, at + 2)),
            VLAN | QINQ | QINQ_OLD if tags == 8 => return Some((Family::None, at + 2)),
            VLAN | QINQ | QINQ_OLD => at += 4,
            _ => return None,
        }
    }
    None
}

fn is_discovery(ip: &[u8]) -> bool {
    ip.len() > 40 && ip[0] >> 4 == 6 && ip[6] == proto::ICMPV6 && ip[7] == 255 && (133..=137).contains(&ip[40])
}

/// All that must hold for any bytes.
fn judge(bytes: &[u8], link: Link) -> Result<(), TestCaseError> {
    let parsed = parse(bytes, link);
    let Some((family, l2_len)) = claimed(bytes, link) else {
        prop_assert_eq!(parsed, Parsed::Exempt, "what is not IP is free");
        return Ok(());
    };
    let ip = &bytes[l2_len..];
    let Parsed::Limited(facts) = parsed else {
        prop_assert!(family == Family::V6 && is_discovery(ip), "IP went free");
        return Ok(());
    };
    prop_assert_eq!(facts.l2_len as usize, l2_len);
    prop_assert!(facts.l2_len <= facts.l4_offset && facts.l4_offset < MAX_OFFSET);
    let readable = match family {
        Family::None => false,
        Family::V4 => ip.len() >= 20 && ip[0] >> 4 == 4 && ip[0] & 15 >= 5,
        Family::V6 => ip.len() >= 40 && ip[0] >> 4 == 6,
    };
    if !readable {
        let nobody = Facts { l2_len: facts.l2_len, l4_offset: facts.l2_len, ..Facts::default() };
        prop_assert_eq!(facts, nobody, "what cannot be read is one flow");
        return Ok(());
    }
    prop_assert_eq!(facts.family, family);
    // A port that was read is a port that the packet has.
    if (facts.sport, facts.dport) != (0, 0) {
        let upper = referee::upper(ip);
        prop_assert!(!facts.fragment);
        prop_assert_eq!(upper.map(|upper| upper.proto), Some(facts.proto));
        prop_assert_eq!(upper.map(|upper| upper.ports()), Some((facts.sport, facts.dport)), "{:?}", facts);
    }
    Ok(())
}

/// The reverse of a part of [`judge`]: a packet that has ports is charged under them, unless its chain is too long.
fn has_its_ports(bytes: &[u8], link: Link) -> Result<(), TestCaseError> {
    let (Some((Family::V4 | Family::V6, l2_len)), Parsed::Limited(facts)) = (claimed(bytes, link), parse(bytes, link))
    else {
        return Ok(());
    };
    let chain_too_long = [0, 43, 44, 51, 60, 135].contains(&facts.proto) && !facts.fragment;
    if facts.family != Family::None
        && !chain_too_long
        && let Some(upper) = referee::upper(&bytes[l2_len..])
    {
        prop_assert_eq!((facts.sport, facts.dport), upper.ports(), "{:?} {:?}", facts, upper);
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(regressions!("parser-hostile"), 3000))]

    #[test]
    fn a_damaged_frame_is_read_without_a_panic_or_a_forged_port(
        frame in frames(10, 10),
        damages in vec(damage(), 1..5),
    ) {
        let bytes = damaged(frame.bytes(), damages);
        for link in LINKS {
            judge(&bytes, link)?;
        }
        has_its_ports(&bytes, frame.link)?;
    }

    #[test]
    fn every_length_of_a_frame_is_read_without_a_panic_or_a_forged_port(frame in frames(3, 3)) {
        let bytes = frame.bytes();
        for len in 0..bytes.len().min(140) {
            judge(&bytes[..len], frame.link)?;
        }
    }

    #[test]
    fn any_bytes_behind_an_ethertype_are_read_without_a_panic_or_a_forged_port(
        ethertype in prop::sample::select(&[IPV4, IPV6, VLAN, QINQ]),
        payload in noise(200),
    ) {
        let bytes = [&[2; 12][..], &ethertype.to_be_bytes(), &payload].concat();
        for link in LINKS {
            judge(&bytes, link)?;
            judge(&payload, link)?;
        }
    }
}
