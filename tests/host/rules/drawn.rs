//! Rules and packets that are drawn: few addresses and ports, so that prefixes are nested and shared and packets are near
//! their ends.

use super::*;

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
pub(super) fn near_ends(rules: &[Rule]) -> [Vec<IpAddr>; 2] {
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
