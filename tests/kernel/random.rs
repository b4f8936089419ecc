//! Random bytes and damaged packets, by the hundred thousand: the kernel never disagrees with the host.

use shaper_common::{
    abi::{RuleLimits, Settings, feature, program},
    packet::Link,
    verdict::Action,
};
use tests::frames::{Extension, Frame, Ipv4, Ipv6, Network, Upper};

use crate::{
    rig::{Rig, settings, standing},
    skb::Skb,
};

/// Frames of each kind.
const FRAMES: u32 = 20_000;
/// Longest frame; a test run keeps at most a page of it in one piece.
const LONGEST: usize = 1600;

/// A rate alone, which has a way of its own in the object, and several limits.
const FEATURES: [u8; 6] = [
    feature::RATE,
    feature::RATE,
    feature::PPS,
    feature::RATE | feature::ACTION,
    feature::RATE | feature::PEAK | feature::ACTION,
    feature::RATE | feature::PEAK | feature::PPS | feature::DEVICE_TOTAL | feature::ACTION,
];

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016): the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    fn word(&mut self) -> u16 {
        (self.next() >> 32) as u16
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn upper(&mut self) -> Upper {
        match self.below(4) {
            0 => Upper::udp(self.word(), self.word(), self.below(600)),
            1 => Upper::tcp(self.word(), self.word(), self.below(11) as u8, self.below(600)),
            2 => Upper::ports(self.pick(&[33, 132, 136]), self.word(), self.word(), self.below(100)),
            _ => {
                let len = self.below(100);
                Upper::new(self.byte(), self.bytes(len))
            }
        }
    }

    fn extension(&mut self) -> Extension {
        match self.below(8) {
            0 => Extension::Fragment(self.word()),
            1 => Extension::Fragment(0),
            2 => Extension::Auth(self.below(5) as u8),
            _ => Extension::Sized(self.pick(&[0, 43, 60, 135]), self.below(4) as u8),
        }
    }

    fn network(&mut self) -> Network {
        match self.below(10) {
            0 => Network::Other(self.word(), vec![0; 46]),
            1..=4 => Network::V4(Ipv4 {
                src: (self.next() as u32).into(),
                dst: (self.next() as u32).into(),
                options: if self.chance(3) { self.below(11) as u8 } else { 0 },
                fragment: if self.chance(4) { self.word() } else { 0x4000 },
                upper: self.upper(),
            }),
            _ => Network::V6(Ipv6 {
                src: u128::from(self.next()).into(),
                dst: (u128::from(self.next()) << 64).into(),
                hop_limit: self.pick(&[255, 64]),
                extensions: (0..self.pick(&[0, 0, 1, 2, 3, 8, 9])).map(|_| self.extension()).collect(),
                upper: if self.chance(4) { Upper::icmpv6(130 + self.below(10) as u8, 16) } else { self.upper() },
            }),
        }
    }

    pub(crate) fn frame(&mut self, link: Link) -> Vec<u8> {
        let network = self.network();
        let tags: Vec<u16> = match link {
            Link::Ethernet => {
                (0..self.pick(&[0, 0, 0, 1, 2, 3, 8, 9])).map(|_| self.pick(&[0x8100, 0x88a8, 0x9100])).collect()
            }
            Link::Bare => Vec::new(),
        };
        Frame { link, tags, network, trailer: self.pick(&[0, 0, 7, 40]) }.bytes()
    }

    /// Some bytes changed, or the end cut off.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.pick(&[0, 0, 1, 2, 5]) {
            let at = self.below(bytes.len());
            bytes[at] = self.byte();
        }
        if self.chance(3) {
            let len = self.below(bytes.len() + 1);
            bytes.truncate(len);
        }
    }

    fn rig(&mut self, egress: bool, link: Link, burst: u64) -> Rig {
        let settings = Settings {
            per: self.below(5) as u8,
            overflow: self.below(3) as u8,
            prefix_v4: 1 + self.below(32) as u8,
            prefix_v6: 1 + self.below(128) as u8,
            account: self.below(2) as u8,
            overhead: self.pick(&[0, 24, -14]),
            mpu: self.pick(&[0, 84]),
            link: link as u8,
            features: self.pick(&FEATURES),
            ..settings(1 << 12)
        };
        let limits = RuleLimits {
            rate: standing(burst),
            peak: standing(burst + burst / 2),
            pps: standing(1 + burst / 500),
            device_total: standing(4 * burst.min(1 << 38)),
            exceed: self.action().into(),
            violate: self.action().into(),
            ..RuleLimits::default()
        };
        Rig::new(if egress { program::TC_EGRESS } else { program::TC_INGRESS }, settings, limits)
    }

    pub(crate) fn action(&mut self) -> Action {
        self.pick(&[Action::Drop, Action::Pass, Action::Dscp(8), Action::Ecn, Action::Mark(7)])
    }

    /// Perhaps offload, as no well-meaning kernel would describe it.
    pub(crate) fn skb(&mut self, mut bytes: Vec<u8>) -> Skb {
        bytes.truncate(LONGEST);
        let mut skb = Skb::plain(&bytes).acceptable();
        if self.chance(5) {
            skb.gso_size = self.pick(&[1, 8, 100, 536, 1448]);
            skb.gso_segs = self.pick(&[0, 1, 2, 7, 45]);
            skb.wire_len = skb.bytes.len() as u32 + self.below(1000) as u32;
        }
        skb
    }
}

/// Sends packets that `make` draws to rigs of both programs, in rounds with settings drawn anew.
fn agree(seed: u64, link: Link, mut make: impl FnMut(&mut Random) -> Vec<u8>) {
    const ROUNDS: u32 = 20;
    let mut random = Random(seed);
    for round in 0..ROUNDS {
        // Never dropped, or soon.
        let burst = if round % 4 < 2 { 1 << 40 } else { 2_000_000 };
        let mut rig = random.rig(round % 2 == 0, link, burst);
        for _ in 0..FRAMES / ROUNDS {
            let bytes = make(&mut random);
            let _outcome = rig.run(&random.skb(bytes));
        }
        rig.assert_same_tables();
    }
}

#[test]
fn valid_packets() {
    agree(1, Link::Ethernet, |random| random.frame(Link::Ethernet));
    agree(2, Link::Bare, |random| random.frame(Link::Bare));
}

#[test]
fn damaged_packets() {
    for (seed, link) in [(3, Link::Ethernet), (4, Link::Bare)] {
        agree(seed, link, |random| {
            let mut bytes = random.frame(link);
            random.damage(&mut bytes);
            bytes
        });
    }
}

#[test]
fn bytes_that_are_no_packet() {
    for (seed, link) in [(5, Link::Ethernet), (6, Link::Bare)] {
        agree(seed, link, |random| {
            let len = random.below(LONGEST);
            let mut bytes = random.bytes(len);
            // Often enough to get past the first look.
            if bytes.len() > 20 && random.chance(2) {
                let start = if link == Link::Ethernet { 14 } else { 0 };
                let (ethertype, first) = random.pick(&[(0x0800_u16, 0x45), (0x0800, 0x4f), (0x86dd, 0x60)]);
                bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
                bytes[start] = first;
            }
            bytes
        });
    }
}
