//! `lo`, where each packet crosses both hooks.

use std::net::UdpSocket;

use tests::{tool::Tool, topology::two_ns, traffic::Direction};

#[test]
fn both_directions_of_lo_are_refused() {
    let net = two_ns();
    let before = net.sandbox.pins();
    let ran = Tool::on(&net.near).fails(1, &["attach", "lo", "--direction", "both", "--rate", "1mbit"]);
    assert!(ran.stderr.contains("lo"), "{ran}");
    assert_eq!(net.sandbox.pins(), before);
}

#[test]
fn the_second_direction_of_lo_is_refused_too() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    tool.ok(&["attach", "lo", "--direction", "ingress", "--rate", "1mbit"]);
    let before = net.sandbox.pins();
    tool.fails(1, &["attach", "lo", "--direction", "egress", "--rate", "1mbit"]);
    assert_eq!(net.sandbox.pins(), before);
    tool.ok(&["detach", "--all"]);
}

#[test]
fn a_packet_on_lo_is_charged_once() {
    /// Frames of 100 bytes of payload and 42 of headers; ten fit.
    const BURST: &str = "1420b";
    let net = two_ns();
    let tool = Tool::on(&net.near);
    for direction in Direction::ALL {
        tool.ok(&["attach", "lo", "--direction", direction.word(), "--rate", "8bit", "--burst", BURST]);
        let [sender, receiver] = net.near.ns.run(|| [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("bind")));
        receiver.set_nonblocking(true).expect("non-blocking");
        let to = receiver.local_addr().expect("an address");
        for _ in 0..25 {
            sender.send_to(&[0; 100], to).expect("send");
        }
        // On lo, sending is receiving: nothing is on its way when the last call returns.
        let received = std::iter::from_fn(|| receiver.recv(&mut [0; 200]).ok()).count();
        let stats = &tool.stats(Some("lo"))[0];
        assert_eq!((stats.passed_packets, stats.dropped_packets), (10, 15), "{direction:?} {stats:?}");
        assert_eq!(received, 10, "{direction:?}");
        tool.ok(&["detach", "lo"]);
    }
}
