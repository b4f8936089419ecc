//! `explain` says what the next packet meets, and then it does; `rule list` shows what was asked for.

use std::net::IpAddr;

use tests::{
    tool::{Attached, Config, Layer, Tool},
    topology::{TwoNs, two_ns},
    traffic::{Direction, UdpFrame},
};

/// Asks about each frame before it is sent, and checks the answer against what becomes of it. Returns the reasons.
fn foretold(net: &TwoNs, limit: &Attached<'_>, direction: Direction, frame: &UdpFrame, count: usize) -> Vec<String> {
    let path = direction.of(net);
    let mut reasons = Vec::new();
    for n in 0..count {
        let said = limit.explain(direction, frame);
        let case = format!("{direction:?}, {frame:?}, number {n}: {said:?}");
        let before = limit.rule(direction, &said.rule);
        let arrived = path.passes(frame, 1);
        let after = limit.rule(direction, &said.rule);
        let (was, is) = (before.reasons.of(&said.reason), after.reasons.of(&said.reason));
        assert_eq!((is.packets - was.packets, is.bytes - was.bytes), (1, said.cost_bytes), "{case}");
        assert_eq!(arrived == 1, said.verdict == "pass", "{case}");
        assert_eq!(after.marked_packets - before.marked_packets, u64::from(said.marked), "{case}");
        if said.reason == "conform" {
            assert_charged(&said.layers, &limit.explain(direction, frame).layers, &case);
        }
        reasons.push(said.reason);
    }
    reasons
}

/// Each limit has lost what the packet costs: 64 bytes, or one packet. Where more than a byte is earned meanwhile, less.
fn assert_charged(before: &[Layer], after: &[Layer], case: &str) {
    assert_eq!(before.len(), after.len(), "{case}");
    for (before, after) in before.iter().zip(after) {
        let cost = if before.reason == "pps" { 1 } else { 64 };
        assert_eq!((&before.reason, before.burst), (&after.reason, after.burst), "{case}");
        // 8 bit/s earn a byte a second.
        assert!((before.level - cost..=before.level - cost + 3).contains(&after.level), "{case}, then {after:?}");
    }
}

fn frame(net: &TwoNs, direction: Direction, remote: &str) -> UdpFrame {
    direction.of(net).with_remote(remote.parse::<IpAddr>().expect("an address"))
}

#[test]
fn what_is_said_of_a_packet_is_what_becomes_of_it() {
    let net = two_ns();
    for (direction, per) in
        Direction::ALL.into_iter().flat_map(|direction| ["", "per=pair"].map(|per| (direction, per)))
    {
        let config = Config::of("near0", &format!("direction={} rate=8bit burst=192b", direction.word()))
            .rule("few", &format!("match=10.1.0.0/16 {per} rate=8bit burst=256b pps=1pps pps-burst=100"))
            .rule("all", "match=10.2.0.0/16,2001:db8:2::/48 rate=8bit burst=640b total=8bit total-burst=128b")
            .rule("nobody", "match=10.3.0.0/16 block")
            .rule("marked", "match=10.4.0.0/16 rate=8bit burst=64b exceed=dscp=CS1")
            .rule("any", "match=10.5.0.0/16 unlimited")
            .rule("small", "match=10.6.0.0/16 rate=8bit burst=63b")
            .rule("port", "match=10.1.0.0/16 port=9 rate=8bit burst=320b");
        let limit = Tool::on(&net.near).limit(config.text());
        let said = |remote: &str, count| foretold(&net, &limit, direction, &frame(&net, direction, remote), count);
        let runs = |words: &[(&str, usize)]| -> Vec<String> {
            words.iter().flat_map(|(word, count)| vec![(*word).to_owned(); *count]).collect()
        };
        assert_eq!(said("11.0.0.1", 5), runs(&[("conform", 3), ("rate", 2)]));
        // To port 9: the rule that names it.
        assert_eq!(said("10.1.0.1", 7), runs(&[("conform", 5), ("rate", 2)]));
        assert_eq!(said("10.2.0.1", 1), runs(&[("conform", 1)]));
        assert_eq!(said("2001:db8:2::1", 3), runs(&[("conform", 1), ("total", 2)]));
        assert_eq!(said("10.3.0.1", 2), runs(&[("blocked", 2)]));
        assert_eq!(said("10.4.0.1", 3), runs(&[("conform", 1), ("rate", 2)]));
        assert_eq!(said("10.5.0.1", 4), runs(&[("conform", 4)]));
        assert_eq!(said("10.6.0.1", 2), runs(&[("oversize", 2)]));
        let other = UdpFrame { dport: 10, ..frame(&net, direction, "10.1.0.1") };
        assert_eq!(foretold(&net, &limit, direction, &other, 6), runs(&[("conform", 4), ("rate", 2)]));
    }
}

#[test]
fn what_is_said_of_a_packet_is_true_without_rules_and_after_they_change() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let limit =
        Tool::on(&net.near).attach("--rate 8bit --burst 320b --pps 1 --pps-burst 90 --total 8bit --total-burst 640b");
    let flow = frame(&net, direction, "10.0.0.1");
    assert_eq!(foretold(&net, &limit, direction, &flow, 3), ["conform"; 3]);
    limit.change_rules("add 10.0.0.0/8 --name a --rate 8bit --burst 320b");
    // The flow has not been seen since: it brings what it owes.
    assert_eq!(limit.explain(direction, &flow).layers[0].level / 64, 2);
    assert_eq!(foretold(&net, &limit, direction, &flow, 3), ["conform", "conform", "rate"]);
    limit.change_rules("add 10.0.0.1 --name b --unlimited");
    assert_eq!(
        foretold(&net, &limit, direction, &flow, 6),
        ["conform", "conform", "conform", "conform", "conform", "device_total"]
    );
}

#[test]
fn rules_are_listed_as_they_were_given() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let limit = tool.attach("--rate 1mbit");
    limit.change_rules(
        "add 10.20.0.0/16 2001:db8:20::/48 --name guests --rate 20mbit --burst 1mb --total 5gbit --side local",
    );
    limit.change_rules("add --proto udp --port 53 --pps 200 --per src/24");
    limit.change_rules("add 192.0.2.0/24 --proto tcp --sport 1 --dport 80-90 --name web --block");
    let rules = tool.rules(&net.near.dev);
    let row = |n: usize| {
        let rule = &rules[n];
        let ports = [&rule.port, &rule.sport, &rule.dport].map(|port| port.as_deref().unwrap_or("-"));
        let numbers =
            [rule.rate_bits_per_second, rule.burst_bytes, rule.rate_packets_per_second, rule.total_bits_per_second];
        let words = [&rule.name, &rule.r#match.join(" "), &rule.per, &rule.action].map(|word| word.to_owned());
        let [side, proto] = [&rule.side, &rule.proto].map(|word| word.as_deref().unwrap_or("-"));
        (words.join(", "), format!("{side} {proto} {}", ports.join(" ")), numbers, rule.block)
    };
    let expected = [
        ("default, , flow, drop", "- - - - -", [Some(1_000_000), Some(262_144), None, None], false),
        (
            "guests, 10.20.0.0/16 2001:db8:20::/48, flow, drop",
            "local - - - -",
            [Some(20_000_000), Some(1 << 20), None, Some(5_000_000_000)],
            false,
        ),
        ("any udp port 53, , src/24,64, drop", "remote udp 53 - -", [None, None, Some(200), None], false),
        ("web, 192.0.2.0/24, flow, block", "remote tcp - 1 80-90", [None; 4], true),
    ];
    assert_eq!(rules.len(), expected.len());
    for (n, (words, matches, numbers, block)) in expected.into_iter().enumerate() {
        assert_eq!(row(n), (words.to_owned(), matches.to_owned(), numbers, block));
    }
}
