//! How rules lie: as few boundaries and links as there can be, and what is too many.

use super::*;

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
