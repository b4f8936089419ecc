//! SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012).
//!
//! Keyed with a random secret per attachment, so that nobody can choose addresses that meet in one set.

/// The secret of one attachment.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SipKey {
    /// First half.
    pub k0: u64,
    /// Second half.
    pub k1: u64,
}

struct State {
    v0: u64,
    v1: u64,
    v2: u64,
    v3: u64,
}

impl State {
    #[inline(always)]
    const fn round(mut self) -> Self {
        self.v0 = self.v0.wrapping_add(self.v1);
        self.v2 = self.v2.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(13) ^ self.v0;
        self.v3 = self.v3.rotate_left(16) ^ self.v2;
        self.v0 = self.v0.rotate_left(32);
        self.v2 = self.v2.wrapping_add(self.v1);
        self.v0 = self.v0.wrapping_add(self.v3);
        self.v1 = self.v1.rotate_left(17) ^ self.v2;
        self.v3 = self.v3.rotate_left(21) ^ self.v0;
        self.v2 = self.v2.rotate_left(32);
        self
    }

    #[inline(always)]
    const fn absorb(mut self, word: u64) -> Self {
        self.v3 ^= word;
        self = self.round();
        self.v0 ^= word;
        self
    }
}

impl SipKey {
    /// The hash of a byte string: `words`, each as its eight little-endian bytes, then the low `TAIL` (at most 7) bytes
    /// of `tail`, whose other bytes must be zero.
    #[inline(always)]
    #[must_use]
    pub const fn hash<const WORDS: usize, const TAIL: usize>(&self, words: &[u64; WORDS], tail: u64) -> u64 {
        const { assert!(TAIL < 8) };
        let mut state = State {
            v0: self.k0 ^ 0x736f_6d65_7073_6575,
            v1: self.k1 ^ 0x646f_7261_6e64_6f6d,
            v2: self.k0 ^ 0x6c79_6765_6e65_7261,
            v3: self.k1 ^ 0x7465_6462_7974_6573,
        };
        let mut i = 0;
        while i < WORDS {
            state = state.absorb(words[i]);
            i += 1;
        }
        state = state.absorb(tail | ((WORDS * 8 + TAIL) as u64) << 56);
        state.v2 ^= 0xff;
        state = state.round().round().round();
        state.v0 ^ state.v1 ^ state.v2 ^ state.v3
    }
}
