//! The harness itself, without the tool: what is injected arrives, all of it and nothing else.

use std::{thread, time::Duration};

use tests::{
    topology::{Feature, two_ns, until},
    traffic::{Direction, UdpFrame, ethertype},
};

#[test]
fn a_fresh_cable_is_silent() {
    let net = two_ns();
    // Longer than any timer of neighbour, router or group discovery waits before it sends something first.
    thread::sleep(Duration::from_millis(1500));
    for host in [&net.near, &net.far] {
        assert_eq!((host.received().packets, host.transmitted().packets), (0, 0), "{}", host.dev);
    }
}

#[test]
fn injected_frames_arrive_exactly_once() {
    let net = two_ns();
    for path in Direction::ALL.map(|direction| direction.of(&net)) {
        let injector = path.injector();
        for frame in [
            path.udp4(),
            UdpFrame { len: 60, ..path.udp4() },
            UdpFrame { len: 1514, ..path.udp4() },
            UdpFrame { len: 1518, tagged: true, ..path.udp4() },
            UdpFrame { len: 64, ..path.udp6() },
            UdpFrame { len: 1514, ..path.udp6() },
        ] {
            let arrivals = path.arrivals(frame.ethertype());
            let before = path.to.received();
            let sent = injector.send(&frame, 1000);
            assert_eq!((sent.frames, sent.refused), (1000, 0), "{frame:?}");
            assert_eq!(arrivals.count(), 1000, "{frame:?}");
            let received = path.to.received().since(before);
            // The injector's fence is one frame of 60 bytes more.
            assert_eq!((received.packets, received.bytes), (1001, 1000 * frame.len as u64 + 60), "{frame:?}");
        }
    }
}

#[test]
fn two_cpus_inject_at_once() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let arrivals = path.arrivals(ethertype::IPV4);
    thread::scope(|scope| {
        for cpu in 0..2 {
            scope.spawn(move || path.injector().on_cpu(cpu).send(&path.udp4(), 50_000));
        }
    });
    assert_eq!(arrivals.count(), 100_000);
}

#[test]
fn arrivals_can_be_read() {
    let net = two_ns();
    let path = Direction::Egress.of(&net);
    let arrivals = path.arrivals(ethertype::IPV4);
    let frame = UdpFrame { sport: 1234, ..path.udp4() };
    path.injector().send(&frame, 3);
    assert_eq!(arrivals.frames(), vec![frame.bytes(); 3]);
    assert_eq!(arrivals.frames(), Vec::<Vec<u8>>::new());
}

#[test]
fn sockets_carry_datagrams_and_streams() {
    let net = two_ns();
    for path in Direction::ALL.map(|direction| direction.of(&net)) {
        for v6 in [false, true] {
            let pair = path.udp_pair(v6);
            pair.send(100, 500);
            pair.send_segmented(1000, 30, 10);
            let mut received = Vec::new();
            until("800 datagrams", || {
                received.extend(pair.received());
                (received.len() >= 800).then_some(())
            });
            assert_eq!(received, [vec![100; 500], vec![1000; 300]].concat());
            path.tcp_transfer(v6, 8 << 20);
        }
    }
}

#[test]
fn offloads_can_be_switched_off() {
    let net = two_ns();
    let path = Direction::Egress.of(&net);
    let bytes = 4 << 20;
    let largest = |packets: u64| bytes / packets;
    let before = path.to.received();
    path.tcp_transfer(false, bytes);
    let joined = path.to.received().since(before).packets;
    assert!(largest(joined) > 3000, "no super-packets by default: {joined} packets");

    for host in [&net.near, &net.far] {
        host.send_single_frames();
        host.offload(Feature::Gro, false);
    }
    let before = path.to.received();
    path.tcp_transfer(false, bytes);
    let single = path.to.received().since(before).packets;
    assert!(largest(single) < 1500, "super-packets: {single} packets");
}
