//! Two rates and three colours (RFC 2698): what fits the rate, what fits the peak only, and the rest, seen in the traffic
//! class of the packets that arrive.

use tests::{
    tool::{RuleStats, Tool},
    topology::two_ns,
    traffic::{Direction, UdpFrame},
};

/// Packets sent at once, and their size.
const SENT: usize = 100;
const SIZE: usize = 1000;

/// Buckets of half a packet more than 10 and than 30, which do not refill: a byte a second and two.
const PEAK: &str = "--rate 8bit --burst 10500b --peak 16bit --peak-burst 30500b";
/// The same peak bucket by a share of the rate.
const SOFT: &str = "--rate 8bit --burst 10500b --soft 25% --peak-burst 30500b";

/// Traffic classes of AF11 and AF12 (RFC 2597) in packets that are not ECN-capable.
const AF11: u8 = 10 << 2;
const AF12: u8 = 12 << 2;

/// What must come of packets in the order in which they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    /// How many arrive of the three colours, and with which class.
    arrive: [(usize, u8); 3],
    /// Counted as `conform`, `rate` and `peak`.
    reasons: [u64; 3],
    marked: u64,
}

/// Sends a burst of each family in each direction.
fn colours(limits: &str, expected: Expected) {
    let classes: Vec<u8> = expected.arrive.into_iter().flat_map(|(count, class)| vec![class; count]).collect();
    for direction in Direction::ALL {
        let net = two_ns();
        let path = direction.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--direction {} {limits}", direction.word()));
        for frame in [path.udp4(), path.udp6()].map(|frame| UdpFrame { len: SIZE, ..frame }) {
            let arrivals = path.arrivals(frame.ethertype());
            path.injector().send(&frame, SENT);
            assert_eq!(arrivals.classes(), classes, "{limits} {frame:?}");
        }
        let RuleStats { reasons, passed_packets, dropped_packets, marked_packets, .. } = limit.stats(direction);
        let counted = [reasons.conform, reasons.rate, reasons.peak].map(|count| count.packets);
        let passed = classes.len() as u64;
        assert_eq!(counted, expected.reasons.map(|packets| 2 * packets), "{limits} {reasons:?}");
        assert_eq!(
            [passed_packets, dropped_packets, marked_packets],
            [passed, SENT as u64 - passed, expected.marked].map(|packets| 2 * packets),
            "{limits} {reasons:?}"
        );
        for flow in limit.flows(direction) {
            assert_eq!([flow.passed_packets, flow.marked_packets], [passed, expected.marked], "{limits} {flow:?}");
        }
    }
}

#[test]
fn what_exceeds_the_rate_is_marked_and_what_exceeds_the_peak_is_dropped() {
    let expected = Expected { arrive: [(10, 0), (20, AF11), (0, 0)], reasons: [10, 20, 70], marked: 20 };
    colours(&format!("{PEAK} --exceed dscp=AF11"), expected);
    colours(&format!("{SOFT} --exceed dscp=AF11"), expected);
}

#[test]
fn what_exceeds_the_peak_can_be_marked_too() {
    let expected = Expected { arrive: [(10, 0), (20, AF11), (70, AF12)], reasons: [10, 20, 70], marked: 90 };
    colours(&format!("{PEAK} --exceed dscp=AF11 --violate dscp=AF12"), expected);
}

#[test]
fn what_exceeds_the_rate_can_pass_as_it_is() {
    let expected = Expected { arrive: [(10, 0), (20, 0), (0, 0)], reasons: [10, 20, 70], marked: 0 };
    colours(&format!("{PEAK} --exceed pass"), expected);
}

#[test]
fn what_is_dropped_above_the_rate_is_not_charged_to_the_peak() {
    let expected = Expected { arrive: [(10, 0), (0, 0), (0, 0)], reasons: [10, 90, 0], marked: 0 };
    colours(PEAK, expected);
    colours(&format!("{SOFT} --violate pass"), expected);
}
