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
fn sources_share_a_total_and_what_it_refuses_is_not_charged_to_a_source() {
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        let attach = format!("--direction {} --per src --rate 8bit --burst 60500", direction.word());
        // Each source 60 packets of 1000 bytes, both together 100.
        let limit = Tool::on(&net.near).attach(&format!("{attach} --total 8bit --total-burst 100500"));
        let send = |v6: bool, sport| {
            let frame = if v6 { path.udp6() } else { path.udp4() };
            let frame = UdpFrame { sport, len: 1000, ..frame };
            let arrivals = path.arrivals(frame.ethertype());
            path.injector().send(&frame, SENT as usize);
            arrivals.count()
        };
        assert_eq!([send(false, 1), send(false, 2), send(true, 1), send(true, 2)], [60, 0, 40, 0]);
        let reasons = limit.stats(direction).reasons;
        assert_eq!([reasons.conform.packets, reasons.rate.packets, reasons.device_total.packets], [100, 140, 160]);
        // Without the total, the second source still has what it did not get, and the first has nothing.
        limit.again(&attach);
        assert_eq!([send(false, 3), send(true, 3)], [0, 20]);
        assert_eq!(limit.stats(direction).reasons.rate.packets, 140 + 100 + 80);
    }
}

#[test]
fn packets_and_bytes_are_limited_together_and_what_one_refuses_is_not_charged_to_the_other() {
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        // 20 packets, or 10 of 1000 bytes.
        let options = format!("--direction {} --rate 8bit --burst 10500 --pps 1pps --pps-burst 20", direction.word());
        let limit = Tool::on(&net.near).attach(&options);
        for (sport, len, passed, left) in [(1, 1000, 10, 500), (2, 100, 20, 8500)] {
            let frame = UdpFrame { sport, len, ..path.udp4() };
            let arrivals = path.arrivals(frame.ethertype());
            path.injector().send(&frame, SENT as usize);
            assert_eq!(arrivals.count(), passed, "{frame:?}");
            let flow = limit.flows(direction).into_iter().find(|flow| flow.sport == Some(sport)).expect("the flow");
            let level = flow.level_bytes.expect("a level");
            assert!((left..left + 100).contains(&level), "what was refused was charged, or more: {flow:?}");
        }
        let reasons = limit.stats(direction).reasons;
        assert_eq!([reasons.conform.packets, reasons.rate.packets, reasons.pps.packets], [30, SENT - 10, SENT - 20]);
    }
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
