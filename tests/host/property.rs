//! How property tests run here, and the numbers they draw.

use std::ops::RangeInclusive;

use proptest::{
    prelude::*,
    test_runner::{FileFailurePersistence, RngSeed},
};
use tests::model::exact;

/// The folder of the cases that once failed; they are run before all others.
macro_rules! regressions {
    ($module:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/host/proptest-regressions/", $module, ".txt")
    };
}
pub(crate) use regressions;

/// Every run draws the same cases. `PROPTEST_RNG_SEED` draws others, `PROPTEST_CASES` another number of them.
pub(crate) fn config(regressions: &'static str, cases: u32) -> ProptestConfig {
    let from_environment = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { from_environment.cases } else { cases },
        rng_seed: match from_environment.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0x7368_6170_6572),
            fixed @ RngSeed::Fixed(_) => fixed,
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..from_environment
    }
}

/// Whole numbers of every magnitude in `range` alike.
pub(crate) fn magnitudes(range: RangeInclusive<u64>) -> impl Strategy<Value = u64> + Clone {
    let (low, high) = range.into_inner();
    let magnitude = low.checked_ilog2().unwrap_or(0)..=high.ilog2();
    let near =
        move |(magnitude, fraction): (u32, u64)| (1 << magnitude | fraction & ((1 << magnitude) - 1)).clamp(low, high);
    prop_oneof![1 => Just(low), 1 => Just(high), 30 => (magnitude, any::<u64>()).prop_map(near)]
}

/// Rates in bits per second: round ones, odd ones, and any.
pub(crate) fn rates() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![
        1 => prop::sample::select(ROUND_AND_ODD_RATES),
        3 => magnitudes(exact::RATES),
    ]
}

/// Powers of ten, and rates at which something could be cut off: primes, and neighbours of powers of two.
pub(crate) const ROUND_AND_ODD_RATES: &[u64] = &[
    8,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
    100_000_000_000,
    1_000_000_000_000,
    9,
    56_000,
    64_007,
    1_544_000,
    333_333_333,
    (1 << 32) - 1,
    1 << 32,
    (1 << 32) + 1,
    34_359_738_369,
    999_999_999_989,
];

/// Bursts in bytes.
pub(crate) fn bursts() -> impl Strategy<Value = u64> + Clone {
    magnitudes(1..=1 << 40)
}

/// Sizes of packets in bytes.
pub(crate) fn sizes() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(60), Just(1514), Just(65_535), 60..=65_535_u64]
}
