//! Several limits, several namespaces, several commands at once.

use tests::{
    tool::Tool,
    topology::{Host, two_ns},
    traffic::{Direction, ethertype},
};

#[test]
fn limits_of_two_namespaces_are_told_apart() {
    let net = two_ns();
    let hosts = [&net.near, &net.far];
    // Same index, same sandbox: only the namespace differs.
    assert_eq!(net.near.ifindex(), net.far.ifindex());
    let tools = hosts.map(Tool::on);
    let _limits =
        [("1mbit", &tools[0]), ("2mbit", &tools[1])].map(|(rate, tool)| tool.attach(&format!("--rate {rate}")));
    let shown = |tool: &Tool<'_>| {
        let status = tool.status(None).into_iter();
        status.map(|one| (one.netns, one.dev, one.rate_bits_per_second)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&tools[0]), [(Some("near".into()), "near0".into(), Some(1_000_000))]);
    assert_eq!(shown(&tools[1]), [(Some("far".into()), "far0".into(), Some(2_000_000))]);
    tools[0].ok(&["detach", "--all"]);
    assert_eq!(shown(&tools[0]), []);
    assert_eq!(shown(&tools[1]).len(), 1);
}

#[test]
fn a_namespace_is_the_same_by_name_and_from_inside() {
    let net = two_ns();
    let (by_name, inside) = (Tool::on(&net.near), Tool::inside(&net.near));
    let limit = inside.attach("--rate 1mbit");
    assert_eq!(by_name.status(None).len(), 1);
    let again = by_name.run(&["attach", "near0", "--rate", "1mbit"]);
    assert!(again.code == Some(0) && again.text().contains("unchanged"), "{again}");
    limit.set("--rate 2mbit");
    assert_eq!(by_name.status(None)[0].rate_bits_per_second, Some(2_000_000));
    by_name.ok(&["detach", "near0"]);
    assert_eq!(inside.status(None), []);
}

#[test]
fn commands_at_once_wait_for_each_other() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let before = net.sandbox.pins();
    let rates = ["1mbit", "2mbit", "3mbit", "4mbit"];
    for round in 0..5 {
        let attach = rates.map(|rate| tool.start(&["attach", "near0", "--direction", "both", "--rate", rate]));
        let set = rates.map(|rate| tool.start(&["set", "near0", "--rate", rate]));
        for mut child in attach {
            assert!(child.wait().expect("wait").success(), "an attach of round {round} failed");
        }
        for mut child in set {
            // 3: it came before the first attach.
            assert!(matches!(child.wait().expect("wait").code(), Some(0 | 3)), "a set of round {round} failed");
        }
        let status = tool.status(None);
        assert_eq!(status.len(), 2, "{status:?}");
        assert_eq!(status[0].rate_bits_per_second, status[1].rate_bits_per_second, "a command was divided: {status:?}");
        assert_eq!(net.near.objects().programs.len(), 2);
        tool.ok(&["detach", "--all"]);
        assert_eq!(net.sandbox.pins(), before);
    }
}

#[test]
fn both_directions_have_their_own_buckets() {
    let net = two_ns();
    let Host { dev, .. } = &net.near;
    let tool = Tool::on(&net.near);
    tool.ok(&["attach", dev, "--rate", "8bit", "--burst", "640b"]);
    tool.ok(&["attach", dev, "--direction", "egress", "--rate", "8bit", "--burst", "1280b"]);
    for (path, fit) in Direction::ALL.map(|direction| direction.of(&net)).into_iter().zip([10, 20]) {
        let arrivals = path.arrivals(ethertype::IPV4);
        path.injector().send(&path.udp4(), 30);
        assert_eq!(arrivals.count(), fit, "{:?}", path.direction);
    }
    let bursts: Vec<_> = tool.status(Some(dev)).into_iter().map(|one| one.burst_bytes).collect();
    assert_eq!(bursts, [Some(640), Some(1280)]);
}
