//! SipHash-1-3 against another implementation of it.

use std::hash::Hasher;

use proptest::prelude::*;
use shaper_common::siphash::SipKey;
use siphasher::sip::SipHasher13;

use crate::property::{config, regressions};

/// The hash of the first `len` bytes of `words`.
fn reference(key: SipKey, words: &[u64], len: usize) -> u64 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut hasher = SipHasher13::new_with_keys(key.k0, key.k1);
    hasher.write(&bytes[..len]);
    hasher.finish()
}

/// The key 00 01 .. 0f of the vectors that SipHash's authors publish.
const KEY: SipKey = SipKey { k0: 0x0706_0504_0302_0100, k1: 0x0f0e_0d0c_0b0a_0908 };
/// Their message 00 01 02 .., as words.
const MESSAGE: [u64; 5] =
    [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1716_1514_1312_1110, 0x1f1e_1d1c_1b1a_1918, 0x2726_2524_2322_2120];

#[test]
fn messages_of_the_lengths_of_keys_give_the_hashes_of_the_reference_code() {
    let [a, b, c, d, e] = MESSAGE;
    let five_bytes = |word| word & 0xff_ffff_ffff;
    // Entries 0, 5, 13 and 37 of its table.
    for (hash, bytes) in [
        (KEY.hash::<0, 0>(&[], 0), [0xdc, 0xc4, 0x0f, 0x05, 0x58, 0x01, 0xac, 0xab]),
        (KEY.hash::<0, 5>(&[], five_bytes(a)), [0x67, 0x3b, 0x53, 0x49, 0x2f, 0xd5, 0xf9, 0xde]),
        (KEY.hash::<1, 5>(&[a], five_bytes(b)), [0xa7, 0xff, 0x29, 0x12, 0x0c, 0x76, 0x6f, 0x30]),
        (KEY.hash::<4, 5>(&[a, b, c, d], five_bytes(e)), [0x57, 0x30, 0xc3, 0xa3, 0x2d, 0x1c, 0x10, 0xb6]),
    ] {
        assert_eq!(hash.to_le_bytes(), bytes);
    }
}

#[test]
fn a_tail_of_any_length_is_hashed_as_its_bytes() {
    let [a, b, ..] = MESSAGE;
    let tail = |bytes: u32| b & ((1 << (8 * bytes)) - 1);
    let hashes = [
        KEY.hash::<1, 0>(&[a], tail(0)),
        KEY.hash::<1, 1>(&[a], tail(1)),
        KEY.hash::<1, 2>(&[a], tail(2)),
        KEY.hash::<1, 3>(&[a], tail(3)),
        KEY.hash::<1, 4>(&[a], tail(4)),
        KEY.hash::<1, 5>(&[a], tail(5)),
        KEY.hash::<1, 6>(&[a], tail(6)),
        KEY.hash::<1, 7>(&[a], tail(7)),
    ];
    for (bytes, hash) in hashes.into_iter().enumerate() {
        assert_eq!(hash, reference(KEY, &MESSAGE, 8 + bytes), "{bytes} bytes of tail");
    }
}

proptest! {
    #![proptest_config(config(regressions!("siphash"), 1000))]

    #[test]
    fn it_is_siphash_1_3_for_any_key_and_message(k0: u64, k1: u64, words: [u64; 5]) {
        let key = SipKey { k0, k1 };
        let [a, b, c, d, e] = words;
        let tail = |word: u64| word & 0xff_ffff_ffff;
        prop_assert_eq!(key.hash::<4, 5>(&[a, b, c, d], tail(e)), reference(key, &words, 37));
        prop_assert_eq!(key.hash::<1, 5>(&[a], tail(b)), reference(key, &words, 13));
        prop_assert_eq!(key.hash::<0, 5>(&[], tail(a)), reference(key, &words, 5));
        prop_assert_eq!(key.hash::<5, 0>(&words, 0), reference(key, &words, 40));
    }
}
