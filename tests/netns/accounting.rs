//! Nothing is lost from the books: passed and dropped are what was sent, to the packet and to the byte.

use tests::{
    tool::{RuleStats, Tool},
    topology::{DeviceCounters, Feature, TwoNs, two_ns, until},
    traffic::{Direction, UdpFrame, ethertype},
};

/// Both families, one after the other.
const FAMILIES: [bool; 2] = [false, true];

#[test]
fn a_flood_of_datagrams_is_counted_to_the_packet() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--direction {} --rate 1mbit --burst 64kb", direction.word()));
        let arrivals = [ethertype::IPV4, ethertype::IPV6].map(|ethertype| path.arrivals(ethertype));
        let injector = path.injector();
        for len in [64, 300, 1514] {
            injector.send(&UdpFrame { len, ..path.udp4() }, 3000);
            injector.send(&UdpFrame { len, ..path.udp6() }, 2000);
        }

        let stats = limit.stats(direction);
        assert_eq!(stats.judged_packets(), 15_000, "{stats:?}");
        assert_eq!(stats.judged_bytes(), 5000 * (64 + 300 + 1514), "{stats:?}");
        assert_eq!(stats.passed_packets, arrivals.iter().map(|arrivals| arrivals.count()).sum::<u64>());
        // One fence for each batch.
        assert_eq!((stats.exempt_packets, stats.exempt_bytes), (6, 6 * 60), "{stats:?}");
        let flows = limit.flows(direction);
        assert_eq!(flows.len(), 2, "{flows:?}");
        let sum = |part: fn(&tests::tool::Flow) -> u64| flows.iter().map(part).sum::<u64>();
        assert_eq!(sum(|flow| flow.passed_packets), stats.passed_packets, "{flows:?}");
        assert_eq!(sum(|flow| flow.passed_bytes), stats.passed_bytes, "{flows:?}");
        assert_eq!(sum(|flow| flow.dropped_packets), stats.dropped_packets, "{flows:?}");
        assert_eq!(sum(|flow| flow.dropped_bytes), stats.dropped_bytes, "{flows:?}");
    }
}

#[test]
fn tcp_under_an_ingress_limit_is_counted_as_the_device_counts_it() {
    let net = single_frames();
    let tool = Tool::on(&net.near);
    for v6 in FAMILIES {
        let limit = tool.attach("--rate 50mbit");
        let before = net.near.received();
        Direction::Ingress.of(&net).tcp_transfer(v6, 6 << 20);
        let stats = settled(|| limit.stats(Direction::Ingress), || net.near.received().since(before));
        assert!(stats.dropped_packets > 0, "the limit did nothing: {stats:?}");
        let received = net.near.received().since(before);
        assert_eq!((stats.judged_packets(), stats.judged_bytes()), (received.packets, received.bytes), "{stats:?}");
        assert_eq!(stats.exempt_packets, 0, "{stats:?}");
        let flow = limit.flow(Direction::Ingress);
        assert_eq!((flow.passed_packets, flow.passed_bytes), (stats.passed_packets, stats.passed_bytes));
        assert_eq!((flow.dropped_packets, flow.dropped_bytes), (stats.dropped_packets, stats.dropped_bytes));
    }
}

#[test]
fn tcp_under_an_egress_limit_is_counted_as_the_device_counts_it() {
    let net = single_frames();
    let tool = Tool::on(&net.near);
    for v6 in FAMILIES {
        let limit = tool.attach("--direction egress --rate 50mbit");
        let before = net.near.transmitted();
        Direction::Egress.of(&net).tcp_transfer(v6, 6 << 20);
        let sent = |stats: &RuleStats| (stats.passed_packets, stats.passed_bytes);
        let stats = until("the last packet to be sent", || {
            let stats = limit.stats(Direction::Egress);
            let transmitted = net.near.transmitted().since(before);
            (sent(&stats) == (transmitted.packets, transmitted.bytes)).then_some(stats)
        });
        assert!(stats.dropped_packets > 0, "the limit did nothing: {stats:?}");
        assert_eq!(stats.exempt_packets, 0, "{stats:?}");
        let flow = limit.flow(Direction::Egress);
        assert_eq!((flow.passed_packets, flow.passed_bytes), sent(&stats));
        assert_eq!((flow.dropped_packets, flow.dropped_bytes), (stats.dropped_packets, stats.dropped_bytes));
    }
}

/// Two hosts between which every packet is a frame, so that device counters count what the wire would carry.
fn single_frames() -> TwoNs {
    let net = two_ns();
    for host in [&net.near, &net.far] {
        host.send_single_frames();
        host.offload(Feature::Gro, false);
    }
    net
}

/// The counters once as many packets have been judged as the device has received.
fn settled(stats: impl Fn() -> RuleStats, received: impl Fn() -> DeviceCounters) -> RuleStats {
    until("the last packet to be judged", || {
        let (stats, received) = (stats(), received());
        (stats.judged_packets() >= received.packets).then_some(stats)
    })
}
