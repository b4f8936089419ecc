//! Other limits than a rate, and other actions than to drop, through the tool and on real packets.

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, UdpFrame},
};

/// Packets sent at once.
const SENT: u64 = 100;

#[test]
fn a_burst_of_packets_passes_exactly_whatever_their_size() {
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        let options = format!("--direction {} --pps 1pps --pps-burst 10", direction.word());
        let limit = Tool::on(&net.near).attach(&options);
        for (sport, len) in [(1, 60), (2, 1514)] {
            let frame = UdpFrame { sport, len, ..path.udp4() };
            let arrivals = path.arrivals(frame.ethertype());
            path.injector().send(&frame, SENT as usize);
            assert_eq!(arrivals.count(), 10, "{frame:?}");
        }
        let stats = limit.stats(direction);
        assert_eq!((stats.reasons.conform.packets, stats.reasons.pps.packets), (20, 2 * SENT - 20), "{stats:?}");
    }
}

#[test]
fn flows_share_a_total_and_what_their_own_limit_drops_does_not_count() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    // Each flow 60 packets of 100 bytes, all together 100.
    let limit = Tool::on(&net.near).attach("--rate 8bit --burst 6050 --total 8bit --total-burst 10050");
    let send = |sport| {
        let frame = UdpFrame { sport, len: 100, ..path.udp4() };
        let arrivals = path.arrivals(frame.ethertype());
        path.injector().send(&frame, SENT as usize);
        arrivals.count()
    };
    assert_eq!([send(1), send(2), send(3)], [60, 40, 0]);
    let reasons = limit.stats(direction).reasons;
    assert_eq!([reasons.conform.packets, reasons.rate.packets, reasons.device_total.packets], [100, 40, 160]);
}

#[test]
fn what_exceeds_the_rate_passes_with_a_mark_if_that_is_asked_for() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let options = format!("--direction {} --rate 8bit --burst 1050 --exceed dscp=CS1", direction.word());
        let limit = Tool::on(&net.near).attach(&options);
        let frame = UdpFrame { len: 100, ..path.udp6() };
        let arrivals = path.arrivals(frame.ethertype());
        path.injector().send(&frame, SENT as usize);
        assert_eq!(arrivals.count(), SENT);
        let stats = limit.stats(direction);
        assert_eq!((stats.passed_packets, stats.dropped_packets, stats.marked_packets), (SENT, 0, SENT - 10));
        assert_eq!((stats.reasons.conform.packets, stats.reasons.rate.packets), (10, SENT - 10));
        assert_eq!(limit.flow(direction).marked_packets, SENT - 10);
    }
}

#[test]
fn a_limit_that_is_added_later_takes_nothing_from_the_counters() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let limit = Tool::on(&net.near).attach("--rate 8bit --burst 5050");
    let frame = UdpFrame { len: 100, ..path.udp4() };
    let send = |count: usize| {
        let arrivals = path.arrivals(frame.ethertype());
        path.injector().send(&frame, count);
        arrivals.count()
    };
    assert_eq!(send(20), 20);
    limit.set("--pps 1pps --pps-burst 5");
    // Bytes for 30 more, packets for 5.
    assert_eq!(send(20), 5);
    // The rate keeps its level, and the limit that is gone its clock.
    limit.again("--rate 8bit --burst 5050");
    assert_eq!(send(40), 25);
    let stats = limit.stats(direction);
    assert_eq!((stats.passed_packets, stats.dropped_packets), (50, 30), "{stats:?}");
}

#[test]
fn a_block_lets_nothing_through() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let limit = Tool::on(&net.near).attach("--block");
    let arrivals = path.arrivals(path.udp4().ethertype());
    path.injector().send(&path.udp4(), SENT as usize);
    assert_eq!(arrivals.count(), 0);
    assert_eq!(limit.stats(direction).reasons.blocked.packets, SENT);
}
