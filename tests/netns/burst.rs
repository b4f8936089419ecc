//! A bucket that does not refill (8 bit/s is a byte a second) passes what fits and not one packet more.

use tests::{
    tool::Tool,
    topology::{TwoNs, two_ns},
    traffic::{Direction, Path, UdpFrame},
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

fn bursts(net: &TwoNs, hook: &str, direction: Direction) {
    let path = direction.of(net);
    for frame in frames(&path) {
        let len = frame.len as u64;
        for burst in [len, 7 * len, 50 * len + len - REFILL] {
            exact(net, &path, hook, &frame, burst);
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

fn exact(net: &TwoNs, path: &Path<'_>, hook: &str, frame: &UdpFrame, burst: u64) {
    let direction = path.direction;
    let options = format!("--hook {hook} --direction {} --rate 8bit --burst {burst}", direction.word());
    let limit = Tool::on(&net.near).attach(&options);
    let arrivals = path.arrivals(frame.ethertype());

    let sent = path.injector().send(frame, SENT as usize);

    let (len, fit) = (frame.len as u64, burst / frame.len as u64);
    assert_eq!(arrivals.count(), fit, "{frame:?} {options}");
    let refused = if direction == Direction::Egress { SENT - fit } else { 0 };
    assert_eq!((sent.frames, sent.refused), (SENT, refused), "{frame:?} {options}");

    let stats = limit.stats(direction);
    assert_eq!((stats.passed_packets, stats.passed_bytes), (fit, fit * len), "{frame:?} {stats:?}");
    assert_eq!((stats.dropped_packets, stats.dropped_bytes), (SENT - fit, (SENT - fit) * len), "{frame:?} {stats:?}");
    assert_eq!((stats.reasons.conform.packets, stats.reasons.rate.packets), (fit, SENT - fit), "{stats:?}");
    let flow = limit.flow(direction);
    assert_eq!((flow.passed_packets, flow.dropped_packets), (fit, SENT - fit), "{flow:?}");
    assert!(flow.level_bytes < len, "{flow:?}");
}

#[test]
fn a_packet_larger_than_the_burst_never_passes() {
    let net = two_ns();
    for path in Direction::ALL.map(|direction| direction.of(&net)) {
        let limit = Tool::on(&net.near).attach(&format!("--direction {} --rate 1gbit --burst 999", path.direction.word()));
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
