//! Who shares a bucket: prefixes bit by bit, stored keys that can be read back, tags that differ where keys do.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr},
};

use proptest::prelude::*;
use shaper_common::{
    key::{Family, Key, Per, Prefix},
    packet::Facts,
    siphash::SipKey,
    table,
};
use tests::frames::{v4, v6};

use crate::property::{config, regressions};

const ALL: [Per; 5] = [Per::Flow, Per::Src, Per::Dst, Per::Pair, Per::Dev];
const WHOLE: Prefix = Prefix { v4: 32, v6: 128 };

fn facts_v4(src: u32, dst: u32) -> Facts {
    let [src, dst] = [src, dst].map(|bits| v4(Ipv4Addr::from_bits(bits)));
    Facts { src, dst, sport: 1000, dport: 53, proto: 17, family: Family::V4, ..Facts::default() }
}

fn facts_v6(src: u128, dst: u128) -> Facts {
    let [src, dst] = [src, dst].map(|bits| v6(Ipv6Addr::from_bits(bits)));
    Facts { src, dst, sport: 1000, dport: 53, proto: 17, family: Family::V6, ..Facts::default() }
}

#[test]
fn each_kind_keeps_what_its_name_says() {
    let facts = facts_v4(0xc000_0201, 0xc633_6402);
    let Facts { src, dst, sport, dport, proto, family, .. } = facts;
    let nothing = Key::default();
    for (per, expected) in [
        (Per::Flow, Key { src, dst, sport, dport, proto, family }),
        (Per::Src, Key { src, family, ..nothing }),
        (Per::Dst, Key { dst, family, ..nothing }),
        (Per::Pair, Key { src, dst, family, ..nothing }),
        (Per::Dev, nothing),
    ] {
        assert_eq!(Key::new(&facts, per, WHOLE), expected, "{per:?}");
    }
}

#[test]
fn every_kind_has_the_number_by_which_it_is_read_back() {
    for (number, per) in ALL.into_iter().enumerate() {
        assert_eq!(Per::from_u8(number as u8), Some(per));
        assert_eq!(per as usize, number);
    }
    assert!((5..=255).all(|number| Per::from_u8(number).is_none()));
}

#[test]
fn a_prefix_keeps_its_leading_bits_and_no_other() {
    for bits in 0..=32_u8 {
        let kept = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
        let key = Key::new(&facts_v4(u32::MAX, u32::MAX), Per::Src, Prefix { v4: bits, v6: 0 });
        assert_eq!(key.src, v4(Ipv4Addr::from_bits(kept)), "/{bits}");
        let key = Key::new(&facts_v4(u32::MAX, u32::MAX), Per::Dst, Prefix { v4: bits, v6: 0 });
        assert_eq!(key.dst, v4(Ipv4Addr::from_bits(kept)), "/{bits}");
    }
    for bits in 0..=128_u8 {
        let kept = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
        let key = Key::new(&facts_v6(u128::MAX, u128::MAX), Per::Src, Prefix { v4: 0, v6: bits });
        assert_eq!(key.src, v6(Ipv6Addr::from_bits(kept)), "/{bits}");
        let key = Key::new(&facts_v6(u128::MAX, u128::MAX), Per::Dst, Prefix { v4: 0, v6: bits });
        assert_eq!(key.dst, v6(Ipv6Addr::from_bits(kept)), "/{bits}");
    }
}

#[test]
fn an_ipv4_mapped_address_is_not_the_ipv4_address() {
    let mapped = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().to_bits();
    let secret = SipKey { k0: 1, k1: 2 };
    for per in [Per::Flow, Per::Src, Per::Dst, Per::Pair] {
        let keys = [facts_v4(0xc000_0201, 0xc000_0201), facts_v6(mapped, mapped)];
        let [ours, theirs] = keys.map(|facts| Key::new(&facts, per, WHOLE));
        assert_ne!(ours, theirs);
        assert_ne!(ours.tag(&secret), theirs.tag(&secret));
    }
}

#[test]
fn one_bit_of_any_part_of_a_key_makes_another_tag() {
    let secret = SipKey { k0: 3, k1: 5 };
    let mut seen = HashMap::new();
    let mut count = 0;
    for family in [Family::V4, Family::V6] {
        let base = Key { family, ..Key::default() };
        let bits = if family == Family::V4 { 32 } else { 128 };
        let word = |bit: u32| {
            let mut address = [0; 2];
            address[bit as usize / 64] = 1 << (bit % 64);
            address
        };
        let keys = std::iter::once(base)
            .chain((0..bits).map(|bit| Key { src: word(bit), ..base }))
            .chain((0..bits).map(|bit| Key { dst: word(bit), ..base }))
            .chain((0..16).map(|bit| Key { sport: 1 << bit, ..base }))
            .chain((0..16).map(|bit| Key { dport: 1 << bit, ..base }))
            .chain((0..8).map(|bit| Key { proto: 1 << bit, ..base }));
        for key in keys {
            count += 1;
            assert_eq!(seen.insert(key.tag(&secret), key), None, "{key:?}");
        }
    }
    assert_eq!(count, 2 + 2 * (32 + 128) + 2 * 40);
    assert!(!seen.contains_key(&table::EMPTY));
}

proptest! {
    #![proptest_config(config(regressions!("key"), 1000))]

    #[test]
    fn a_stored_key_reads_back(
        src: [u64; 2],
        dst: [u64; 2],
        sport: u16,
        dport: u16,
        proto: u8,
        family in prop::sample::select(&[Family::None, Family::V4, Family::V6]),
    ) {
        let key = Key { src, dst, sport, dport, proto, family };
        prop_assert_eq!(Key::decode(&key.encode()), Some(key));
    }

    #[test]
    fn words_that_no_key_is_stored_as_are_not_read(words: [u64; 5]) {
        if let Some(key) = Key::decode(&words) {
            prop_assert_eq!(key.encode(), words);
        }
        let [a, b, c, d, rest] = words;
        let known = [0, 4, 6].contains(&(rest >> 40));
        prop_assert_eq!(Key::decode(&[a, b, c, d, rest]).is_some(), known);
        for family in [1, 2, 3, 5, 7] {
            prop_assert_eq!(Key::decode(&[a, b, c, d, rest & 0xff_ffff_ffff | family << 40]), None);
        }
    }
}
