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

/// The pin directory of the only attachment.
fn directory(net: &TwoNs) -> String {
    let pins = net.sandbox.pins();
    let pin = pins.iter().find(|pin| pin.contains("ingress/OWNER")).expect("a pinned OWNER");
    let path = pin.split_whitespace().find(|word| word.starts_with('/')).expect("a path");
    path.trim_end_matches("/OWNER").to_owned()
}

/// How many of 30 packets, of which 10 fit the limit, arrive.
fn arriving(net: &TwoNs) -> u64 {
    let path = Direction::Ingress.of(net);
    let arrivals = path.arrivals(ethertype::IPV4);
    path.injector().send(&path.udp4(), 30);
    arrivals.count()
}

const TEN: &str = "--rate 8bit --burst 640b";

#[test]
fn a_damaged_attachment_is_told_and_taken_away() {
    for hook in HOOKS {
        for damage in ["rm DIR/OWNER", "rm DIR/prog", "mv DIR/COUNTERS DIR/OWNER", "mv DIR/RULES DIR/prog"] {
            for detach in [&["detach", "near0"][..], &["detach", "--all"]] {
                let net = two_ns();
                let tool = Tool::on(&net.near);
                let before = Scene::of(&net).pins;
                let limit = tool.attach(&format!("--hook {hook} {TEN}"));
                let directory = directory(&net);
                tool.ok(&["attach", "lo", "--rate", "1mbit"]);
                net.sandbox.command(&damage.replace("DIR", &directory));
                let story = format!("{hook}, {damage}, {detach:?}");
                assert_eq!(arriving(&net), 10, "{story}: it limits still");
                for command in ["status", "stats", "flows"] {
                    let ran = tool.fails(2, &[command]);
                    assert!(ran.stderr.contains("near0 ingress"), "{story}: {ran}");
                    assert!(ran.stderr.contains("shaper -n near detach near0"), "{story}: {ran}");
                    assert!(ran.stdout.contains("lo"), "{story}: what is sound is shown: {ran}");
                    tool.fails(2, &[command, "near0"]);
                    tool.ok(&[command, "lo"]);
                }
                tool.fails(2, &["set", "near0", "--rate", "1mbit"]);
                tool.fails(2, &["attach", "near0", "--rate", "1mbit"]);
                tool.ok(&["set", "lo", "--rate", "2mbit"]);
                let ran = tool.ok(detach);
                assert!(ran.stdout.contains("near0 ingress"), "{story}: {ran}");
                assert_eq!(arriving(&net), 30, "{story}: it limits no more");
                assert!(net.near.objects().is_empty() || detach[1] != "--all", "{story}");
                tool.ok(&["detach", "--all"]);
                tool.ok(&["status"]);
                assert_eq!(net.sandbox.pins(), before, "{story}");
                drop(limit);
            }
        }
    }
}

#[test]
fn a_filter_without_pins_is_told_and_taken_away_or_replaced() {
    for all in [false, true] {
        let net = two_ns();
        let tool = Tool::on(&net.near);
        let orphan = || {
            tool.ok(&["attach", "near0", "--hook", "clsact", "--rate", "8bit", "--burst", "640b"]);
            let directory = directory(&net);
            let rubbish = if all { directory.split("/v").next().expect("the top") } else { &directory };
            net.sandbox.command(&format!("rm -r {rubbish}"));
            assert_eq!(arriving(&net), 10, "it limits still");
        };
        orphan();
        for command in [&["status"][..], &["stats"], &["flows"], &["status", "near0"], &["flows", "near0"]] {
            let ran = tool.fails(2, command);
            assert!(ran.stderr.contains("near0 ingress"), "{ran}");
        }
        for detach in [&["detach", "near0"][..], &["detach", "--all"]] {
            tool.ok(detach);
            assert_eq!(arriving(&net), 30);
            tool.ok(&["status"]);
            orphan();
        }
        for hook in HOOKS {
            tool.ok(&["attach", "near0", "--hook", hook, "--rate", "8bit", "--burst", "1280b"]);
            assert_eq!(arriving(&net), 20, "{hook}");
            tool.ok(&["status"]);
            tool.ok(&["detach", "near0"]);
            orphan();
        }
        tool.ok(&["detach", "near0"]);
        assert!(net.near.objects().is_empty());
    }
}

#[test]
fn an_entry_of_somebody_else_blocks_no_other_device() {
    for hook in HOOKS {
        let net = two_ns();
        let tool = Tool::on(&net.near);
        let before = net.sandbox.pins();
        tool.ok(&["attach", "near0", "--hook", hook, "--rate", "8bit", "--burst", "640b"]);
        let directory = directory(&net);
        net.sandbox.command(&format!("mkdir {directory}/alien"));
        let ran = tool.fails(2, &["detach", "near0"]);
        assert!(ran.stderr.contains("alien"), "{ran}");
        assert_eq!(arriving(&net), 30, "{hook}");
        tool.ok(&["attach", "lo", "--rate", "1mbit"]);
        tool.ok(&["set", "lo", "--rate", "2mbit"]);
        tool.ok(&["detach", "lo"]);
        net.sandbox.command(&format!("rmdir {directory}/alien"));
        tool.ok(&["detach", "--all"]);
        assert_eq!(net.sandbox.pins(), before);
    }
}

#[test]
fn attachments_of_another_version_are_told() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    net.sandbox.command("mkdir -p -m 700 /sys/fs/bpf/shaper/v9999/1-2-ingress");
    net.sandbox.command("chmod 700 /sys/fs/bpf/shaper");
    for command in
        [&["status"][..], &["stats"], &["flows"], &["detach", "--all"], &["attach", "near0", "--rate", "1mbit"]]
    {
        let ran = tool.fails(2, command);
        assert!(ran.stderr.contains("v9999") && ran.stderr.contains("detach --all"), "{ran}");
    }
    assert!(net.near.objects().is_empty());
    net.sandbox.command("rm -r /sys/fs/bpf/shaper");
    tool.ok(&["status"]);
}

#[test]
fn a_clsact_qdisc_that_took_the_place_of_ours_stays() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    tool.ok(&["attach", "near0", "--hook", "clsact", "--rate", "1mbit"]);
    net.near.ns.tc("qdisc del dev near0 clsact");
    net.near.ns.tc("qdisc add dev near0 clsact");
    assert_eq!(tool.status(None)[0].state, "gone");
    tool.ok(&["detach", "near0"]);
    assert!(net.near.ns.tc("qdisc show dev near0").contains("clsact"));
    assert_eq!(tool.status(None), []);
}
