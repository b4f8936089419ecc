//! Which of several rules a packet meets.

use super::*;

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
