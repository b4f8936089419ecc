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
