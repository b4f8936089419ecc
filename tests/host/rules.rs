//! Which rule a packet meets: what the tool lays out and the data plane looks up, against one pass over all rules.
#![expect(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::Instant,
};

use proptest::{prelude::*, sample::Index as Chosen};
use shaper_cli::{
    compile::{Compiled, Placed, Slotted, TooMany, compile, key_decides},
    error::Error,
    model::{Direction, Limits, Match, Net, Per, PortRange, Ports, Rule, Side},
};
use shaper_common::{
    abi::DEFAULT_RULE,
    key::{self, Family, Key},
    packet::Facts,
    rule::{Boundary, End, Index, Link, MAX_CHAIN, MAX_STEPS, NO_LINK, Rules, Table, kind, lookup},
};
use tests::frames::{v4, v6};

use crate::property::{config, regressions};

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ESP: u8 = 50;

// A packet, and what the contract says of it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Packet {
    src: IpAddr,
    dst: IpAddr,
    proto: u8,
    sport: u16,
    dport: u16,
}

impl Packet {
    fn udp(src: &str, dst: &str, sport: u16, dport: u16) -> Self {
        Self { src: src.parse().unwrap(), dst: dst.parse().unwrap(), proto: UDP, sport, dport }
    }

    fn facts(&self) -> Facts {
        let address = |ip| match ip {
            IpAddr::V4(ip) => v4(ip),
            IpAddr::V6(ip) => v6(ip),
        };
        let family = if self.src.is_ipv4() { Family::V4 } else { Family::V6 };
        let (src, dst) = (address(self.src), address(self.dst));
        Facts { src, dst, sport: self.sport, dport: self.dport, proto: self.proto, family, ..Facts::default() }
    }
}

/// The number of the rule a packet meets: every rule is asked, and the best answer taken.
fn expected(rules: &[Slotted<'_>], direction: Direction, packet: &Packet) -> u32 {
    let mut matching = Vec::new();
    for (age, Slotted { slot, rule: Rule { matches, .. } }) in rules.iter().enumerate() {
        let remote = match direction {
            Direction::Ingress => packet.src,
            Direction::Egress => packet.dst,
        };
        let local = if direction == Direction::Ingress { packet.dst } else { packet.src };
        let address = if matches.side == Side::Remote { remote } else { local };
        let longest = if matches.nets.is_empty() {
            Some(0)
        } else {
            matches.nets.iter().filter(|net| holds(net, address)).map(Net::len).max()
        };
        let Some(longest) = longest else { continue };
        if matches.proto.is_some_and(|proto| proto != packet.proto) || !ports_hold(matches.ports, packet) {
            continue;
        }
        matching.push((longest, matches.ports != Ports::Any, matches.proto.is_some(), Reverse(age), *slot));
    }
    matching.into_iter().max().map_or(DEFAULT_RULE, |(.., slot)| slot)
}

fn holds(net: &Net, address: IpAddr) -> bool {
    match (net.address(), address) {
        (IpAddr::V4(net_address), IpAddr::V4(address)) => {
            let differs = u64::from(net_address.to_bits() ^ address.to_bits());
            differs >> (32 - net.len()) == 0
        }
        (IpAddr::V6(net_address), IpAddr::V6(address)) => {
            let differs = net_address.to_bits() ^ address.to_bits();
            net.is_empty() || differs >> (128 - net.len()) == 0
        }
        _ => false,
    }
}

fn ports_hold(ports: Ports, packet: &Packet) -> bool {
    let within = |range: PortRange, port| (range.first..=range.last).contains(&port);
    let hold = match ports {
        Ports::Any => return true,
        Ports::Either(range) => within(range, packet.sport) || within(range, packet.dport),
        Ports::Source(range) => within(range, packet.sport),
        Ports::Destination(range) => within(range, packet.dport),
        Ports::Both { sport, dport } => within(sport, packet.sport) && within(dport, packet.dport),
    };
    let hidden = packet.sport == 0 && packet.dport == 0;
    [TCP, UDP, 33, 132, 136].contains(&packet.proto) && (hold || hidden)
}

// Rules, as tests write them.

fn net(text: &str) -> Net {
    let (address, len) = text.split_once('/').unwrap();
    Net::new(address.parse().unwrap(), len.parse().unwrap()).unwrap()
}

fn to(nets: &[&str]) -> Match {
    Match { nets: nets.iter().copied().map(net).collect(), ..Match::default() }
}

fn either(first: u16, last: u16) -> Ports {
    Ports::Either(PortRange { first, last })
}

fn rule(matches: Match) -> Rule {
    Rule { name: String::new(), matches, per: None, limits: Limits::default() }
}

/// The rules in the order of age, with numbers that are not.
fn slotted(rules: &[Rule]) -> Vec<Slotted<'_>> {
    rules.iter().enumerate().map(|(age, rule)| Slotted { slot: 1_000_000 - age as u32, rule }).collect()
}

/// How old the rule with this number is.
fn age(slot: u32) -> Option<u32> {
    if slot == DEFAULT_RULE { None } else { Some(1_000_000 - slot) }
}

// Where the data plane looks.

/// Two halves, and in the gaps around them what nobody may read: it leads to a rule that nobody has.
struct Book {
    indexes: [Index; 2],
    boundaries: Vec<Boundary>,
    links: Vec<Link>,
}

const NOBODYS: Link = Link {
    rank: u64::MAX,
    rule: 666,
    next: NO_LINK,
    sport: [0, u16::MAX],
    dport: [0, u16::MAX],
    proto: 0,
    kind: 0,
    reserved: [0; 6],
};

impl Book {
    fn new(halves: [Compiled; 2], gaps: [u32; 2]) -> Self {
        let mut book = Self { indexes: Default::default(), boundaries: Vec::new(), links: Vec::new() };
        book.leave(gaps[0], 1 + gaps[1]);
        for (index, half) in halves.into_iter().enumerate() {
            let (boundaries, links) = (half.boundaries(), half.links());
            let placed = half.place(book.boundaries.len() as u32, book.links.len() as u32);
            assert_eq!((placed.boundaries.len(), placed.links.len()), (boundaries, links));
            book.indexes[index] = placed.index;
            book.boundaries.extend(placed.boundaries);
            book.links.extend(placed.links);
            book.leave(gaps[1], gaps[0]);
        }
        book
    }

    fn leave(&mut self, boundaries: u32, links: u32) {
        let nobodys = Boundary { start: [0, 0], link: NO_LINK.into() };
        self.boundaries.extend((0..boundaries).map(|_| nobodys));
        self.links.extend((0..links).map(|_| NOBODYS));
    }

    fn one(rules: &[Slotted<'_>], direction: Direction) -> Self {
        let compiled = compile(rules, direction).unwrap();
        Self::new([compiled.clone(), compiled], [0, 0])
    }

    fn meets(&self, half: u32, packet: &Packet) -> u32 {
        lookup(self, half, &Key::new(&packet.facts(), Per::FLOW.kind, Per::FLOW.prefix).encode())
    }
}

impl Rules for Book {
    fn index(&self, half: u32) -> Option<&Index> {
        self.indexes.get(half as usize)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.boundaries.get(at as usize)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.links.get(at as usize)
    }
}

/// What holds of every layout. Returns the length of the longest chain.
fn check_layout(placed: &Placed, first_boundary: u32, first_link: u32) -> usize {
    let Placed { index, boundaries, links } = placed;
    let mut next_table = first_boundary;
    for table in index.tables {
        assert_eq!(table.first, next_table, "tables lie one behind the other");
        next_table += table.len;
        assert!(table.len < 1 << MAX_STEPS);
        let of_table = &boundaries[(table.first - first_boundary) as usize..][..table.len as usize];
        if let Some(first) = of_table.first() {
            assert_eq!(first.start, [0, 0]);
        }
        for pair in of_table.windows(2) {
            assert!(pair[0].start < pair[1].start, "{pair:?}");
            assert_ne!(pair[0].link, pair[1].link, "{pair:?}");
        }
    }
    assert_eq!((next_table - first_boundary) as usize, boundaries.len());
    let mut longest = 0;
    for boundary in boundaries {
        let mut at = u32::try_from(boundary.link).unwrap();
        let mut rank = u64::MAX;
        let mut length = 0;
        while at != NO_LINK {
            let link = links[(at - first_link) as usize];
            assert!(link.rank < rank, "the best is first: {link:?}");
            assert_ne!(link.rule, DEFAULT_RULE);
            assert_eq!(link.reserved, [0; 6]);
            assert!(link.kind != 0 || link.next == NO_LINK, "nothing comes after a rule that takes all");
            (at, rank) = (link.next, link.rank);
            length += 1;
        }
        assert!(length <= MAX_CHAIN as usize);
        longest = longest.max(length);
    }
    longest
}

// What is drawn: few addresses and ports, so that prefixes are nested and shared and packets are near their ends.

const KEYS: [&str; 9] = ["flow", "pair", "src", "dst", "src/31,64", "dst/30,126", "src/1,1", "dst/1,65", "dev"];
const BASES_V4: [u32; 6] = [0, 0x0a00_0000, 0x7fff_ffff, 0x8000_0000, 0xc000_0207, u32::MAX];
const LENGTHS_V4: [u8; 10] = [0, 1, 8, 24, 28, 29, 30, 31, 32, 32];
const BASES_V6: [u128; 7] = [
    0,
    0x2001_0db8 << 96,
    0x2001_0db8_0000_0007_ffff_ffff_ffff_ffff,
    // 10.0.0.0, mapped.
    0xffff_0a00_0000,
    1 << 127,
    (1 << 127) - 1,
    u128::MAX,
];
const LENGTHS_V6: [u8; 14] = [0, 1, 32, 61, 62, 63, 64, 65, 66, 96, 125, 126, 127, 128];

fn addresses_v4() -> impl Strategy<Value = Ipv4Addr> {
    (prop::sample::select(&BASES_V4[..]), 0..8_u32).prop_map(|(base, low)| Ipv4Addr::from_bits(base ^ low))
}

fn addresses_v6() -> impl Strategy<Value = Ipv6Addr> {
    (prop::sample::select(&BASES_V6[..]), 0..4_u128, 0..4_u128)
        .prop_map(|(base, high, low)| Ipv6Addr::from_bits(base ^ high << 64 ^ low))
}

fn nets() -> impl Strategy<Value = Net> {
    prop_oneof![
        (addresses_v4(), prop::sample::select(&LENGTHS_V4[..])).prop_map(|(ip, len)| Net::around(ip.into(), len)),
        (addresses_v6(), prop::sample::select(&LENGTHS_V6[..])).prop_map(|(ip, len)| Net::around(ip.into(), len)),
    ]
}

fn ports() -> impl Strategy<Value = Ports> {
    let range = || {
        let ends = prop_oneof![4 => (1..=4_u16, 0..=2_u16), 1 => (65_534..=65_535_u16, 0..=0_u16)];
        ends.prop_map(|(first, more)| PortRange { first, last: first + more })
    };
    prop_oneof![
        3 => Just(Ports::Any),
        1 => range().prop_map(Ports::Either),
        1 => range().prop_map(Ports::Source),
        1 => range().prop_map(Ports::Destination),
        1 => (range(), range()).prop_map(|(sport, dport)| Ports::Both { sport, dport }),
    ]
}

fn sides() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Remote), Just(Side::Local)]
}

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ingress), Just(Direction::Egress)]
}

fn matches() -> impl Strategy<Value = Match> {
    let proto = prop_oneof![2 => Just(None), 1 => prop::sample::select(&[TCP, UDP, ICMP, ESP][..]).prop_map(Some)];
    (prop::collection::vec(nets(), 0..5), sides(), proto, ports()).prop_map(|(nets, side, proto, ports)| Match {
        nets,
        side,
        proto,
        ports,
    })
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(matches().prop_map(rule), 0..16)
}

/// A packet to be: addresses are chosen from those around the rules' prefixes.
#[derive(Clone, Debug)]
struct Drawn {
    v6: bool,
    src: Chosen,
    dst: Chosen,
    proto: u8,
    sport: u16,
    dport: u16,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let proto = prop::sample::select(&[TCP, UDP, UDP, ICMP, ESP, 0, 33, 58, 132, 136][..]);
    let port = || prop_oneof![6 => 0..=7_u16, 1 => 65_533..=65_535_u16];
    (any::<bool>(), any::<Chosen>(), any::<Chosen>(), proto, port(), port())
        .prop_map(|(v6, src, dst, proto, sport, dport)| Drawn { v6, src, dst, proto, sport, dport })
}

impl Drawn {
    fn near(&self, ends: &[Vec<IpAddr>; 2]) -> Packet {
        let Self { v6, src, dst, proto, sport, dport } = self;
        let ends = &ends[usize::from(*v6)];
        Packet { src: *src.get(ends), dst: *dst.get(ends), proto: *proto, sport: *sport, dport: *dport }
    }
}

/// First and last addresses of all prefixes, and those beside them; IPv4 and IPv6.
fn near_ends(rules: &[Rule]) -> [Vec<IpAddr>; 2] {
    let mut v4 = BTreeSet::from([0, u32::MAX]);
    let mut v6 = BTreeSet::from([0, u128::MAX]);
    for net in rules.iter().flat_map(|rule| &rule.matches.nets) {
        match net.address() {
            IpAddr::V4(first) => {
                let first = first.to_bits();
                let last = first | u32::MAX.checked_shr(net.len().into()).unwrap_or(0);
                v4.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
            }
            IpAddr::V6(first) => {
                let first = first.to_bits();
                let last = first | u128::MAX.checked_shr(net.len().into()).unwrap_or(0);
                v6.extend([first, last, first.wrapping_sub(1), last.wrapping_add(1)]);
            }
        }
    }
    v6.extend(v4.iter().map(|bits| Ipv4Addr::from_bits(*bits).to_ipv6_mapped().to_bits()));
    [
        v4.into_iter().map(|bits| Ipv4Addr::from_bits(bits).into()).collect(),
        v6.into_iter().map(|bits| Ipv6Addr::from_bits(bits).into()).collect(),
    ]
}

proptest! {
    #![proptest_config(config(regressions!("rules"), 512))]

    #[test]
    fn a_packet_meets_the_rule_that_a_pass_over_all_of_them_finds(
        halves in [rules(), rules()],
        direction in directions(),
        gaps in [0..5_u32, 0..5_u32],
        packets in prop::collection::vec(drawn(), 48),
    ) {
        let slotted = halves.each_ref().map(|rules| slotted(rules));
        let compiled = slotted.each_ref().map(|rules| compile(rules, direction).unwrap());
        for half in &compiled {
            check_layout(&half.clone().place(gaps[0], 1 + gaps[1]), gaps[0], 1 + gaps[1]);
        }
        let book = Book::new(compiled, gaps);
        for half in 0..2 {
            let rules = &slotted[half as usize];
            let ends = near_ends(&halves[half as usize]);
            let mut packets: Vec<Packet> = packets.iter().map(|drawn| drawn.near(&ends)).collect();
            // Every end once on each side, too.
            for drawn in &packets.clone()[..1] {
                for end in ends.iter().flatten().filter(|end| end.is_ipv4() == drawn.src.is_ipv4()) {
                    packets.extend([Packet { src: *end, ..*drawn }, Packet { dst: *end, ..*drawn }]);
                }
            }
            for packet in packets {
                let (meets, expected) = (book.meets(half, &packet), expected(rules, direction, &packet));
                prop_assert_eq!(age(meets), age(expected), "{:?} in half {}", packet, half);
            }
        }
    }

    #[test]
    fn an_interval_starts_at_its_first_address(
        (start, address) in prop_oneof![
            (any::<u128>(), any::<u128>()),
            (any::<u128>(), -2..=2_i128).prop_map(|(start, by)| (start, start.wrapping_add_signed(by))),
            (any::<u128>(), -2..=2_i128).prop_map(|(start, by)| (start, start.wrapping_add_signed(by << 64))),
            (any::<u128>(), 0..128_u32).prop_map(|(start, bit)| (start, start ^ 1 << bit)),
        ],
    ) {
        let links = vec![NOBODYS, Link { rank: 1, rule: 1, ..NOBODYS }, Link { rank: 1, rule: 2, ..NOBODYS }];
        let boundaries = vec![
            Boundary { start: [0, 0], link: 1 },
            Boundary { start: [(start >> 64) as u64, start as u64], link: 2 },
        ];
        let mut index = Index::default();
        index.tables[Index::of(End::Src, true)] = Table { first: 0, len: 2 };
        let book = Book { indexes: [index; 2], boundaries, links };
        let packet = Packet { src: Ipv6Addr::from_bits(address).into(), ..Packet::udp("::", "::", 1, 2) };
        prop_assert_eq!(book.meets(0, &packet), if address < start { 1 } else { 2 });
    }

    #[test]
    fn where_the_key_decides_packets_with_one_key_meet_one_rule(
        drawn_rules in prop::collection::vec((matches(), any::<bool>(), 0..8_u8, 0..8_u8), 0..4),
        side in sides(),
        per in prop::sample::select(&KEYS[..]),
        direction in directions(),
        packets in prop::collection::vec(drawn(), 48),
    ) {
        let per: Per = per.parse().unwrap();
        let rules: Vec<Rule> = drawn_rules
            .into_iter()
            .map(|(matches, own, simple, one_side)| {
                // Most rules are such that the key may decide.
                let matches = if simple > 0 { Match { proto: None, ports: Ports::Any, ..matches } } else { matches };
                let matches = if one_side > 0 { Match { side, ..matches } } else { matches };
                Rule { per: own.then_some(per), ..rule(matches) }
            })
            .collect();
        if key_decides(&rules, per, direction) {
            let slotted = slotted(&rules);
            let book = Book::one(&slotted, direction);
            let ends = near_ends(&rules);
            let mut facts = vec![Facts::default()];
            for drawn in &packets {
                let packet = drawn.near(&ends);
                let [v4, v6] = &ends;
                let others = if packet.src.is_ipv4() { v4 } else { v6 };
                facts.push(packet.facts());
                facts.extend(others.iter().map(|src| Packet { src: *src, ..packet }.facts()));
                facts.extend(others.iter().map(|dst| Packet { dst: *dst, ..packet }.facts()));
            }
            let mut met: HashMap<_, (Facts, u32)> = HashMap::new();
            for facts in facts {
                let meets = lookup(&book, 0, &Key::new(&facts, Per::FLOW.kind, Per::FLOW.prefix).encode());
                let key = Key::new(&facts, per.kind, per.prefix).encode();
                let (other, met) = *met.entry(key).or_insert((facts, meets));
                prop_assert_eq!(age(meets), age(met), "{:?} and {:?}", facts, other);
            }
        }
    }
}

/// Compares both lookups for a packet with the rule of this age, `None` for the default.
#[track_caller]
fn assert_meets(rules: &[Match], direction: Direction, packet: &Packet, wanted: Option<u32>) {
    let rules: Vec<Rule> = rules.iter().cloned().map(rule).collect();
    let rules = slotted(&rules);
    assert_eq!(age(expected(&rules, direction, packet)), wanted, "the model: {packet:?}");
    assert_eq!(age(Book::one(&rules, direction).meets(0, packet)), wanted, "{packet:?}");
}

#[test]
fn the_longest_prefix_wins_then_ports_then_protocol_then_age() {
    let ports = either(53, 53);
    let rules = [
        to(&["10.0.0.0/8"]),
        Match { proto: Some(UDP), ports, ..to(&["10.0.0.0/8"]) },
        to(&["10.1.0.0/16"]),
        to(&["10.1.0.0/16"]),
        Match { proto: Some(UDP), ..to(&["10.1.0.0/16"]) },
        Match { ports, ..to(&["10.1.0.0/16"]) },
        Match { proto: Some(UDP), ports, ..to(&["10.1.0.0/16"]) },
        Match { proto: Some(TCP), ports, ..to(&["10.1.2.0/24"]) },
    ];
    let meets = |rules: &[Match], src: &str, dport, age| {
        assert_meets(rules, Direction::Ingress, &Packet::udp(src, "192.0.2.1", 4000, dport), age);
    };
    meets(&rules, "10.1.2.3", 53, Some(6));
    meets(&rules[..6], "10.1.2.3", 53, Some(5));
    meets(&rules[..5], "10.1.2.3", 53, Some(4));
    meets(&rules[..4], "10.1.2.3", 53, Some(2));
    meets(&rules[..2], "10.1.2.3", 53, Some(1));
    meets(&rules, "10.1.2.3", 54, Some(4));
    meets(&rules, "10.2.0.0", 53, Some(1));
    meets(&rules, "10.2.0.0", 54, Some(0));
    meets(&rules, "11.0.0.0", 53, None);
    meets(&[], "10.1.2.3", 53, None);
}

#[test]
fn the_better_of_two_sides_wins() {
    let local = |nets: &[&str]| Match { side: Side::Local, ..to(nets) };
    let packet = Packet::udp("10.0.0.1", "192.0.2.1", 4000, 53);
    let ingress = |rules: &[Match], age| assert_meets(rules, Direction::Ingress, &packet, age);
    ingress(&[to(&["10.0.0.0/24"]), local(&["192.0.2.0/24"])], Some(0));
    ingress(&[local(&["192.0.2.0/24"]), to(&["10.0.0.0/24"])], Some(0));
    ingress(&[to(&["10.0.0.0/24"]), Match { ports: either(53, 53), ..local(&["192.0.2.0/24"]) }], Some(1));
    ingress(&[to(&["10.0.0.0/24"]), Match { proto: Some(UDP), ..local(&["192.0.2.0/24"]) }], Some(1));
    ingress(&[to(&["10.0.0.0/25"]), Match { ports: either(53, 53), ..local(&["192.0.2.0/24"]) }], Some(0));
    ingress(&[to(&["192.0.2.0/24"]), local(&["10.0.0.0/24"])], None);
    assert_meets(&[to(&["192.0.2.0/24"]), local(&["10.0.0.0/24"])], Direction::Egress, &packet, Some(0));
    assert_meets(&[local(&["10.0.0.0/24"])], Direction::Egress, &packet, Some(0));
    assert_meets(&[to(&["10.0.0.0/24"])], Direction::Egress, &packet, None);
}

#[test]
fn a_rule_without_prefixes_is_for_any_address() {
    let any = [to(&["10.0.0.0/8"]), Match { proto: Some(UDP), ..Match::default() }];
    for direction in Direction::ALL {
        for side in [Side::Remote, Side::Local] {
            let rules = any.clone().map(|matches| Match { side, ..matches });
            for (src, dst, age) in [
                ("10.1.1.1", "10.1.1.1", 0),
                ("9.255.255.255", "11.0.0.0", 1),
                ("0.0.0.0", "255.255.255.255", 1),
                ("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 1),
                ("::ffff:10.1.1.1", "::ffff:10.1.1.1", 1),
            ] {
                assert_meets(&rules, direction, &Packet::udp(src, dst, 1, 2), Some(age));
            }
            assert_meets(&rules, direction, &Packet { proto: TCP, ..Packet::udp("1.1.1.1", "1.1.1.1", 1, 2) }, None);
        }
    }
}

#[test]
fn prefixes_at_the_ends_of_the_addresses_end_there() {
    let ends = [
        ("0.0.0.0/0", &["0.0.0.0", "127.255.255.255", "255.255.255.255"][..], &["::", "::ffff:1.2.3.4"][..]),
        ("0.0.0.0/32", &["0.0.0.0"], &["0.0.0.1", "255.255.255.255", "::"]),
        ("255.255.255.255/32", &["255.255.255.255"], &["255.255.255.254", "0.0.0.0"]),
        ("128.0.0.0/1", &["128.0.0.0", "255.255.255.255"], &["127.255.255.255", "0.0.0.0"]),
        ("::/0", &["::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:1.2.3.4"], &["1.2.3.4"]),
        ("::/128", &["::"], &["::1", "0.0.0.0"]),
        (
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128",
            &["ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
            &["ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "::"],
        ),
        (
            "2001:db8:0:1::/64",
            &["2001:db8:0:1::", "2001:db8:0:1:ffff:ffff:ffff:ffff"],
            &["2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:2::"],
        ),
    ];
    for (prefix, inside, outside) in ends {
        for (addresses, age) in [(inside, Some(0)), (outside, None)] {
            for address in addresses {
                assert_meets(&[to(&[prefix])], Direction::Ingress, &Packet::udp(address, address, 1, 2), age);
            }
        }
    }
}

#[test]
fn an_ipv4_mapped_address_is_not_ipv4() {
    let rules = [to(&["10.0.0.0/8", "0.0.0.0/0"]), to(&["::ffff:10.0.0.0/104"])];
    assert_meets(&rules, Direction::Ingress, &Packet::udp("10.0.0.1", "10.0.0.1", 1, 2), Some(0));
    assert_meets(&rules, Direction::Ingress, &Packet::udp("::ffff:10.0.0.1", "::1", 1, 2), Some(1));
    assert_meets(&rules, Direction::Ingress, &Packet::udp("::ffff:11.0.0.1", "::1", 1, 2), None);
}

#[test]
fn a_packet_that_shows_no_ports_may_have_any() {
    let dns = [Match { ports: either(53, 53), ..to(&["10.0.0.0/8"]) }];
    let packet = |proto, sport, dport| Packet { proto, ..Packet::udp("10.0.0.1", "192.0.2.1", sport, dport) };
    for proto in [TCP, UDP, 33, 132, 136] {
        assert_meets(&dns, Direction::Ingress, &packet(proto, 0, 0), Some(0));
        assert_meets(&dns, Direction::Ingress, &packet(proto, 0, 53), Some(0));
        assert_meets(&dns, Direction::Ingress, &packet(proto, 53, 0), Some(0));
        assert_meets(&dns, Direction::Ingress, &packet(proto, 0, 52), None);
    }
    for proto in [ICMP, ESP, 58, 0] {
        assert_meets(&dns, Direction::Ingress, &packet(proto, 0, 0), None);
    }
    let tcp = dns.map(|matches| Match { proto: Some(TCP), ..matches });
    assert_meets(&tcp, Direction::Ingress, &packet(TCP, 0, 0), Some(0));
    assert_meets(&tcp, Direction::Ingress, &packet(UDP, 0, 0), None);
    let icmp = tcp.map(|matches| Match { proto: Some(ICMP), ..matches });
    assert_meets(&icmp, Direction::Ingress, &packet(ICMP, 0, 0), None);
}

#[test]
fn each_way_to_name_ports_looks_at_those_it_names() {
    let range = PortRange { first: 100, last: 200 };
    let other = PortRange { first: 300, last: 400 };
    for (ports, hold, fail) in [
        (Ports::Either(range), &[(100, 1), (1, 200), (200, 100)][..], &[(99, 201), (201, 99)][..]),
        (Ports::Source(range), &[(100, 1), (200, 65535), (100, 0)], &[(99, 100), (201, 100), (0, 100)]),
        (Ports::Destination(range), &[(1, 100), (65535, 200), (0, 100)], &[(100, 99), (100, 201), (100, 0)]),
        (Ports::Both { sport: range, dport: other }, &[(100, 300), (200, 400)], &[(300, 100), (100, 299), (99, 300)]),
    ] {
        for (packets, age) in [(hold, Some(0)), (fail, None)] {
            for (sport, dport) in packets {
                let packet = Packet::udp("10.0.0.1", "192.0.2.1", *sport, *dport);
                assert_meets(&[Match { ports, ..Match::default() }], Direction::Ingress, &packet, age);
            }
        }
    }
}

#[test]
fn a_packet_without_a_readable_address_meets_no_rule() {
    let rules = [rule(Match::default()), rule(Match { side: Side::Local, ..to(&["0.0.0.0/0", "::/0"]) })];
    let book = Book::one(&slotted(&rules), Direction::Ingress);
    let key = Key::new(&Facts { proto: UDP, sport: 1, dport: 2, ..Facts::default() }, Per::FLOW.kind, Per::FLOW.prefix);
    assert_eq!(lookup(&book, 0, &key.encode()), DEFAULT_RULE);
}

#[test]
fn no_rules_are_no_boundaries_and_no_links() {
    let compiled = compile(&[], Direction::Ingress).unwrap();
    assert_eq!((compiled.boundaries(), compiled.links()), (0, 0));
    assert_eq!(compiled.place(0, 1).index, Index::default());
}

#[test]
fn neighbours_with_the_same_chain_are_one_interval() {
    let halves = [rule(to(&["10.0.0.0/25", "10.0.0.128/25", "10.0.2.0/25"]))];
    let placed = compile(&slotted(&halves), Direction::Ingress).unwrap().place(40, 50);
    let at = |address: u64, link| Boundary { start: [address << 32, 0], link };
    let none = NO_LINK.into();
    assert_eq!(
        placed.boundaries,
        [at(0, none), at(0x0a00_0000, 50), at(0x0a00_0100, none), at(0x0a00_0200, 50), at(0x0a00_0280, none)]
    );
    assert_eq!(placed.links.len(), 1);
    assert_eq!(placed.index.tables[Index::of(End::Src, false)], Table { first: 40, len: 5 });

    // The inner prefix begins and ends where the outer one does.
    let nested = [rule(to(&["0.0.0.0/0"])), rule(to(&["0.0.0.0/1"])), rule(to(&["0.0.0.0/2", "192.0.0.0/2"]))];
    let placed = compile(&slotted(&nested), Direction::Ingress).unwrap().place(0, 1);
    let starts: Vec<u64> = placed.boundaries.iter().map(|boundary| boundary.start[0] >> 32).collect();
    assert_eq!(starts, [0, 0x4000_0000, 0x8000_0000, 0xc000_0000]);
    check_layout(&placed, 0, 1);
}

#[test]
fn what_is_behind_a_rule_that_takes_all_is_left_out() {
    let port = |port| Match { ports: either(port, port), ..to(&["10.0.0.0/8"]) };
    let inner = |matches| Match { nets: vec![net("10.0.0.0/9")], ..matches };
    // Twice the same match; a younger rule for all; an inner prefix with a rule for all, or for the same port.
    for (rules, links) in [
        (vec![port(1), port(1)], 1),
        (vec![port(1), to(&["10.0.0.0/8"]), to(&["10.0.0.0/8"])], 2),
        (vec![port(1), port(2), to(&["10.0.0.0/9"])], 3),
        (vec![inner(port(1)), port(1)], 2),
        (vec![inner(port(1)), port(1), port(2)], 3),
    ] {
        let rules: Vec<Rule> = rules.into_iter().map(rule).collect();
        let placed = compile(&slotted(&rules), Direction::Ingress).unwrap().place(0, 1);
        assert_eq!(placed.links.len(), links, "{placed:?}");
    }
    let rules = [rule(inner(port(1))), rule(port(1)), rule(port(2))];
    let placed = compile(&slotted(&rules), Direction::Ingress).unwrap().place(0, 1);
    assert_eq!(check_layout(&placed, 0, 1), 2);
    let tail = placed.links.iter().filter(|link| link.kind == kind::EITHER_PORT && link.next != NO_LINK);
    let tails: BTreeSet<u32> = tail.map(|link| link.next).collect();
    assert_eq!(tails.len(), 1, "both prefixes end in one chain: {placed:?}");
}

/// A rule for each port from 1 to `count`, for this prefix.
fn one_port_each(prefix: &str, count: u16) -> Vec<Rule> {
    (1..=count).map(|port| rule(Match { ports: either(port, port), ..to(&[prefix]) })).collect()
}

#[test]
fn a_chain_is_walked_to_its_end_or_refused() {
    let mut rules = one_port_each("10.0.0.0/8", MAX_CHAIN as u16);
    for last in [rules.clone(), one_port_each("10.0.0.0/8", MAX_CHAIN as u16 - 1)] {
        let mut rules = last;
        if rules.len() < MAX_CHAIN as usize {
            rules.push(rule(to(&["0.0.0.0/0"])));
        }
        let slotted = slotted(&rules);
        let packet = Packet::udp("10.0.0.1", "192.0.2.1", 5000, MAX_CHAIN as u16);
        let book = Book::one(&slotted, Direction::Ingress);
        assert_eq!(age(book.meets(0, &packet)), Some(MAX_CHAIN - 1));
    }
    // The same matches again, and rules behind one that takes all, are no part of the chain.
    rules.extend(one_port_each("10.0.0.0/8", MAX_CHAIN as u16));
    rules.push(rule(to(&["10.0.0.0/9"])));
    compile(&slotted(&rules), Direction::Ingress).unwrap();
    rules.push(rule(Match { proto: Some(UDP), ..to(&["10.0.0.0/8"]) }));
    let refused = compile(&slotted(&rules), Direction::Ingress).unwrap_err();
    assert_eq!(refused, TooMany::Rules(net("10.0.0.0/8"), 257));
    assert_eq!(
        refused.to_string(),
        "`10.0.0.0/8`: its addresses can meet 257 rules that protocol and ports tell apart; the most is 256"
    );
    let error = Error::from(refused);
    assert_eq!(error.to_string(), refused.to_string());
    assert_eq!(error.hint(), refused.hint());
    assert_eq!(error.exit_code(), 1);
    // On the other side, where nobody else is.
    rules.last_mut().unwrap().matches.side = Side::Local;
    compile(&slotted(&rules), Direction::Ingress).unwrap();
}

#[test]
fn what_surrounds_a_prefix_counts_towards_its_chain() {
    let mut rules = one_port_each("2001:db8::/32", 200);
    rules.extend(one_port_each("2001:db8:1::/48", 250).split_off(200));
    compile(&slotted(&rules), Direction::Egress).unwrap();
    rules.extend(one_port_each("2001:db8:1:1::/64", 260).split_off(250));
    let refused = compile(&slotted(&rules), Direction::Egress).unwrap_err();
    assert_eq!(refused, TooMany::Rules(net("2001:db8:1:1::/64"), 260));
}

#[test]
fn the_same_ports_at_every_length_are_one_link_each() {
    let ports: Vec<Match> = [1, 2, 3].map(|port| Match { ports: either(port, port), ..Match::default() }).into();
    let levels = (0..=128_u8).flat_map(|len| {
        let nets = vec![Net::around("2001:db8::".parse().unwrap(), len)];
        ports.iter().map(move |matches| rule(Match { nets: nets.clone(), ..matches.clone() }))
    });
    let rules: Vec<Rule> = levels.collect();
    let placed = compile(&slotted(&rules), Direction::Ingress).unwrap().place(0, 1);
    assert_eq!(check_layout(&placed, 0, 1), 3);
}

#[test]
fn more_intervals_than_can_be_halved_are_refused() {
    // Every other address: two intervals each, and the one before them.
    let nets = |count: u32| (0..count).map(|n| Net::around(Ipv4Addr::from_bits(0x0a00_0001 + 2 * n).into(), 32));
    let most = (1 << MAX_STEPS) - 1;
    let fits = [rule(Match { nets: nets((most - 1) / 2).collect(), ..Match::default() })];
    let slotted_fits = slotted(&fits);
    let book = Book::one(&slotted_fits, Direction::Ingress);
    assert_eq!(book.indexes[0].tables[0].len, most);
    for (address, age_met) in
        [(0x0a00_0000, None), (0x0a00_0001, Some(0)), (0x0a00_0000 + most - 2, Some(0)), (0x0a00_0000 + most - 1, None)]
    {
        let address = Ipv4Addr::from_bits(address).into();
        let packet = Packet { src: address, dst: address, proto: ICMP, sport: 0, dport: 0 };
        assert_eq!(age(book.meets(1, &packet)), age_met, "{packet:?}");
    }
    // One more: behind the last address no interval begins.
    let mut refused = fits.clone();
    refused[0].matches.nets.push(net("255.255.255.255/32"));
    let refused = compile(&slotted(&refused), Direction::Ingress).unwrap_err();
    assert_eq!(refused, TooMany::Intervals(4_194_304));
    assert_eq!(
        refused.to_string(),
        "`match`: the prefixes of one side make 4194304 intervals of addresses; the most is 4194303"
    );
}

/// A permutation of `0..count` without any order.
fn shuffled(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(move |n| (u64::from(n) * 7_368_787 % u64::from(count)) as u32)
}

#[test]
fn a_hundred_thousand_prefixes_lie_as_close_as_they_can() {
    const COUNT: u32 = 100_000;
    let v4 = |n: u32| Net::around(Ipv4Addr::from_bits(0x0a00_0000 + 0x200 * n).into(), 24);
    let v6 = |n: u32| Net::around(Ipv6Addr::from_bits((0x2001_0db8 << 96) + (u128::from(n) << 65)).into(), 64);
    let v4_nested = |n: u32| Net::around(Ipv4Addr::from_bits((n / 32).reverse_bits() | 1).into(), 1 + (n % 32) as u8);
    let v6_nested =
        |n: u32| Net::around(Ipv6Addr::from_bits(u128::from(n / 128).reverse_bits() | 1).into(), 1 + (n % 128) as u8);
    let each = |nets: Vec<Net>| -> Vec<Rule> {
        nets.into_iter().map(|net| rule(Match { nets: vec![net], ..Match::default() })).collect()
    };
    let by_length = |net: Net| Match { nets: vec![net], ports: either(net.len().into(), u16::MAX), ..Match::default() };
    let (n, same) = (COUNT as usize, net("10.0.0.0/8"));
    let shapes: [(&str, Vec<Rule>, usize, usize); 10] = [
        ("sorted", each((0..COUNT).map(v4).collect()), 2 * n + 1, n),
        ("reversed", each((0..COUNT).rev().map(v4).collect()), 2 * n + 1, n),
        ("shuffled", each(shuffled(COUNT).map(v4).collect()), 2 * n + 1, n),
        ("IPv6, shuffled", each(shuffled(COUNT).map(v6).collect()), 2 * n + 1, n),
        ("IPv4, 32 deep", each((0..COUNT).map(v4_nested).collect()), 2 * n + 1, n),
        ("IPv6, 128 deep", each(shuffled(COUNT).map(v6_nested).collect()), 2 * n + 1, n),
        ("IPv4, 32 deep, with ports", (0..COUNT).map(|n| rule(by_length(v4_nested(n)))).collect(), 2 * n + 1, n),
        ("IPv6, 128 deep, with ports", (0..COUNT).map(|n| rule(by_length(v6_nested(n)))).collect(), 2 * n + 1, n),
        (
            "one prefix",
            (0..COUNT)
                .map(|n| {
                    rule(Match { ports: either(1 + n as u16 % 256, u16::MAX), nets: vec![same], ..Match::default() })
                })
                .collect(),
            3,
            256,
        ),
        ("one rule", vec![rule(Match { nets: shuffled(COUNT).map(v4).collect(), ..Match::default() })], 2 * n + 1, 1),
    ];
    for (shape, rules, most_boundaries, most_links) in shapes {
        let slotted = slotted(&rules);
        let start = Instant::now();
        let compiled = compile(&slotted, Direction::Ingress).unwrap();
        let took = start.elapsed();
        let (boundaries, links) = (compiled.boundaries(), compiled.links());
        eprintln!("{shape}: {boundaries} boundaries and {links} links in {took:.1?}");
        assert!(boundaries <= most_boundaries && links <= most_links, "{shape}");
        check_layout(&compiled.clone().place(3, 4), 3, 4);
        let book = Book::new([compiled.clone(), compiled], [0, 0]);
        let ends = near_ends(&rules);
        let ends = &ends[usize::from(rules[0].matches.nets[0].address().is_ipv6())];
        for n in shuffled(24) {
            let src = ends[n as usize * (ends.len() - 1) / 23];
            let packet = Packet { src, dst: src, proto: UDP, sport: 20, dport: n as u16 * 9 };
            assert_eq!(book.meets(0, &packet), expected(&slotted, Direction::Ingress, &packet), "{shape}: {packet:?}");
        }
    }
}

/// The key that is at egress what this one is at ingress.
fn turned(per: Per) -> Per {
    let kind = match per.kind {
        key::Per::Src => key::Per::Dst,
        key::Per::Dst => key::Per::Src,
        other => other,
    };
    Per { kind, ..per }
}

#[test]
fn a_key_decides_if_rules_look_at_nothing_else() {
    let remote = |nets: &[&str]| rule(to(nets));
    let local = |nets: &[&str]| rule(Match { side: Side::Local, ..to(nets) });
    let proto = |rule: Rule| Rule { matches: Match { proto: Some(UDP), ..rule.matches }, ..rule };
    let ports = |rule: Rule| Rule { matches: Match { ports: either(1, 2), ..rule.matches }, ..rule };
    let own = |per: &str, rule: Rule| Rule { per: Some(per.parse().unwrap()), ..rule };
    let any = || rule(Match::default());
    let everything = ["0.0.0.0/0", "::/0"];
    // At ingress, where remote is the source: keys that decide, and keys that do not.
    for (rules, decide, others) in [
        (vec![], "flow pair src dst src/8 dst/8 dev", ""),
        (vec![any()], "flow pair src dst src/1,1 dst/1,1", "dev"),
        (vec![proto(any())], "flow", "pair src dst dev"),
        (vec![ports(any())], "flow", "pair src dst dev"),
        (vec![remote(&["10.0.0.0/8"])], "flow pair src src/8 src/32", "dst src/7 dev"),
        (vec![local(&["10.0.0.0/8"])], "flow pair dst dst/8 dst/32", "src dst/7 dev"),
        (vec![remote(&["2001:db8::/48"])], "src src/1 src/1,48", "src/32,47 dst"),
        (vec![remote(&["10.0.0.0/8", "2001:db8::/48"])], "src/8,48", "src/7,48 src/8,47 dst"),
        (vec![remote(&["10.0.0.0/8"]), local(&["10.0.0.0/8"])], "flow pair", "src dst dev"),
        (vec![remote(&["10.0.0.0/8"]), any(), local(&everything)], "flow pair src src/8,1", "dst dev"),
        (vec![remote(&["10.0.0.0/8"]), proto(any())], "flow", "pair src dst dev"),
        (vec![own("src", remote(&["10.0.0.0/8"]))], "src", "flow pair dst src/24 dev"),
        (vec![own("flow", any()), any()], "flow", "pair src dst dev"),
        (vec![own("src/24", any()), any()], "src/24 src/24,64", "src src/24,48 flow"),
    ] {
        for (pers, decides) in [(decide, true), (others, false)] {
            for text in pers.split_whitespace() {
                let per = text.parse().unwrap();
                assert_eq!(key_decides(&rules, per, Direction::Ingress), decides, "{text}: {rules:?}");
                let at_egress = |rule: &Rule| Rule { per: rule.per.map(turned), ..rule.clone() };
                let rules: Vec<Rule> = rules.iter().map(at_egress).collect();
                assert_eq!(key_decides(&rules, turned(per), Direction::Egress), decides, "{text}, turned: {rules:?}");
            }
        }
    }
}
