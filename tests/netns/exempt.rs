//! What is never limited: the traffic that finds neighbours and routers, and everything that is not IP.

use std::net::UdpSocket;

use tests::{
    frames::{ARP, Frame, Ipv6, Network, Upper},
    tool::Tool,
    topology::{Host, two_ns, until},
    traffic::{Direction, Path, ethertype},
};

/// A limit that no packet passes.
const NOTHING: &str = "--rate 8bit --burst 1b";

#[test]
fn arp_and_neighbour_discovery_pass_a_limit_that_nothing_passes() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--direction {} {NOTHING}", direction.word()));
        let arrivals = [ethertype::ARP, ethertype::IPV6].map(|ethertype| path.arrivals(ethertype));
        let injector = path.injector();

        let arp = addressed(&path, Network::Other(ARP, vec![0; 46]));
        injector.send_all(&[&arp[..]; 50]);
        assert_eq!(arrivals[0].count(), 50);
        for kind in 133..=137 {
            let message = addressed(&path, icmpv6(kind, 255));
            injector.send_all(&[&message[..]; 10]);
        }
        assert_eq!(arrivals[1].count(), 50);

        // From beyond the link, or of another kind: limited like everything else.
        for forged in [icmpv6(135, 254), icmpv6(132, 255), icmpv6(138, 255)] {
            injector.send_all(&[&addressed(&path, forged)[..]; 10]);
        }
        assert_eq!(arrivals[1].count(), 50);
        let stats = limit.stats(direction);
        // Nine fences are not IP either.
        assert_eq!(stats.exempt_packets, 50 + 50 + 9, "{stats:?}");
        assert_eq!((stats.passed_packets, stats.dropped_packets), (0, 30), "{stats:?}");
    }
}

#[test]
fn addresses_are_resolved_under_a_limit_that_nothing_passes() {
    let net = two_ns();
    let [ingress, egress] = Direction::ALL.map(|direction| direction.of(&net));
    let heard = [
        [ethertype::ARP, ethertype::IPV6].map(|ethertype| ingress.arrivals(ethertype)),
        [ethertype::ARP, ethertype::IPV6].map(|ethertype| egress.arrivals(ethertype)),
    ];
    let limit = Tool::on(&net.near).attach(&format!("--direction both {NOTHING}"));
    for (host, v6) in [(&net.near, "2001:db8:1::1/64"), (&net.far, "2001:db8:1::2/64")] {
        let Host { ns, dev, .. } = host;
        ns.ip(&format!("link set {dev} arp on"));
        ns.ip(&format!("neigh flush dev {dev} nud permanent"));
        ns.ip(&format!("addr add {v6} dev {dev} nodad"));
    }

    for (from, to) in [("192.0.2.2", "192.0.2.1"), ("2001:db8:1::2", "2001:db8:1::1")] {
        let socket = net.far.ns.run(|| UdpSocket::bind((from, 0))).expect("bind");
        socket.send_to(b"where are you?", (to, 9)).expect("send");
        until("the neighbour's address", || {
            net.far.ns.ip(&format!("neigh show {to}")).contains("02:00:00:00:00:01").then_some(())
        });
    }

    for (direction, heard) in Direction::ALL.into_iter().zip(heard) {
        // The hosts may go on to confirm what they know of each other.
        let (stats, exempt) = until("equal counts of what was exempt", || {
            let (stats, exempt) = (limit.stats(direction), heard.iter().map(|arrivals| arrivals.count()).sum::<u64>());
            (stats.exempt_packets == exempt).then_some((stats, exempt))
        });
        assert!(exempt >= 2, "{direction:?}: a question or an answer is missing");
        assert_eq!(stats.passed_packets, 0, "{stats:?}");
    }
}

fn icmpv6(kind: u8, hop_limit: u8) -> Network {
    Network::V6(Ipv6 { hop_limit, ..Ipv6::new(Upper::icmpv6(kind, 24)) })
}

fn addressed(path: &Path<'_>, network: Network) -> Vec<u8> {
    let mut frame = Frame::ethernet(network).bytes();
    frame[..6].copy_from_slice(&path.to.mac);
    frame[6..12].copy_from_slice(&path.from.mac);
    frame
}
