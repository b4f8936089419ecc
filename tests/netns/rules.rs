//! Rules on real packets: which one a packet meets, what that limits, and that each packet is counted in one of them.

use std::net::IpAddr;

use tests::{
    frames::{Frame, Ipv4, Network, Upper},
    tool::{Attached, Config, Tool},
    topology::two_ns,
    traffic::{Direction, Path, UdpFrame, ethertype},
};

/// Packets of 64 bytes, sent at once.
const SENT: usize = 100;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// What a rule has passed and dropped, which is all that was sent to it.
fn counted(limit: &Attached<'_>, direction: Direction, rule: &str) -> (u64, u64) {
    let stats = limit.rule(direction, rule);
    (stats.passed_packets, stats.dropped_packets)
}

/// Sends a TCP segment of 64 bytes to the device under test, many times.
fn tcp_passes(path: &Path<'_>, src: &str, count: usize) -> u64 {
    let IpAddr::V4(src) = address(src) else { panic!("IPv4") };
    let segment = Network::V4(Ipv4 { src, ..Ipv4::new(Upper::tcp(1, 2, 0, 10)) });
    let mut bytes = Frame::ethernet(segment).bytes();
    bytes[..6].copy_from_slice(&path.to.mac);
    bytes[6..12].copy_from_slice(&path.from.mac);
    let arrivals = path.arrivals(ethertype::IPV4);
    path.injector().send_all(&vec![&bytes[..]; count]);
    arrivals.count()
}

#[test]
fn the_longest_prefix_wins_then_ports_then_the_protocol() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=640b", direction.word()))
            .rule("wide", "match=10.0.0.0/8 rate=8bit burst=1280b")
            .rule("narrow", "match=10.1.0.0/16 rate=8bit burst=1920b")
            .rule("udp", "match=10.1.0.0/16 proto=udp rate=8bit burst=2560b")
            .rule("port", "match=10.1.0.0/16 port=53 rate=8bit burst=3200b")
            .rule("one", "match=10.1.2.3/32 rate=8bit burst=3840b")
            .rule("six", "match=2001:db8:20::/48 rate=8bit burst=4480b")
            .rule("six-port", "match=2001:db8:20::/48 dport=5000-5999 rate=8bit burst=5120b")
            .rule("any-port", "proto=udp port=4000 rate=8bit burst=5760b");
        let limit = Tool::on(&net.near).limit(config.text());
        let cases = [
            ("default", "11.0.0.1", 9, 10),
            ("wide", "10.2.0.1", 9, 20),
            ("udp", "10.1.0.1", 9, 40),
            ("port", "10.1.0.1", 53, 50),
            ("one", "10.1.2.3", 53, 60),
            ("six", "2001:db8:20::1", 4999, 70),
            ("six-port", "2001:db8:20::1", 5999, 80),
            // Without a prefix, a rule is for what no prefix matches.
            ("any-port", "11.0.0.1", 4000, 90),
        ];
        for (rule, remote, dport, passed) in cases {
            let frame = UdpFrame { dport, ..path.with_remote(address(remote)) };
            assert_eq!(path.passes(&frame, SENT), passed, "{direction:?} {rule}");
            assert_eq!(counted(&limit, direction, rule), (passed, SENT as u64 - passed), "{direction:?} {rule}");
            let flows = limit.flows(direction);
            let flow = flows.iter().find(|flow| {
                let end = if direction == Direction::Ingress { &flow.src } else { &flow.dst };
                end.as_deref() == Some(remote) && flow.dport == Some(dport)
            });
            let flow = flow.unwrap_or_else(|| panic!("no flow of {remote}: {flows:?}"));
            assert_eq!((flow.rule.as_str(), flow.passed_packets), (rule, passed), "{direction:?} {flow:?}");
        }
        if direction == Direction::Ingress {
            assert_eq!(tcp_passes(&path, "10.1.0.1", SENT), 30);
            assert_eq!(counted(&limit, direction, "narrow"), (30, 70));
        }
        // Ports alone can be matched at either end.
        let frame = UdpFrame { sport: 53, ..path.with_remote(address("10.1.0.9")) };
        assert_eq!(path.passes(&frame, SENT), 50, "{direction:?}");
    }
}

#[test]
fn the_local_side_is_the_other_address() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=640b", direction.word()))
            .rule("mine", "match=203.0.113.0/24 side=local rate=8bit burst=1280b")
            .rule("theirs", "match=203.0.113.0/24 rate=8bit burst=1920b");
        let limit = Tool::on(&net.near).limit(config.text());
        let there = address("203.0.113.5");
        let theirs = path.with_remote(there);
        let mine = match direction {
            Direction::Ingress => UdpFrame { dst: there, ..path.udp4() },
            Direction::Egress => UdpFrame { src: there, ..path.udp4() },
        };
        for (frame, rule, passed) in [(path.udp4(), "default", 10), (mine, "mine", 20), (theirs, "theirs", 30)] {
            assert_eq!(path.passes(&frame, SENT), passed, "{direction:?} {rule}");
            assert_eq!(counted(&limit, direction, rule), (passed, SENT as u64 - passed), "{direction:?} {rule}");
        }
    }
}

#[test]
fn prefixes_of_one_rule_share_its_total() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=64000b", direction.word())).rule(
            "guests",
            "match=10.20.0.0/16,2001:db8:20::/48 per=pair rate=8bit burst=3840b total=8bit total-burst=6400b",
        );
        let limit = Tool::on(&net.near).limit(config.text());
        let passes = |remote| path.passes(&path.with_remote(address(remote)), SENT);
        assert_eq!(["10.20.0.1", "2001:db8:20::1", "10.20.0.2"].map(passes), [60, 40, 0], "{direction:?}");
        let reasons = limit.rule(direction, "guests").reasons;
        let sums = [reasons.conform, reasons.rate, reasons.total, reasons.device_total].map(|count| count.packets);
        assert_eq!(sums, [100, 40, 160, 0], "{direction:?}");
        assert_eq!(passes("10.21.0.1"), 100, "{direction:?}");
    }
}

#[test]
fn what_a_rule_refuses_is_not_charged_to_the_device() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let keys = format!("direction={} rate=8bit burst=64000b total=8bit total-burst=6400b", direction.word());
        let config = Config::of("near0", &keys).rule("a", "match=10.0.0.1/32 rate=8bit burst=640b");
        let limit = Tool::on(&net.near).limit(config.text());
        assert_eq!(path.passes(&path.with_remote(address("10.0.0.1")), 100), 10, "{direction:?}");
        assert_eq!(path.passes(&path.with_remote(address("10.0.0.2")), 90), 90, "{direction:?}");
        assert_eq!(path.passes(&path.with_remote(address("10.0.0.2")), 10), 0, "{direction:?}");
        let [of_rule, of_rest] = ["a", "default"].map(|rule| limit.rule(direction, rule).reasons);
        assert_eq!([of_rule.conform.packets, of_rule.rate.packets], [10, 90], "{direction:?}");
        assert_eq!([of_rest.conform.packets, of_rest.device_total.packets], [90, 10], "{direction:?}");
    }
}

#[test]
fn a_rule_has_a_key_of_its_own() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=640b", direction.word()))
            .rule("per-remote", "match=10.0.0.0/8 per=pair rate=8bit burst=1280b")
            .rule("per-net", "match=2001:db8:20::/48 per=dst/24,48 rate=8bit burst=1920b")
            .rule("together", "match=10.7.0.0/16 per=dev rate=8bit burst=2560b");
        let limit = Tool::on(&net.near).limit(config.text());
        let passes = |remote, sport| {
            let frame = UdpFrame { sport, ..path.with_remote(address(remote)) };
            path.passes(&frame, SENT)
        };
        assert_eq!([passes("11.0.0.1", 1), passes("11.0.0.1", 2)], [10, 10], "{direction:?}");
        assert_eq!([passes("10.0.0.1", 1), passes("10.0.0.1", 2), passes("10.0.0.2", 1)], [20, 0, 20], "{direction:?}");
        assert_eq!([passes("10.7.0.1", 1), passes("10.7.0.2", 2)], [40, 0], "{direction:?}");
        assert_eq!([passes("2001:db8:20::1", 1), passes("2001:db8:20:1::1", 2)], [30, 0], "{direction:?}");
        let mut rows: Vec<_> = limit.flows(direction).into_iter().map(|flow| (flow.rule, flow.sport)).collect();
        rows.sort();
        let expected = [
            ("default", Some(1)),
            ("default", Some(2)),
            ("per-net", None),
            ("per-remote", None),
            ("per-remote", None),
            ("together", None),
        ];
        assert_eq!(rows, expected.map(|(rule, sport)| (rule.to_owned(), sport)), "{direction:?}");
        for (rule, passed, sent) in [("default", 20, 200), ("per-remote", 40, 300), ("together", 40, 200)] {
            assert_eq!(counted(&limit, direction, rule), (passed, sent - passed), "{direction:?} {rule}");
        }
    }
}

#[test]
fn a_rule_can_block_or_not_limit_at_all() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=640b", direction.word()))
            .rule("never", "match=10.0.0.0/8 block")
            .rule("always", "match=10.1.0.0/16 unlimited")
            .rule("marked", "match=10.2.0.0/16 rate=8bit burst=640b exceed=dscp=CS1")
            .rule("few", "match=10.3.0.0/16 pps=1pps pps-burst=5");
        let limit = Tool::on(&net.near).limit(config.text());
        let cases = [
            ("10.0.0.1", "never", 0),
            ("10.1.0.1", "always", 100),
            ("10.2.0.1", "marked", 100),
            ("10.3.0.1", "few", 5),
        ];
        for (remote, rule, passed) in cases {
            assert_eq!(path.passes(&path.with_remote(address(remote)), SENT), passed, "{direction:?} {rule}");
            assert_eq!(counted(&limit, direction, rule), (passed, SENT as u64 - passed), "{direction:?} {rule}");
        }
        assert_eq!(limit.rule(direction, "never").reasons.blocked.packets, 100);
        assert_eq!(limit.rule(direction, "marked").marked_packets, 90);
        assert_eq!(limit.rule(direction, "few").reasons.pps.packets, 95);
        let level =
            |rule: &str| limit.flows(direction).into_iter().find(|flow| flow.rule == rule).map(|flow| flow.level_bytes);
        assert_eq!([level("always"), level("few")], [Some(None), Some(None)], "{direction:?}");
    }
}
