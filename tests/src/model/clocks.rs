//! One clock for all ways of a table.

use shaper_common::{
    bucket::debt,
    table::{Clocks, MoreBuckets},
};

/// The reading of the clock of every bucket word; there are no other buckets, and ways have no stamp.
#[derive(Clone, Copy, Debug)]
pub struct OneClock(pub u64);

impl Clocks for OneClock {
    fn full_for(&self, _: u64, full_at: u64, _: &MoreBuckets) -> Option<u64> {
        (debt(full_at, self.0) == 0).then(|| self.0.wrapping_sub(full_at))
    }

    fn full(&self) -> u64 {
        self.0
    }

    fn stamp(&self) -> Option<u64> {
        None
    }
}
