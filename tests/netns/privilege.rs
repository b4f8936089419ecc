//! Who may use the tool.

use std::os::unix::fs::chown;

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, ethertype},
};

/// `nobody`.
const NOBODY: u32 = 65_534;
const AS_NOBODY: [&str; 6] = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
const ENOUGH: [&str; 2] = ["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"];

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let net = two_ns();
    let before = net.sandbox.pins();
    for tool in [Tool::inside(&net.near), Tool::on(&net.near)] {
        let tool = tool.for_everybody().through(&AS_NOBODY);
        let ran = tool.fails(4, &["attach", &net.near.dev, "--rate", "1mbit"]);
        assert!(ran.stderr.contains("root") && ran.stderr.contains("CAP_"), "{ran}");
        assert_eq!(ran.stderr.lines().count(), 2, "{ran}");
    }
    assert_eq!(net.sandbox.pins(), before);
    assert!(net.near.objects().is_empty());
}

#[test]
fn an_ordinary_user_cannot_look_and_is_not_told_that_there_is_nothing() {
    let net = two_ns();
    let _limit = Tool::on(&net.near).attach("--rate 1mbit");
    let nobody = Tool::inside(&net.near).for_everybody().through(&AS_NOBODY);
    for command in [&["status"][..], &["stats"], &["flows"], &["detach", "--all"], &["set", "near0", "--rate", "2mbit"]]
    {
        nobody.fails(4, command);
    }
    assert_eq!(Tool::on(&net.near).status(None)[0].rate_bits_per_second, Some(1_000_000));
}

#[test]
fn an_ordinary_user_cannot_look_into_a_bpffs_of_our_own_either() {
    let net = two_ns();
    net.sandbox.remove_bpffs();
    let limit = Tool::on(&net.near).attach("--rate 1mbit");
    let nobody = Tool::inside(&net.near).for_everybody().through(&AS_NOBODY);
    for command in [
        &["status"][..],
        &["stats"],
        &["flows"],
        &["detach", "--all"],
        &["detach", "near0"],
        &["set", "near0", "--rate", "2mbit"],
        &["attach", "near0", "--rate", "2mbit", "--dry-run"],
    ] {
        nobody.fails(4, command);
    }
    limit.detach();
}

#[test]
fn where_process_1_cannot_be_seen_nobody_says_that_there_is_nothing() {
    let net = two_ns();
    let _limit = Tool::on(&net.near).attach("--rate 1mbit");
    let script = "umount /sys/fs/bpf && exec \"$@\"";
    let wrapper = [&["unshare", "--mount", "sh", "-c", script, "sh"][..], &AS_NOBODY].concat();
    // As if no command had made it, on a machine whose tool pins in the usual place.
    net.sandbox.command("chmod 755 /run/shaper");
    Tool::inside(&net.near).for_everybody().through(&wrapper).fails(4, &["status"]);
}

#[test]
fn three_capabilities_are_enough() {
    let net = two_ns();
    // What a service manager does for a service of another user (RuntimeDirectory=).
    net.sandbox.command("mkdir /run/shaper");
    net.sandbox.run(|| chown("/run/shaper", Some(NOBODY), Some(NOBODY))).expect("chown");
    let wrapper = [&AS_NOBODY[..], &ENOUGH].concat();
    let tool = Tool::inside(&net.near).for_everybody().through(&wrapper);
    for hook in crate::HOOKS {
        let limit = tool.attach(&format!("--hook {hook} --direction both --rate 8bit --burst 640b"));
        for path in Direction::ALL.map(|direction| direction.of(&net)) {
            let arrivals = path.arrivals(ethertype::IPV4);
            path.injector().send(&path.udp4(), 30);
            assert_eq!(arrivals.count(), 10);
            let stats = limit.stats(path.direction);
            assert_eq!((stats.passed_packets, stats.dropped_packets), (10, 20));
            assert_eq!(limit.flow(path.direction).passed_packets, 10);
        }
        limit.set("--rate 1mbit");
        limit.again(&format!("--hook {hook} --direction both --rate 2mbit --overflow closed"));
        assert_eq!(tool.status(None).len(), 2);
        limit.detach();
        assert_eq!(net.sandbox.pins(), [""; 0]);
        assert!(net.near.objects().is_empty());
    }
}
