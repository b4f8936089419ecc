//! Devices that vanish, come back, or change their name.

use tests::{
    tool::Tool,
    topology::{TwoNs, two_ns},
    traffic::{Direction, ethertype},
};

use crate::HOOKS;

/// Ten packets of 64 bytes.
const LIMIT: [&str; 4] = ["--rate", "8bit", "--burst", "640b"];

#[test]
fn a_vanished_device_is_gone_and_can_be_cleaned_up() {
    for hook in HOOKS {
        let net = two_ns();
        let tool = Tool::on(&net.near);
        let before = net.sandbox.pins();
        for cleanup in [&["detach", "near0"][..], &["detach", "--all"]] {
            attach(&net, &tool, hook);
            net.unplug();
            let status = tool.status(None);
            assert_eq!((status.len(), status[0].state.as_str()), (1, "gone"), "{hook}: {status:?}");
            assert_eq!(status[0].dev, "near0");
            tool.ok(&["status"]);
            tool.ok(&["stats"]);
            tool.ok(&["flows"]);
            tool.ok(cleanup);
            assert_eq!(tool.status(None), []);
            assert_eq!(net.sandbox.pins(), before, "{hook}");
            net.plug(None);
        }
    }
}

#[test]
fn a_new_device_with_the_old_index_is_another_device() {
    for hook in HOOKS {
        let net = two_ns();
        let tool = Tool::on(&net.near);
        let before = net.sandbox.pins();
        let index = net.near.ifindex();
        attach(&net, &tool, hook);
        assert_eq!(arriving(&net, 30), 10);

        net.unplug();
        net.plug(Some(index));
        assert_eq!(net.near.ifindex(), index);
        let status = tool.status(None);
        assert_eq!((status.len(), status[0].state.as_str()), (1, "gone"), "{hook}: {status:?}");
        assert_eq!(arriving(&net, 30), 30, "{hook}");

        // A new attachment with a new bucket takes the place of the old one.
        attach(&net, &tool, hook);
        let status = tool.status(None);
        assert_eq!((status.len(), status[0].state.as_str()), (1, "active"), "{hook}: {status:?}");
        assert_eq!(arriving(&net, 30), 10, "{hook}");
        let stats = &tool.stats(None)[0];
        assert_eq!((stats.passed_packets, stats.dropped_packets), (10, 20), "{hook}: {stats:?}");
        tool.ok(&["detach", "--all"]);
        assert_eq!(net.sandbox.pins(), before, "{hook}");
        assert!(net.near.objects().is_empty(), "{hook}");
    }
}

#[test]
fn limits_of_a_gone_device_cannot_be_changed() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let index = net.near.ifindex();
    attach(&net, &tool, "tcx");
    net.unplug();
    net.plug(Some(index));
    tool.fails(3, &["set", "near0", "--rate", "1mbit"]);
    tool.ok(&["detach", "near0"]);
}

#[test]
fn a_renamed_device_is_shown_with_its_new_name() {
    for hook in HOOKS {
        let mut net = two_ns();
        {
            let tool = Tool::on(&net.near);
            attach(&net, &tool, hook);
            net.near.ns.ip("link set near0 down");
            net.near.ns.ip("link set near0 name wan0");
            net.near.ns.ip("link set wan0 up");
        }
        net.near.dev = "wan0".to_owned();
        net.near.wait_for_carrier();
        let tool = Tool::on(&net.near);
        let status = tool.status(Some("wan0"));
        assert_eq!(
            (status.len(), status[0].dev.as_str(), status[0].state.as_str()),
            (1, "wan0", "active"),
            "{status:?}"
        );
        assert_eq!(arriving(&net, 30), 10);
        assert_eq!(tool.stats(Some("wan0"))[0].dropped_packets, 20);
        tool.fails(1, &["status", "near0"]);
        tool.ok(&["set", "wan0", "--rate", "16bit"]);
        tool.ok(&["detach", "wan0"]);
        assert_eq!(tool.status(None), []);
        assert!(net.near.objects().is_empty(), "{hook}");
    }
}

fn attach(net: &TwoNs, tool: &Tool<'_>, hook: &str) {
    tool.ok(&[&["attach", net.near.dev.as_str(), "--hook", hook][..], &LIMIT].concat());
}

/// How many of so many packets arrive.
fn arriving(net: &TwoNs, sent: usize) -> u64 {
    let path = Direction::Ingress.of(net);
    let arrivals = path.arrivals(ethertype::IPV4);
    path.injector().send(&path.udp4(), sent);
    arrivals.count()
}
