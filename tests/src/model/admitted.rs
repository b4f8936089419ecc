//! What a sender got, and by how much that was more than it was promised.

use super::exact;

/// Packets that were admitted, with the time at which each was.
#[derive(Clone, Debug, Default)]
pub struct Admitted {
    packets: Vec<(u64, u64)>,
}

impl Admitted {
    /// A packet of `bytes` bytes was admitted at `time` nanoseconds; times may come in any order.
    pub fn push(&mut self, time: u64, bytes: u64) {
        self.packets.push((time, bytes));
    }

    /// All of them, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.packets.iter().map(|&(_, bytes)| bytes).sum()
    }

    /// The most that the bytes of any window exceed `burst + rate * window`, in nanobits; negative if none does.
    ///
    /// A window is closed: it holds every packet of its first and of its last nanosecond.
    #[must_use]
    pub fn excess(&self, bits_per_second: u64, burst: u64) -> i128 {
        let mut packets = self.packets.clone();
        packets.sort_by_key(|&(time, _)| time);
        let signed = |nanobits: u128| i128::try_from(nanobits).expect("2^64 bytes are 2^97 nanobits");
        let earned = |time: u64| signed(exact::sent(bits_per_second, time));
        let mut before = 0;
        let mut best_start = i128::MIN;
        let mut worst = i128::MIN;
        for (time, bytes) in packets {
            best_start = best_start.max(earned(time) - before);
            before += signed(exact::bytes(bytes));
            worst = worst.max(before - earned(time) + best_start);
        }
        if worst == i128::MIN { worst } else { worst - signed(exact::bytes(burst)) }
    }
}
