//! A full flow table is never silent and never a way round the limit.

use std::net::{IpAddr, Ipv4Addr};

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, Path, UdpFrame, ethertype},
};

/// Packets of 64 bytes that a bucket holds.
const FIT: u64 = 10;

/// The table has twice the ways that are asked for: this makes it one set of eight, so that the ninth flow finds none.
const ONE_SET: &str = "--per src --max-flows 4";

/// Flows that find no room, and packets of each.
const HOMELESS: (u16, u64) = (30, 5);

/// Fills the eight ways of the table with flows in debt, sends the homeless ones, and returns how many of their
/// packets passed.
fn passed(policy: &str) -> u64 {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let tool = Tool::on(&net.near);
    let limit = tool.attach(&format!("--rate 8bit --burst {} {ONE_SET} --overflow {policy}", 64 * FIT));
    let arrivals = path.arrivals(ethertype::IPV4);
    let injector = path.injector();
    let send = |sources: std::ops::Range<u16>, count: u64| {
        for source in sources {
            injector.send(&from(&path, source), count as usize);
        }
    };
    send(0..8, FIT);
    assert_eq!(arrivals.count(), 8 * FIT);
    let (flows, packets) = HOMELESS;
    send(100..100 + flows, packets);
    let passed = arrivals.count() - 8 * FIT;

    let homeless = u64::from(flows) * packets;
    let stats = limit.stats(Direction::Ingress);
    assert_eq!((stats.passed_packets, stats.dropped_packets), (8 * FIT + passed, homeless - passed), "{stats:?}");
    assert_eq!((stats.reasons.untracked.packets, stats.reasons.untracked.bytes), (homeless, homeless * 64));
    let status = &tool.status(Some(&net.near.dev))[0];
    assert_eq!((status.flows, status.untracked_packets), (8, homeless), "{status:?}");
    assert_eq!(limit.flows(Direction::Ingress).len(), 8);
    // Those who were there first keep what they have: nothing.
    send(0..8, 1);
    assert_eq!(arrivals.count(), 8 * FIT + passed);
    passed
}

fn from(path: &Path<'_>, source: u16) -> UdpFrame {
    let [high, low] = source.to_be_bytes();
    UdpFrame { src: IpAddr::V4(Ipv4Addr::new(10, 0, high, low)), ..path.udp4() }
}

#[test]
fn shared_gives_all_untracked_flows_one_bucket() {
    assert_eq!(passed("shared"), FIT);
}

#[test]
fn open_passes_what_is_untracked() {
    assert_eq!(passed("open"), u64::from(HOMELESS.0) * HOMELESS.1);
}

#[test]
fn closed_drops_what_is_untracked() {
    assert_eq!(passed("closed"), 0);
}

#[test]
fn a_flow_whose_bucket_is_full_again_makes_room() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    // 64 bytes are paid back within a millisecond.
    let limit = Tool::on(&net.near).attach(&format!("--rate 1mbit --burst 640b {ONE_SET} --overflow closed"));
    let arrivals = path.arrivals(ethertype::IPV4);
    let injector = path.injector();
    for source in 0..100 {
        injector.send(&from(&path, source), 1);
    }
    // Sending takes longer than that, but a busy machine owes nobody an interval.
    let stats = limit.stats(Direction::Ingress);
    assert_eq!(arrivals.count(), stats.passed_packets);
    assert_eq!(stats.judged_packets(), 100, "{stats:?}");
    assert!(stats.passed_packets >= 50, "{stats:?}");
    assert_eq!(limit.flows(Direction::Ingress).len(), 8);
}

#[test]
fn a_flood_of_spoofed_sources_gives_nobody_a_burst() {
    const SPOOFED: u64 = 100_000;
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let tool = Tool::on(&net.near);
    let flood: Vec<Vec<u8>> = (0..SPOOFED as u32).map(|n| spoofed(&path, n).bytes()).collect();
    let flood: Vec<&[u8]> = flood.iter().map(Vec::as_slice).collect();
    for policy in ["shared", "open", "closed"] {
        let limit = tool.attach(&format!("--rate 8bit --burst 640b --overflow {policy}"));
        let arrivals = path.arrivals(ethertype::IPV4);
        let injector = path.injector();
        injector.send(&path.udp4(), 30);
        assert_eq!(arrivals.count(), FIT);

        injector.send_all(&flood);
        let before = arrivals.count();
        injector.send(&path.udp4(), 30);
        assert_eq!(arrivals.count(), before, "{policy}: a burst for free");

        let stats = limit.stats(Direction::Ingress);
        assert_eq!((stats.judged_packets(), stats.passed_packets), (SPOOFED + 60, before), "{stats:?}");
        let (untracked, conform) = (stats.reasons.untracked.packets, stats.reasons.conform.packets);
        assert!(untracked > 0, "the table was never full: {stats:?}");
        let passed = match policy {
            "open" => conform + untracked,
            "closed" => conform,
            // One bucket for all of them.
            _ => conform + FIT,
        };
        assert_eq!(stats.passed_packets, passed, "{policy}: {stats:?}");
        let status = &tool.status(Some(&net.near.dev))[0];
        assert_eq!(status.untracked_packets, untracked, "{status:?}");
        assert_eq!(status.flows + untracked, SPOOFED + 1, "each source is tracked or counted: {status:?}");
    }
}

#[test]
fn a_flood_of_spoofed_sources_forgets_no_limited_flow() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let limit = Tool::on(&net.near).attach("--rate 8bit --burst 640b --max-flows 1000");
    let injector = path.injector();
    injector.send(&path.udp4(), 30);
    let flood: Vec<Vec<u8>> = (0..10_000).map(|n| spoofed(&path, n).bytes()).collect();
    injector.send_all(&flood.iter().map(Vec::as_slice).collect::<Vec<_>>());
    injector.send(&path.udp4(), 30);
    let flows = limit.flows(Direction::Ingress);
    let limited = flows.iter().find(|flow| flow.src.as_deref() == Some("192.0.2.2")).expect("the limited flow");
    assert_eq!((limited.passed_packets, limited.dropped_packets), (FIT, 50), "{limited:?}");
    assert!(flows.len() >= 1000, "{} flows", flows.len());
}

fn spoofed(path: &Path<'_>, n: u32) -> UdpFrame {
    UdpFrame { src: IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n)), ..path.udp4() }
}
