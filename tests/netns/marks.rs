//! What a mark is to others: congestion to the receiver of a datagram, a firewall mark to the kernel's routing.

use std::net::{IpAddr, UdpSocket};

use tests::{
    tool::Tool,
    topology::{NetNs, two_ns, until},
    traffic::{Direction, UdpFrame, ethertype},
};

/// Datagrams of each flow, and those of them that fit its bucket.
const SENT: usize = 30;
const FIT: usize = 10;
/// Size of a frame; a bucket holds half a frame more than ten, and earns a byte a second.
const SIZE: usize = 1000;
const LIMIT: &str = "--rate 8bit --burst 10500b";

/// ECN (RFC 3168): the two codepoints of capable transport, and congestion.
const ECT1: u8 = 1;
const ECT0: u8 = 2;
const CE: u8 = 3;
/// The traffic class of AF11.
const AF11: u8 = 10 << 2;

#[test]
fn congestion_is_marked_on_datagrams_of_capable_senders_and_others_are_dropped() {
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--direction {} {LIMIT} --exceed ecn", direction.word()));
        for (v6, ethertype, headers) in [(false, ethertype::IPV4, 42), (true, ethertype::IPV6, 62)] {
            // What the first ten have, and what the others arrive with.
            for (class, above) in [
                (0, None),
                (AF11, None),
                (ECT0, Some(CE)),
                (ECT1, Some(CE)),
                (AF11 | ECT0, Some(AF11 | CE)),
                (AF11 | CE, Some(AF11 | CE)),
            ] {
                let before = limit.stats(direction);
                let arrivals = path.arrivals(ethertype);
                let pair = path.udp_pair(v6);
                pair.set_class(class);
                pair.send(SIZE - headers, SENT);

                let mut classes = vec![class; FIT];
                classes.extend(above.map(|above| [above; SENT - FIT]).into_iter().flatten());
                let stats = until("every datagram to be judged", || {
                    let stats = limit.stats(direction);
                    (stats.judged_packets() == before.judged_packets() + SENT as u64).then_some(stats)
                });
                // The socket takes only datagrams whose checksum is right.
                let mut received = 0;
                until("what passed", || {
                    received += pair.received().len();
                    (received == classes.len()).then_some(())
                });
                assert_eq!(arrivals.classes(), classes, "{direction:?} {class:#x}");
                let marked = classes.iter().filter(|&&arrived| arrived != class).count() as u64;
                assert_eq!(stats.passed_packets - before.passed_packets, classes.len() as u64, "{class:#x} {stats:?}");
                assert_eq!(stats.marked_packets - before.marked_packets, marked, "{class:#x} {stats:?}");
                let [over, over_before] = [&stats, &before].map(|stats| stats.reasons.rate.packets);
                assert_eq!(over - over_before, (SENT - FIT) as u64, "{class:#x} {stats:?}");
            }
        }
    }
}

#[test]
fn a_firewall_mark_decides_the_route_of_what_exceeds_the_rate() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let tool = Tool::on(&net.near);
    only_marked_packets_are_routed(&net.near.ns, &net.near.dev, 7);
    let socket = net.near.ns.run(|| UdpSocket::bind((net.near.v4, 0))).expect("bind");
    socket.set_nonblocking(true).expect("a non-blocking socket");
    let dport = socket.local_addr().expect("an address").port();
    // A firewall mark of another number is none to this rule.
    for (action, expected) in [("mark=7", SENT - FIT), ("mark=0x8", 0), ("pass", 0)] {
        let limit = tool.attach(&format!("{LIMIT} --exceed {action}"));
        let frame = UdpFrame { dst: IpAddr::V4(net.near.v4), dport, len: SIZE, ..path.udp4() };
        let arrivals = path.arrivals(frame.ethertype());
        path.injector().send(&frame, SENT);
        assert_eq!(arrivals.count(), SENT as u64, "{action}");
        let received = std::iter::from_fn(|| socket.recv(&mut [0; SIZE]).ok()).count();
        assert_eq!(received, expected, "{action}");
        let stats = limit.stats(direction);
        let marked = if action == "pass" { 0 } else { SENT - FIT } as u64;
        assert_eq!((stats.passed_packets, stats.marked_packets), (SENT as u64, marked), "{action} {stats:?}");
    }
}

/// Of what a device receives, only packets with this firewall mark find a route.
fn only_marked_packets_are_routed(ns: &NetNs, dev: &str, mark: u32) {
    ns.ip(&format!("rule add pref 10 iif {dev} not fwmark {mark} blackhole"));
    // Local addresses are looked up behind that rule, not before it.
    ns.ip("rule add pref 20 lookup local");
    ns.ip("rule del pref 0");
}
