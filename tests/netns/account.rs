//! `--account`, `--overhead` and `--mpu`: which bytes of a packet count.

use tests::{
    tool::Tool,
    topology::{two_ns, until},
    traffic::{Direction, UdpFrame},
};

#[test]
fn a_packet_costs_the_bytes_of_the_chosen_account() {
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        let (v4, v6) = (path.udp4(), path.udp6());
        let tagged = UdpFrame { tagged: true, ..v4 };
        let large = UdpFrame { len: 1000, ..v6 };
        for (options, costs) in [
            ("--account l2", [64, 64, 1000]),
            ("--account l3", [50, 46, 986]),
            ("--account wire", [88, 88, 1024]),
            ("--account l2 --overhead 24 --mpu 84", [88, 88, 1024]),
            ("--account l2 --overhead -14 --mpu 60", [60, 60, 986]),
            ("--account l3 --mpu 64", [64, 64, 986]),
        ] {
            let attach = format!("--direction {} --rate 1gbit {options}", direction.word());
            let limit = Tool::on(&net.near).attach(&attach);
            for (frame, cost) in [v4, tagged, large].into_iter().zip(costs) {
                let before = limit.stats(direction).passed_bytes;
                path.injector().send(&frame, 10);
                assert_eq!(limit.stats(direction).passed_bytes - before, 10 * cost, "{options} {frame:?}");
            }
        }
    }
}

#[test]
fn every_size_is_charged_and_counted_to_the_byte() {
    const FIT: u64 = 10;
    const SENT: u64 = 15;
    let net = two_ns();
    for direction in Direction::ALL {
        let path = direction.of(&net);
        for (options, costs) in [
            ("--account l2", [60, 128, 1514]),
            ("--account l3", [46, 114, 1500]),
            ("--account wire", [84, 152, 1538]),
            ("--overhead 18", [78, 146, 1532]),
            ("--overhead -14", [46, 114, 1500]),
            ("--mpu 128", [128, 128, 1514]),
            ("--overhead 10 --mpu 100", [100, 138, 1524]),
            ("--account l3 --overhead 4 --mpu 64", [64, 118, 1504]),
        ] {
            let attach = format!("--direction {} --rate 8bit --burst 1 {options}", direction.word());
            let limit = Tool::on(&net.near).attach(&attach);
            for (sport, (len, cost)) in (1..).zip([60, 128, 1514].into_iter().zip(costs)) {
                // Half a packet more than fits.
                limit.set(&format!("--burst {}", FIT * cost + cost / 2));
                let before = limit.stats(direction);
                let frame = UdpFrame { sport, len, ..path.udp4() };
                path.injector().send(&frame, SENT as usize);
                let stats = limit.stats(direction);
                let [passed, dropped] = [FIT, SENT - FIT].map(|packets| (packets, packets * cost));
                let counted = (stats.passed_packets - before.passed_packets, stats.passed_bytes - before.passed_bytes);
                assert_eq!(counted, passed, "{options} {frame:?}");
                let counted =
                    (stats.dropped_packets - before.dropped_packets, stats.dropped_bytes - before.dropped_bytes);
                assert_eq!(counted, dropped, "{options} {frame:?}");
                let flow = limit.flows(direction).into_iter().find(|flow| flow.sport == Some(sport)).expect("the flow");
                assert_eq!((flow.passed_packets, flow.passed_bytes), passed, "{options} {flow:?}");
                assert_eq!((flow.dropped_packets, flow.dropped_bytes), dropped, "{options} {flow:?}");
            }
        }
    }
}

#[test]
fn every_segment_has_its_own_overhead() {
    let net = two_ns();
    let options = "--direction both --rate 1tbit --burst 1024gb --account wire";
    let [near, far] = [&net.near, &net.far].map(|host| Tool::on(host).attach(options));
    let pair = Direction::Egress.of(&net).udp_pair(false);
    pair.send_segmented(500, 40, 5);
    for (limit, direction) in [(near, Direction::Egress), (far, Direction::Ingress)] {
        let stats = until("200 datagrams", || Some(limit.stats(direction)).filter(|stats| stats.passed_packets >= 200));
        assert_eq!((stats.passed_packets, stats.passed_bytes), (200, 200 * (14 + 20 + 8 + 500 + 24)), "{stats:?}");
    }
}
