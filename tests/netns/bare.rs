//! A device without Ethernet header: what counts there is the IP packet.

use std::net::UdpSocket;

use tests::{
    frames::{Frame, Ipv4, Ipv6, Network, Upper},
    tool::Tool,
    topology::{Tun, two_ns, until},
    traffic::{Arrivals, ethertype},
};

/// Bytes of payload, and of the packet around it.
const PAYLOAD: usize = 72;
const PACKET: u64 = 100;

#[test]
fn received_packets_cost_their_ip_length() {
    let net = two_ns();
    let ns = &net.near.ns;
    let mut tun = Tun::create(ns, "tun0", "203.0.113.1/24");
    let tool = Tool::on(&net.near);
    tool.ok(&["attach", "tun0", "--rate", "8bit", "--burst", "1000b"]);
    let arrivals = [ethertype::IPV4, ethertype::IPV6].map(|ethertype| Arrivals::listen(ns, "tun0", ethertype));

    let v4 = Frame::bare(Network::V4(Ipv4::new(Upper::udp(1, 2, PAYLOAD)))).bytes();
    let v6 = Frame::bare(Network::V6(Ipv6::new(Upper::udp(1, 2, PAYLOAD - 20)))).bytes();
    for packet in [&v4, &v6] {
        assert_eq!(packet.len() as u64, PACKET);
        for _ in 0..25 {
            tun.receive(packet);
        }
    }

    let stats = until("50 packets to be judged", || {
        let stats = tool.stats(Some("tun0")).remove(0);
        (stats.judged_packets() >= 50).then_some(stats)
    });
    assert_eq!((stats.passed_packets, stats.passed_bytes), (20, 20 * PACKET), "{stats:?}");
    assert_eq!((stats.dropped_packets, stats.dropped_bytes), (30, 30 * PACKET), "{stats:?}");
    assert_eq!(arrivals.each_ref().map(Arrivals::count), [10, 10]);
    let flows = tool.flows(Some("tun0"));
    assert_eq!(flows.len(), 2, "{flows:?}");
    assert!(flows.iter().all(|flow| (flow.sport, flow.dport) == (Some(1), Some(2))), "{flows:?}");
}

#[test]
fn sent_packets_cost_their_ip_length() {
    let net = two_ns();
    let mut tun = Tun::create(&net.near.ns, "tun0", "203.0.113.1/24");
    let tool = Tool::on(&net.near);
    tool.ok(&["attach", "tun0", "--direction", "egress", "--rate", "8bit", "--burst", "1000b"]);
    let socket = net.near.ns.run(|| UdpSocket::bind("203.0.113.1:1000")).expect("bind");
    for _ in 0..25 {
        socket.send_to(&[0; PAYLOAD], "203.0.113.2:2000").expect("send");
    }
    let sent = tun.sent();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [PACKET as usize; 10]);
    let stats = &tool.stats(Some("tun0"))[0];
    assert_eq!((stats.passed_packets, stats.passed_bytes), (10, 10 * PACKET), "{stats:?}");
    assert_eq!((stats.dropped_packets, stats.dropped_bytes), (15, 15 * PACKET), "{stats:?}");
    let flow = &tool.flows(Some("tun0"))[0];
    assert_eq!((flow.src.as_deref(), flow.dport), (Some("203.0.113.1"), Some(2000)), "{flow:?}");
}
