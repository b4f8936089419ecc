//! The packets that are kept: each is read and charged as its file says, and so is what is left of it at every length.

use std::{collections::BTreeSet, fs, path::Path};

use shaper_common::{
    abi::Settings,
    bucket::Limit,
    cost::Cost,
    key::{Family, Key},
    packet::{Facts, Link, Parsed, parse},
};
use tests::{
    corpus::{Charge, describe, samples},
    model::plane::HostPlane,
};

#[test]
fn every_packet_of_the_corpus_is_read_as_its_file_says() {
    for sample in samples() {
        let parsed = parse(&sample.bytes[..], sample.link);
        assert_eq!(describe(&parsed), sample.expect, "{}", sample.name);
    }
}

#[test]
fn every_packet_of_the_corpus_is_charged_as_its_file_says() {
    for sample in samples() {
        let name = sample.name;
        let settings = Settings { link: sample.link as u8, prefix_v4: 32, prefix_v6: 128, ..Settings::default() };
        let mut plane = HostPlane::new(settings, Limit::new(8, sample.cost, 0), 0);
        for answer in sample.charge.answers() {
            let outcome = plane.run(&sample.bytes[..]);
            assert_eq!((outcome.verdict, outcome.reason), answer, "{name}");
            assert_eq!(outcome.cost, Cost { bytes: sample.cost, packets: 1 }, "{name}");
        }
        let flows: Vec<(Key, u64, u64)> = sample.key().into_iter().map(|key| (key, 1, 2)).collect();
        assert_eq!(plane.tracked(), flows, "{name}");
    }
}

#[test]
fn every_beginning_of_a_limited_packet_is_read_as_far_as_it_goes() {
    for sample in samples() {
        let Parsed::Limited(whole) = parse(&sample.bytes[..], sample.link) else { continue };
        for len in 0..=sample.bytes.len() {
            let parsed = parse(&sample.bytes[..len], sample.link);
            assert!(may_begin(&whole, len as u32, &parsed), "{len} bytes of {}: {}", sample.name, describe(&parsed));
        }
    }
}

/// Whether this may be said of the first `len` bytes of a packet of which `whole` is said.
fn may_begin(whole: &Facts, len: u32, parsed: &Parsed) -> bool {
    // Before there is an ethertype, or on a link without header a first byte, nothing claims to be IP.
    let &Parsed::Limited(facts) = parsed else { return len < whole.l2_len.max(1) };
    let header_len = match whole.family {
        Family::None => u32::MAX,
        Family::V4 => 20,
        Family::V6 => 40,
    };
    if len < whole.l2_len.max(1) {
        false
    } else if len < header_len.saturating_add(whole.l2_len) {
        facts == Facts { l2_len: whole.l2_len, l4_offset: whole.l2_len, ..Facts::default() }
    } else if len < whole.l4_offset + 4 {
        // The walk ends earlier, and there are no ports yet.
        let Facts { src, dst, family, l2_len, .. } = *whole;
        facts.l4_offset <= whole.l4_offset && facts == Facts { src, dst, family, l2_len, sport: 0, dport: 0, ..facts }
    } else {
        facts == *whole
    }
}

#[test]
fn the_beginning_of_an_exempt_packet_is_limited_while_it_may_be_any_ip() {
    for sample in samples().into_iter().filter(|sample| sample.charge == Charge::Exempt) {
        let is_limited = |len: &usize| parse(&sample.bytes[..*len], sample.link) != Parsed::Exempt;
        let limited: Vec<usize> = (0..=sample.bytes.len()).filter(is_limited).collect();
        // From the ethertype of IPv6 to the type of the ICMPv6 message.
        if let Some(&first) = limited.first() {
            let l2_len = if sample.link == Link::Bare { 0 } else { first };
            assert_eq!(limited, (first..=l2_len + 40).collect::<Vec<_>>(), "{}", sample.name);
        }
    }
}

#[test]
fn every_file_of_the_corpus_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let files = fs::read_dir(folder).expect("the folder is beside the tests").map(|entry| {
        let name = entry.expect("a readable folder").file_name();
        name.into_string().expect("a name in plain letters")
    });
    let listed = samples().into_iter().map(|sample| format!("{}.packet", sample.name));
    assert_eq!(files.collect::<BTreeSet<_>>(), listed.collect::<BTreeSet<_>>());
}
