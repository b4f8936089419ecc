//! `--per`: who shares a bucket.

use std::{collections::HashSet, net::IpAddr};

use tests::{
    tool::{Flow, Tool},
    topology::two_ns,
    traffic::{Direction, UdpFrame, ethertype},
};

/// Packets of 64 bytes that a bucket holds.
const FIT: u64 = 10;

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Senders that differ in one thing each.
fn variants(base: UdpFrame) -> [UdpFrame; 7] {
    let v6 = base.src.is_ipv6();
    let pick = |v4, or| address(if v6 { or } else { v4 });
    let base = UdpFrame { src: pick("203.0.113.1", "2001:db8:a:1::1"), ..base };
    [
        base,
        UdpFrame { sport: 40_001, ..base },
        UdpFrame { dport: 10, ..base },
        UdpFrame { src: pick("203.0.113.77", "2001:db8:a:1::77"), ..base },
        UdpFrame { src: pick("203.0.112.1", "2001:db8:a:2::1"), ..base },
        UdpFrame { dst: pick("198.51.100.77", "2001:db8:ffff::77"), ..base },
        UdpFrame { dst: pick("198.51.101.1", "2001:db8:ffff:2::1"), ..base },
    ]
}

/// Sends more than a burst of each variant, and expects that many full buckets to have been there.
fn buckets(per: &str, expected: u64) -> Vec<Flow> {
    let mut shown = Vec::new();
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        let options = format!("--direction {} --rate 8bit --burst {} --per {per}", direction.word(), 64 * FIT);
        let limit = Tool::on(&net.near).attach(&options);
        for (base, ethertype) in [(path.udp4(), ethertype::IPV4), (path.udp6(), ethertype::IPV6)] {
            let arrivals = path.arrivals(ethertype);
            let before = limit.stats(direction).passed_packets;
            for frame in variants(base) {
                path.injector().send(&frame, 2 * FIT as usize);
            }
            // `dev` has one bucket for both families, empty by the time IPv6 is sent.
            let expected = if per == "dev" && base.src.is_ipv6() { 0 } else { expected };
            assert_eq!(arrivals.count(), expected * FIT, "--per {per} {base:?}");
            assert_eq!(limit.stats(direction).passed_packets - before, expected * FIT, "--per {per} {base:?}");
        }
        shown = limit.flows(direction);
        let rows = if per == "dev" { 1 } else { 2 * expected };
        assert_eq!(shown.len() as u64, rows, "{shown:?}");
        let packets: u64 = shown.iter().map(|flow| flow.passed_packets + flow.dropped_packets).sum();
        assert_eq!(packets, 2 * 7 * 2 * FIT, "{shown:?}");
    }
    shown
}

/// What is in no key of `flows`.
fn absent(flows: &[Flow]) -> [bool; 5] {
    let all = |part: fn(&Flow) -> bool| flows.iter().all(part);
    [
        all(|flow| flow.src.is_none()),
        all(|flow| flow.dst.is_none()),
        all(|flow| flow.proto.is_none()),
        all(|flow| flow.sport.is_none()),
        all(|flow| flow.dport.is_none()),
    ]
}

#[test]
fn each_flow_has_a_bucket() {
    let flows = buckets("flow", 7);
    assert_eq!(absent(&flows), [false; 5]);
    assert!(flows.iter().all(|flow| flow.proto.as_deref() == Some("udp")), "{flows:?}");
    let key = |flow: &Flow| {
        (flow.src.clone().unwrap_or_default(), flow.dst.clone().unwrap_or_default(), flow.sport, flow.dport)
    };
    let keys: HashSet<_> = flows.iter().map(key).collect();
    assert_eq!(keys.len(), 14, "{flows:?}");
    for (src, dst, sport) in [("203.0.113.1", "198.51.100.1", 40_001), ("2001:db8:a:1::77", "2001:db8:ffff::1", 40_000)]
    {
        assert!(keys.contains(&(src.to_owned(), dst.to_owned(), Some(sport), Some(9))), "{keys:?}");
    }
}

#[test]
fn each_source_has_a_bucket() {
    let flows = buckets("src", 3);
    assert_eq!(absent(&flows), [false, true, true, true, true]);
    assert!(flows.iter().any(|flow| flow.src.as_deref() == Some("203.0.113.77")), "{flows:?}");
}

#[test]
fn each_destination_has_a_bucket() {
    let flows = buckets("dst", 3);
    assert_eq!(absent(&flows), [true, false, true, true, true]);
}

#[test]
fn each_pair_has_a_bucket() {
    let flows = buckets("pair", 5);
    assert_eq!(absent(&flows), [false, false, true, true, true]);
}

#[test]
fn each_source_network_has_a_bucket() {
    let flows = buckets("src/24", 2);
    assert_eq!(absent(&flows), [false, true, true, true, true]);
    let sources: HashSet<&str> = flows.iter().filter_map(|flow| flow.src.as_deref()).collect();
    let expected = ["203.0.113.0/24", "203.0.112.0/24", "2001:db8:a:1::/64", "2001:db8:a:2::/64"];
    assert_eq!(sources, HashSet::from(expected));
}

#[test]
fn a_second_prefix_length_is_for_ipv6() {
    let flows = buckets("src/23,48", 1);
    let sources: HashSet<&str> = flows.iter().filter_map(|flow| flow.src.as_deref()).collect();
    assert_eq!(sources, HashSet::from(["203.0.112.0/23", "2001:db8:a::/48"]));
}

#[test]
fn each_destination_network_has_a_bucket() {
    let flows = buckets("dst/24", 2);
    assert_eq!(absent(&flows), [true, false, true, true, true]);
}

#[test]
fn a_device_has_one_bucket() {
    let flows = buckets("dev", 1);
    assert_eq!(absent(&flows), [true; 5]);
}
