//! Super-packets cost what their segments cost, and count as that many packets, at every hook.

use tests::{
    tool::{Attached, RuleStats, Tool},
    topology::{Feature, TwoNs, two_ns, until},
    traffic::Direction,
};

const UNLIMITED: &str = "--direction both --rate 1tbit --burst 1024gb";
const BYTES: u64 = 32 << 20;

#[test]
fn tcp_super_packets_count_the_same_at_both_ends() {
    let net = two_ns();
    for v6 in [false, true] {
        let [near, far] = both_ends(&net);
        let sent = net.near.transmitted();
        Direction::Egress.of(&net).tcp_transfer(v6, BYTES);
        let super_packets = net.near.transmitted().since(sent).packets;
        assert!(super_packets * 10 < BYTES / 1448, "segmentation offload is off: {super_packets} packets");
        for direction in Direction::ALL {
            let stats = same(&near, direction, &far, opposite(direction));
            if direction == Direction::Egress {
                // A frame holds at most 1448 bytes of payload, behind at least 66 bytes of headers.
                let (packets, bytes) = (BYTES / 1448, BYTES + BYTES / 1448 * 66);
                assert!(stats.passed_packets >= packets && stats.passed_bytes >= bytes, "{stats:?}");
            }
        }
    }
}

#[test]
fn joined_segments_count_as_what_crossed_the_wire() {
    let net = two_ns();
    // near cuts its super-packets behind the egress hook, far joins the segments before the ingress hook; in between,
    // the device counts frames.
    net.near.offload(Feature::Tso, false);
    net.far.offload(Feature::Gro, true);
    for v6 in [false, true] {
        let [near, far] = both_ends(&net);
        let before = net.near.transmitted();
        Direction::Egress.of(&net).tcp_transfer(v6, BYTES);
        let stats = same(&near, Direction::Egress, &far, Direction::Ingress);
        let frames = net.near.transmitted().since(before);
        assert!(frames.packets > BYTES / 1448, "segmentation offload is on: {frames:?}");
        // With GRO a veth receives by NAPI, and then counts bytes behind the Ethernet header.
        let bytes = frames.bytes + 14 * frames.packets;
        assert_eq!((stats.passed_packets, stats.passed_bytes), (frames.packets, bytes), "{stats:?}");
    }
}

#[test]
fn segmented_datagrams_count_one_by_one() {
    let net = two_ns();
    for (v6, headers) in [(false, 42), (true, 62)] {
        let [near, far] = both_ends(&net);
        let pair = Direction::Egress.of(&net).udp_pair(v6);
        pair.send_segmented(1000, 30, 20);
        let mut datagrams = 0;
        until("600 datagrams", || {
            datagrams += pair.received().len();
            (datagrams >= 600).then_some(())
        });
        let stats = same(&near, Direction::Egress, &far, Direction::Ingress);
        assert_eq!((stats.passed_packets, stats.passed_bytes), (600, 600 * (1000 + headers)), "{stats:?}");
    }
}

#[test]
fn a_super_packet_above_the_burst_is_oversize() {
    let net = two_ns();
    let limit = Tool::on(&net.near).attach("--direction egress --rate 1gbit --burst 16kb");
    let pair = Direction::Egress.of(&net).udp_pair(false);
    pair.send_segmented(1000, 30, 1);
    pair.send_segmented(1000, 10, 1);
    let received = until("the datagrams that fit", || Some(pair.received()).filter(|received| !received.is_empty()));
    assert_eq!(received, [1000; 10], "30 datagrams passed a burst for 15");
    let stats = limit.stats(Direction::Egress);
    let oversize = stats.reasons.oversize;
    assert_eq!((oversize.packets, oversize.bytes), (30, 30 * 1042), "{stats:?}");
}

#[test]
fn a_limit_of_packets_counts_segments() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        for v6 in [false, true] {
            let options = format!("--direction {} --pps 1pps --pps-burst 55", direction.word());
            let limit = Tool::on(&net.near).attach(&options);
            let pair = path.udp_pair(v6);
            // Five of ten segments fit; one of sixty never would.
            pair.send_segmented(500, 10, 8);
            pair.send_segmented(500, 60, 1);
            let stats = until("140 segments to be judged", || {
                Some(limit.stats(direction)).filter(|stats| stats.judged_packets() >= 140)
            });
            let reasons = &stats.reasons;
            let counted = [reasons.conform, reasons.pps, reasons.oversize].map(|count| count.packets);
            assert_eq!(counted, [50, 30, 60], "{stats:?}");
            let mut received = Vec::new();
            until("50 datagrams", || {
                received.extend(pair.received());
                (received.len() >= 50).then_some(())
            });
            assert_eq!(received, [500; 50]);
            let flow = limit.flow(direction);
            assert_eq!([flow.passed_packets, flow.dropped_packets], [50, 90], "{flow:?}");
        }
    }
}

fn both_ends(net: &TwoNs) -> [Attached<'_>; 2] {
    [&net.near, &net.far].map(|host| Tool::on(host).attach(UNLIMITED))
}

const fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Ingress => Direction::Egress,
        Direction::Egress => Direction::Ingress,
    }
}

/// What passed one end, once the other end has seen as much.
fn same(near: &Attached<'_>, out: Direction, far: &Attached<'_>, into: Direction) -> RuleStats {
    let counts = |stats: &RuleStats| (stats.passed_packets, stats.passed_bytes, stats.dropped_packets);
    let mut seen = (0, 0, 0);
    until("equal counts at both ends", || {
        let (near, far) = (near.stats(out), far.stats(into));
        if seen != counts(&far) {
            seen = counts(&far);
            eprintln!("{out:?} {:?}, at the other end {seen:?}", counts(&near));
        }
        (counts(&near) == counts(&far)).then_some(near)
    })
}
