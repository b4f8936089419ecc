//! Detaching leaves the machine as it was: nothing of ours stays, nothing of anybody else's goes.

use tests::{
    tool::Tool,
    topology::{Foreign, Host, TwoNs, two_ns, until},
    traffic::{Direction, ethertype},
};

use crate::HOOKS;

/// What can be seen from outside of programs, filters, qdiscs and pins.
#[derive(Debug, PartialEq, Eq)]
struct Scene {
    pins: Vec<String>,
    qdiscs: String,
    filters: [String; 2],
    programs: Vec<u32>,
}

impl Scene {
    fn of(net: &TwoNs) -> Self {
        let Host { ns, dev, .. } = &net.near;
        Self {
            pins: net.sandbox.pins(),
            qdiscs: ns.tc(&format!("qdisc show dev {dev}")),
            filters: ["ingress", "egress"].map(|hook| ns.tc(&format!("filter show dev {dev} {hook}"))),
            programs: net.near.objects().programs,
        }
    }
}

#[test]
fn detach_leaves_nothing() {
    for hook in HOOKS {
        let net = two_ns();
        let before = Scene::of(&net);
        for direction in ["ingress", "egress", "both"] {
            let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --direction {direction} --rate 1mbit"));
            Direction::Ingress.of(&net).injector().send(&Direction::Ingress.of(&net).udp4(), 10);
            let objects = net.near.objects();
            assert!(!objects.programs.is_empty() && objects.maps.len() >= 6, "{hook} {direction}: {objects:?}");
            limit.detach();
            assert_eq!(Scene::of(&net), before, "{hook} {direction}");
            until("the kernel to free programs and maps", || objects.alive().is_empty().then_some(()));
        }
    }
}

#[test]
fn detach_all_leaves_nothing() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    net.near.ns.ip("link add spare type veth peer name spare-peer");
    let before = Scene::of(&net);
    for dev in [&net.near.dev, "spare", "lo"] {
        tool.ok(&["attach", dev, "--rate", "1mbit"]);
    }
    tool.ok(&["attach", &net.near.dev, "--rate", "1mbit", "--direction", "egress", "--hook", "clsact"]);
    let objects = net.near.objects();
    assert_eq!(tool.status(None).len(), 4);
    tool.ok(&["detach", "--all"]);
    assert_eq!(tool.status(None), []);
    assert_eq!(Scene::of(&net), before);
    until("the kernel to free programs and maps", || objects.alive().is_empty().then_some(()));
}

#[test]
fn one_direction_can_go_alone() {
    for hook in HOOKS {
        let net = two_ns();
        let tool = Tool::on(&net.near);
        let limit = tool.attach(&format!("--hook {hook} --direction both --rate 8bit --burst 640b"));
        tool.ok(&["detach", &net.near.dev, "--direction", "ingress"]);
        let [ingress, egress] = Direction::ALL.map(|direction| {
            let path = direction.of(&net);
            let arrivals = path.arrivals(ethertype::IPV4);
            path.injector().send(&path.udp4(), 30);
            arrivals.count()
        });
        assert_eq!((ingress, egress), (30, 10));
        assert_eq!(tool.status(None).len(), 1);
        drop(limit);
        assert_eq!(tool.status(None), []);
    }
}

#[test]
fn foreign_filters_and_qdiscs_stay() {
    let net = two_ns();
    let Host { ns, dev, .. } = &net.near;
    ns.tc(&format!("qdisc add dev {dev} root tbf rate 1gbit burst 1mb latency 50ms"));
    ns.tc(&format!("qdisc add dev {dev} clsact"));
    for hook in ["ingress", "egress"] {
        ns.tc(&format!("filter add dev {dev} {hook} protocol all pref 7 u32 match u32 0 0 classid 1:1"));
    }
    let _drops = Foreign::on_clsact_ingress(&net.near, 49_000);
    let before = Scene::of(&net);
    for hook in HOOKS {
        let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --direction both --rate 1mbit"));
        assert_ne!(Scene::of(&net), before);
        limit.detach();
        assert_eq!(Scene::of(&net), before, "{hook}");
    }
}

#[test]
fn what_others_added_meanwhile_stays() {
    for hook in HOOKS {
        let net = two_ns();
        let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --rate 1gbit"));
        let _drops = match hook {
            "tcx" => Foreign::on_tcx_ingress(&net.near),
            _ => Foreign::on_clsact_ingress(&net.near, 65_000),
        };
        limit.detach();
        let path = Direction::Ingress.of(&net);
        let arrivals = path.arrivals(ethertype::IPV4);
        path.injector().send(&path.udp4(), 10);
        assert_eq!(arrivals.count(), 0, "{hook}: the foreign program is gone");
    }
}
