//! Random rules, random packets that meet them, and random changes of the rules meanwhile: the kernel never disagrees
//! with the host.

use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use shaper_cli::{
    compile::key_decides,
    model::{Direction, Limits, Match, Net, Per, PortRange, Ports, Rule, Side},
};
use shaper_common::{
    abi::{Keying, RuleLimits, Settings, feature, program},
    bucket::Limit,
    packet::Link,
    verdict::{Reason, Verdict},
};
use tests::{
    frames::{DONT_FRAGMENT, Extension, Frame, Ipv4, Ipv6, Network, Upper},
    model::rules::{RuleBook, Ruled},
};

use crate::{
    random::Random,
    rig::{Rig, Room, settings, still},
};

/// Rigs of each keying and direction, changes of rules in each, and packets between two of these.
const ROUNDS: u64 = 12;
const CHANGES: u32 = 16;
const PACKETS: u32 = 60;
/// Most rules, and the places they may be in: some are empty, so that a rule may come where another has been, or not.
const RULES: usize = 6;
const SLOTS: usize = 9;
const ROOM: Room = Room { rules: SLOTS as u32 + 1, boundaries: 256, links: 256 };

const ANY_RULE: u8 = feature::RATE | feature::PEAK | feature::PPS | feature::TOTAL | feature::ACTION;
/// Keys of an attachment whose key decides about the rule; there are rules for which each of them does.
const DECIDING: [&str; 6] = ["flow", "flow", "flow", "pair", "src/24,64", "dst"];
const KEYS: [&str; 7] = ["flow", "src", "dst", "src/16,32", "dst/30,127", "pair", "dev"];

/// A rule as long as it is there.
#[derive(Clone)]
struct Held {
    slot: usize,
    matches: Match,
}

/// What is in force, and what is remembered besides.
struct World {
    random: Random,
    direction: Direction,
    keying: Keying,
    per: Per,
    rules: Vec<Held>,
    /// By slot, also of rules that are gone.
    limits: Vec<RuleLimits>,
    next_id: u32,
}

impl World {
    fn new(seed: u64, direction: Direction, keying: Keying) -> Self {
        let mut random = Random(seed);
        let keys: &[&str] = if keying == Keying::Cached { &DECIDING } else { &KEYS };
        let per = random.pick(keys).parse().unwrap();
        let limits = vec![RuleLimits::default(); SLOTS + 1];
        let mut world = Self { random, direction, keying, per, rules: Vec::new(), limits, next_id: 1 };
        world.limit(0, true);
        world.limits[0].device_total = still(7 << 41, world.random.pick(&[1 << 40, 30_000]));
        world
    }

    fn settings(&mut self) -> Settings {
        let device = if self.random.chance(2) { feature::DEVICE_TOTAL } else { 0 };
        self.limits[0].features |= device;
        Settings {
            keying: self.keying as u8,
            features: ANY_RULE | device,
            per: self.per.kind as u8,
            prefix_v4: self.per.prefix.v4,
            prefix_v6: self.per.prefix.v6,
            overflow: self.random.below(3) as u8,
            shared_counters: self.random.below(2) as u8,
            shard_mask: self.random.pick(&[0, 1, 7]),
            ..settings(self.random.pick(&[1, 2, 32]))
        }
    }

    fn address(&mut self, v6: bool) -> IpAddr {
        let (site, net, host) = (self.random.below(2) as u8, self.random.below(2) as u8, self.random.below(4) as u8);
        if v6 {
            Ipv6Addr::new(0x2001, 0xdb8, site.into(), net.into(), 0, 0, 0, host.into()).into()
        } else {
            Ipv4Addr::new(10, site, net, host).into()
        }
    }

    fn ports(&mut self) -> Ports {
        let mut range = || {
            let first = 1 + self.random.below(4) as u16;
            PortRange { first, last: first + self.random.below(2) as u16 }
        };
        let (sport, dport) = (range(), range());
        match self.random.below(8) {
            0 => Ports::Either(sport),
            1 => Ports::Source(sport),
            2 => Ports::Destination(dport),
            3 => Ports::Both { sport, dport },
            _ => Ports::Any,
        }
    }

    fn matches(&mut self) -> Match {
        let nets = (0..self.random.below(4)).map(|_| {
            let v6 = self.random.chance(2);
            let lengths: &[u8] = if v6 { &[0, 32, 48, 64, 126, 128] } else { &[0, 8, 16, 24, 30, 31, 32] };
            let len = self.random.pick(lengths);
            Net::around(self.address(v6), len)
        });
        Match {
            nets: nets.collect(),
            side: self.random.pick(&[Side::Remote, Side::Remote, Side::Local]),
            proto: self.random.pick(&[None, None, None, Some(17), Some(6), Some(1)]),
            ports: self.ports(),
        }
    }

    /// A match about which the attachment's key decides, if that is the way to find rules.
    fn fitting_matches(&mut self) -> Match {
        for _ in 0..100 {
            let matches = self.matches();
            let rule = Rule { name: String::new(), matches, per: None, limits: Limits::default() };
            let rules = [rule];
            if self.keying == Keying::ByRule || key_decides(&rules, self.per, self.direction) {
                let [Rule { matches, .. }] = rules;
                return matches;
            }
        }
        Match::default()
    }

    /// Draws the limits of a slot anew. Those of the same rule keep levels, those of another go on as the tool has it.
    fn limit(&mut self, slot: usize, same: bool) {
        let old = self.limits[slot];
        let random = &mut self.random;
        let mut features = match random.below(12) {
            0 => 0,
            1 => feature::BLOCK,
            2..=5 => feature::RATE,
            _ => random.below(128) as u8 & ANY_RULE,
        };
        if slot == 0 {
            features = features & !feature::TOTAL | old.features & feature::DEVICE_TOTAL;
        }
        if features & feature::PEAK != 0 {
            features |= feature::RATE;
        }
        let mut of = |bit, old: Limit, least: u64, more: usize| {
            let burst = least + random.below(more) as u64;
            let ahead = random.below(6000) as u64 + (random.pick(&[0, 0, 1, 3]) << random.pick(&[20, 34, 41, 45]));
            match (features & bit != 0, old == Limit::default()) {
                (false, _) => old,
                (true, true) => still(ahead, burst),
                (true, false) => {
                    let mut clock = old.clock;
                    if same {
                        clock.v0 = clock.v0.wrapping_add(old.burst).wrapping_sub(burst);
                    }
                    Limit { clock, burst }
                }
            }
        };
        let rate = of(feature::RATE, old.rate, 300, 4000);
        let peak = of(feature::PEAK, old.peak, 1000, 8000);
        let pps = of(feature::PPS, old.pps, 1, 12);
        let total = of(feature::TOTAL, old.total, 2000, 9000);
        let acts = features & feature::ACTION != 0;
        let [exceed, violate] = [0, 1].map(|_| if acts { self.random.action().into() } else { old.exceed });
        let per = if self.keying == Keying::ByRule { self.random.pick(&KEYS).parse().unwrap() } else { self.per };
        self.limits[slot] = RuleLimits {
            rate,
            peak,
            pps,
            total,
            exceed,
            violate,
            features,
            per: per.kind as u8,
            prefix_v4: per.prefix.v4,
            prefix_v6: per.prefix.v6,
            ..old
        };
    }

    /// As if time had passed: every clock has counted something.
    fn wait(&mut self) {
        for limits in &mut self.limits {
            let bytes = self.random.below(5000) as u64;
            for limit in [&mut limits.rate, &mut limits.peak, &mut limits.total, &mut limits.device_total] {
                limit.clock.v0 = limit.clock.v0.wrapping_add(bytes);
            }
            limits.pps.clock.v0 = limits.pps.clock.v0.wrapping_add(self.random.below(8) as u64);
        }
    }

    /// Rules go, change and come. Returns the slots of new ones.
    fn change(&mut self) -> Vec<usize> {
        let random = &mut self.random;
        self.rules.retain(|_| !random.chance(4));
        if self.random.chance(4) {
            self.limit(0, true);
        }
        for at in 0..self.rules.len() {
            if self.random.chance(3) {
                self.limit(self.rules[at].slot, true);
            }
            if self.random.chance(5) {
                self.rules[at].matches = self.fitting_matches();
            }
        }
        let mut new = Vec::new();
        let wanted = self.random.below(RULES + 1);
        while self.rules.len() < wanted {
            let slot = 1 + self.random.below(SLOTS);
            if self.rules.iter().any(|rule| rule.slot == slot) {
                continue;
            }
            self.limit(slot, false);
            self.limits[slot].id = self.next_id;
            self.next_id += 1;
            let matches = self.fitting_matches();
            self.rules.push(Held { slot, matches });
            new.push(slot);
        }
        new
    }

    fn book(&self) -> RuleBook {
        let ruled = |rule: &Held| Ruled {
            slot: rule.slot as u32,
            matches: rule.matches.clone(),
            limits: self.limits[rule.slot],
        };
        let rules: Vec<Ruled> = self.rules.iter().map(ruled).collect();
        let all = RuleBook { limits: self.limits.clone(), ..RuleBook::default() };
        all.followed_by(self.limits[0], &rules, self.direction)
    }

    /// A packet between addresses and ports that rules name.
    fn packet(&mut self) -> Vec<u8> {
        let v6 = self.random.chance(3);
        let (src, dst) = (self.address(v6), self.address(v6));
        let (sport, dport) = (1 + self.random.below(5) as u16, 1 + self.random.below(5) as u16);
        let payload = self.random.below(400);
        let upper = match self.random.below(6) {
            0 | 1 => Upper::udp(sport, dport, payload),
            2 | 3 => Upper::tcp(sport, dport, 0, payload),
            4 => Upper::ports(132, sport, dport, 8 + payload),
            _ => Upper::new(1, vec![0; 8 + payload]),
        };
        let fragment = self.random.chance(6);
        let network = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let fragment = if fragment { 1 } else { DONT_FRAGMENT };
                Network::V4(Ipv4 { src, dst, fragment, ..Ipv4::new(upper) })
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let extensions = if fragment { vec![Extension::Fragment(8)] } else { Vec::new() };
                Network::V6(Ipv6 { src, dst, extensions, ..Ipv6::new(upper) })
            }
            _ => unreachable!("both are of one version"),
        };
        if self.random.chance(30) { self.random.frame(Link::Ethernet) } else { Frame::ethernet(network).bytes() }
    }
}

/// What has been seen, so that a test knows that it has tested something.
#[derive(Default)]
struct Seen {
    reasons: BTreeSet<usize>,
    rules: BTreeSet<u32>,
    dropped: u32,
    passed: u32,
}

fn agree(keying: Keying) {
    let mut seen = Seen::default();
    for round in 0..2 * ROUNDS {
        let direction = Direction::ALL[round as usize % 2];
        let mut world = World::new(0x9e37_79b9 + round + 100 * keying as u64, direction, keying);
        let settings = world.settings();
        let name = if direction == Direction::Ingress { program::TC_INGRESS } else { program::TC_EGRESS };
        world.change();
        let mut rig = Rig::with_room(name, settings, &world.book(), ROOM);
        for _ in 0..CHANGES {
            // A few flows, so that they meet one rule after another.
            let packets: Vec<_> = (0..12).map(|_| world.packet()).collect();
            for _ in 0..PACKETS {
                let bytes =
                    if world.random.chance(5) { world.packet() } else { packets[world.random.below(12)].clone() };
                let outcome = rig.run(&world.random.skb(bytes));
                seen.reasons.insert(outcome.reason as usize);
                seen.rules.insert(outcome.rule);
                let passed = outcome.verdict == Verdict::Pass;
                *(if passed { &mut seen.passed } else { &mut seen.dropped }) += 1;
            }
            rig.assert_same();
            world.wait();
            world.change().into_iter().for_each(|slot| rig.renew(slot as u32));
            rig.switch(&world.book());
        }
    }
    let unseen: Vec<_> = Reason::ALL.iter().filter(|reason| !seen.reasons.contains(&(**reason as usize))).collect();
    assert_eq!(unseen, [&Reason::Delay], "nothing is delayed, and everything else happens");
    assert_eq!(seen.rules.len(), SLOTS + 1);
    assert!(seen.passed > 1000 && seen.dropped > 1000, "{} passed and {} not", seen.passed, seen.dropped);
}

#[test]
fn flows_that_remember_their_rules() {
    agree(Keying::Cached);
}

#[test]
fn rules_that_say_who_shares_a_bucket() {
    agree(Keying::ByRule);
}
