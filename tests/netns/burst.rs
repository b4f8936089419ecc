//! A bucket that does not refill (8 bit/s is a byte a second) passes what fits and not one packet more.

use tests::{
    tool::{Attached, RuleStats, Tool},
    topology::{TwoNs, two_ns},
    traffic::{Direction, Injector, Path, UdpFrame},
};

use crate::HOOKS;

/// Packets sent at once; more than any burst below holds.
const SENT: u64 = 100;

/// Bytes that 8 bit/s can add while a test runs, generously.
const REFILL: u64 = 20;

#[test]
fn a_burst_passes_exactly_the_packets_that_fit_on_tcx_ingress() {
    bursts(&two_ns(), HOOKS[0], Direction::Ingress);
}

#[test]
fn a_burst_passes_exactly_the_packets_that_fit_on_tcx_egress() {
    bursts(&two_ns(), HOOKS[0], Direction::Egress);
}

#[test]
fn a_burst_passes_exactly_the_packets_that_fit_on_clsact_ingress() {
    bursts(&two_ns(), HOOKS[1], Direction::Ingress);
}

#[test]
fn a_burst_passes_exactly_the_packets_that_fit_on_clsact_egress() {
    bursts(&two_ns(), HOOKS[1], Direction::Egress);
}

/// Each case is a flow of its own, with a full bucket of the burst that is then in force.
fn bursts(net: &TwoNs, hook: &str, direction: Direction) {
    let path = direction.of(net);
    let options = |burst| format!("--hook {hook} --direction {} --rate 8bit --burst {burst}", direction.word());
    let limit = Tool::on(&net.near).attach(&options(1));
    let injector = path.injector();
    let mut sport = 1000;
    for frame in frames(&path) {
        let len = frame.len as u64;
        for burst in [len, 7 * len, 50 * len + len - REFILL] {
            limit.again(&options(burst));
            sport += 1;
            exact(&limit, &path, &injector, &UdpFrame { sport, ..frame }, burst);
        }
    }
}

fn frames(path: &Path<'_>) -> Vec<UdpFrame> {
    let (v4, v6) = (path.udp4(), path.udp6());
    let mut frames: Vec<UdpFrame> = [60, 64, 65, 590, 1514].map(|len| UdpFrame { len, ..v4 }).into();
    frames.extend([62, 128, 1514].map(|len| UdpFrame { len, ..v6 }));
    frames.extend([64, 1518].map(|len| UdpFrame { len, tagged: true, ..v4 }));
    frames.extend([66, 1518].map(|len| UdpFrame { len, tagged: true, ..v6 }));
    frames
}

fn exact(limit: &Attached<'_>, path: &Path<'_>, injector: &Injector<'_>, frame: &UdpFrame, burst: u64) {
    let direction = path.direction;
    let (len, fit) = (frame.len as u64, burst / frame.len as u64);
    let over = SENT - fit;
    let before = limit.stats(direction);
    let arrivals = path.arrivals(frame.ethertype());

    let sent = injector.send(frame, SENT as usize);

    assert_eq!(arrivals.count(), fit, "{frame:?}, burst {burst}");
    let refused = if direction == Direction::Egress { over } else { 0 };
    assert_eq!((sent.frames, sent.refused), (SENT, refused), "{frame:?}, burst {burst}");

    let stats = limit.stats(direction);
    let packets = |part: fn(&RuleStats) -> u64| part(&stats) - part(&before);
    assert_eq!((packets(|s| s.passed_packets), packets(|s| s.passed_bytes)), (fit, fit * len), "{stats:?}");
    assert_eq!((packets(|s| s.dropped_packets), packets(|s| s.dropped_bytes)), (over, over * len), "{stats:?}");
    assert_eq!(packets(|s| s.reasons.conform.packets), fit, "{stats:?}");
    assert_eq!(packets(|s| s.reasons.rate.packets), over, "{stats:?}");
    let flow = limit.flows(direction).into_iter().find(|flow| flow.sport == Some(frame.sport)).expect("the flow");
    assert_eq!((flow.passed_packets, flow.dropped_packets), (fit, over), "{flow:?}");
    assert!(flow.level_bytes.is_some_and(|level| level < len), "{flow:?}");
}

#[test]
fn a_packet_larger_than_the_burst_never_passes() {
    let net = two_ns();
    for path in Direction::ALL.map(|direction| direction.of(&net)) {
        let limit =
            Tool::on(&net.near).attach(&format!("--direction {} --rate 1gbit --burst 999", path.direction.word()));
        let arrivals = path.arrivals(path.udp4().ethertype());
        let injector = path.injector();
        injector.send(&UdpFrame { len: 1000, ..path.udp4() }, 10);
        assert_eq!(arrivals.count(), 0);
        injector.send(&UdpFrame { len: 999, ..path.udp4() }, 1);
        assert_eq!(arrivals.count(), 1);
        let reasons = limit.stats(path.direction).reasons;
        assert_eq!((reasons.oversize.packets, reasons.oversize.bytes), (10, 10_000));
        assert_eq!((reasons.conform.packets, reasons.rate.packets), (1, 0));
    }
}
