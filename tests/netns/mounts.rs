//! Where pins live: machines without a bpffs, and programs with another view of /sys.

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, ethertype},
};

const LIMIT: [&str; 4] = ["--rate", "8bit", "--burst", "640b"];

#[test]
fn without_a_bpffs_the_tool_mounts_its_own_and_says_so() {
    let net = two_ns();
    net.sandbox.remove_bpffs();
    let tool = Tool::on(&net.near);
    let limit = tool.attach(&LIMIT.join(" "));
    assert!(limit.ran.stderr.contains("/run/shaper/bpf"), "{}", limit.ran);
    assert_eq!(tool.status(None).len(), 1);
    limits_ten(&net);
    let again = limit.again(&LIMIT.join(" "));
    assert!(again.text().contains("unchanged"), "{again}");
    limit.detach();
    assert_eq!(net.sandbox.pins(), [""; 0]);
}

#[test]
fn looking_mounts_nothing() {
    let net = two_ns();
    net.sandbox.remove_bpffs();
    let tool = Tool::on(&net.near);
    let mounts = || net.sandbox.command("cat /proc/self/mounts");
    let before = mounts();
    assert_eq!(tool.status(None), []);
    tool.fails(3, &["status", &net.near.dev]);
    tool.fails(3, &["detach", &net.near.dev]);
    tool.ok(&["attach", &net.near.dev, "--rate", "1mbit", "--dry-run"]);
    assert_eq!(mounts(), before);
}

#[test]
fn inside_ip_netns_exec_the_limit_stays() {
    let net = two_ns();
    let outside = Tool::on(&net.near);
    let exec = Tool::inside(&net.near).through(&["ip", "netns", "exec", "near"]);
    exec.ok(&[&["attach", net.near.dev.as_str()][..], &LIMIT].concat());
    limits_ten(&net);
    let status = outside.status(None);
    assert_eq!((status.len(), status[0].state.as_str()), (1, "active"), "{status:?}");
    exec.ok(&["detach", &net.near.dev]);
    assert_eq!(outside.status(None), []);
    assert_eq!(net.sandbox.pins(), [""; 0]);
}

#[test]
fn inside_ip_netns_exec_without_a_bpffs_outside_the_way_out_is_named() {
    let net = two_ns();
    net.sandbox.remove_bpffs();
    let exec = Tool::inside(&net.near).through(&["ip", "netns", "exec", "near"]);
    let ran = exec.fails(2, &[&["attach", net.near.dev.as_str()][..], &LIMIT].concat());
    assert!(ran.stderr.contains("-n"), "{ran}");
    assert!(net.near.objects().is_empty());
}

#[test]
fn a_private_mount_namespace_does_not_hide_the_pins() {
    let net = two_ns();
    let outside = Tool::on(&net.near);
    let script = "umount /sys/fs/bpf && exec \"$@\"";
    let private = Tool::on(&net.near).through(&["unshare", "--mount", "sh", "-c", script, "sh"]);
    private.ok(&[&["attach", net.near.dev.as_str()][..], &LIMIT].concat());
    assert_eq!(outside.status(None).len(), 1);
    limits_ten(&net);
    outside.ok(&["detach", &net.near.dev]);
    assert_eq!(net.sandbox.pins(), [""; 0]);
}

fn limits_ten(net: &tests::topology::TwoNs) {
    let path = Direction::Ingress.of(net);
    let arrivals = path.arrivals(ethertype::IPV4);
    path.injector().send(&path.udp4(), 30);
    assert_eq!(arrivals.count(), 10);
}
