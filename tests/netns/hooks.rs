//! Living with others on the same hook.

use tests::{
    tool::Tool,
    topology::{Foreign, two_ns},
    traffic::{Direction, ethertype},
};

use crate::HOOKS;

#[test]
fn auto_is_tcx_where_the_kernel_has_it() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    for (choice, hook) in [("auto", "tcx"), ("tcx", "tcx"), ("clsact", "clsact")] {
        let _limit = tool.attach(&format!("--hook {choice} --rate 1mbit"));
        assert_eq!(tool.status(Some(&net.near.dev))[0].hook, hook);
    }
}

#[test]
fn the_hook_can_be_changed_in_place() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let path = Direction::Ingress.of(&net);
    let limit = tool.attach("--hook tcx --rate 8bit --burst 640b");
    let arrivals = path.arrivals(ethertype::IPV4);
    for hook in ["clsact", "tcx"] {
        limit.again(&format!("--hook {hook} --rate 8bit --burst 640b"));
        assert_eq!(tool.status(Some(&net.near.dev))[0].hook, hook);
        assert_eq!(net.near.objects().programs.len(), 1, "{hook}: {:?}", net.near.objects());
        path.injector().send(&path.udp4(), 4);
    }
    path.injector().send(&path.udp4(), 12);
    assert_eq!(arrivals.count(), 10);
    let stats = limit.stats(Direction::Ingress);
    assert_eq!((stats.passed_packets, stats.dropped_packets), (10, 10), "{stats:?}");
}

#[test]
fn packets_that_pass_go_on_to_the_next_program() {
    for hook in HOOKS {
        let net = two_ns();
        let path = Direction::Ingress.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --rate 1gbit"));
        let _drops = match hook {
            "tcx" => Foreign::on_tcx_ingress(&net.near),
            _ => Foreign::on_clsact_ingress(&net.near, 65_000),
        };
        let arrivals = path.arrivals(ethertype::IPV4);
        path.injector().send(&path.udp4(), 100);
        assert_eq!(limit.stats(Direction::Ingress).passed_packets, 100, "{hook}");
        assert_eq!(arrivals.count(), 0, "{hook}: the next program did not run");
    }
}

#[test]
fn first_runs_before_others_and_last_behind_them() {
    for hook in HOOKS {
        for (order, seen) in [("first", 100), ("last", 0)] {
            let net = two_ns();
            let path = Direction::Ingress.of(&net);
            let tool = Tool::on(&net.near);
            if hook == "clsact" {
                net.near.ns.tc("qdisc add dev near0 clsact");
            }
            let _drops = match hook {
                "tcx" => Foreign::on_tcx_ingress(&net.near),
                _ => Foreign::on_clsact_ingress(&net.near, 100),
            };
            let limit = tool.attach(&format!("--hook {hook} --order {order} --rate 1gbit"));
            path.injector().send(&path.udp4(), 100);
            assert_eq!(limit.stats(Direction::Ingress).judged_packets(), seen, "{hook} {order}");
        }
    }
}

#[test]
fn a_foreign_ingress_qdisc_blocks_clsact_with_a_clear_error() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let dev = &net.near.dev;
    net.near.ns.tc("qdisc add dev near0 ingress");
    let before = (net.sandbox.pins(), net.near.ns.tc("qdisc show dev near0"));
    let ran = tool.fails(2, &["attach", dev, "--hook", "clsact", "--rate", "1mbit"]);
    assert!(ran.stderr.contains("ingress") && ran.stderr.contains("qdisc"), "{ran}");
    assert_eq!((net.sandbox.pins(), net.near.ns.tc("qdisc show dev near0")), before);
    // TCX does not mind.
    let _limit = tool.attach("--hook tcx --rate 1mbit");
}
