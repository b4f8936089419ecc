//! Configuration files: what they make of the devices they name, and that a wrong one makes nothing.

use std::thread;

use tests::{
    tool::{Config, Ran, Tool},
    topology::{TwoNs, two_ns, until},
    traffic::{Direction, UdpFrame},
};

/// Everything that the tool says is in force.
fn scene(net: &TwoNs, tool: &Tool<'_>) -> (Vec<String>, String, Vec<u32>) {
    (net.sandbox.pins(), tool.ok(&["save"]).stdout, net.near.objects().maps)
}

fn unchanged(ran: &Ran) -> bool {
    ran.code == Some(0) && ran.text().contains("unchanged") && !ran.text().contains("updated")
}

#[test]
fn apply_creates_updates_and_takes_rules_away() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let keys = "direction=both rate=8bit burst=640b";
    let of_a = "match=10.0.0.1/32 rate=8bit burst=1280b";
    let config = Config::of("near0", keys).rule("a", of_a);
    let limit = tool.limit(config.text());
    assert!(limit.ran.text().contains("attached") || limit.ran.text().contains("created"), "{}", limit.ran);
    let passes = |n: u8, sport| path.passes(&UdpFrame { sport, ..path.with_remote([10, 0, 0, n].into()) }, 100);
    assert_eq!([passes(1, 1), passes(2, 1)], [20, 10]);

    let again = tool.apply(config.text());
    assert!(unchanged(&again), "{again}");
    let more = Config::of("near0", keys).rule("a", of_a).rule("b", "match=10.0.0.2/32 rate=8bit burst=1920b");
    let ran = tool.apply(more.text());
    assert!(ran.text().contains("updated"), "{ran}");
    assert_eq!([passes(1, 2), passes(2, 2), passes(3, 2)], [20, 30, 10]);
    // A rule that is not in the file goes, and one that has the name of another match is for that.
    tool.apply(Config::of("near0", keys).rule("b", "match=10.0.0.3/32 rate=8bit burst=1920b").text());
    assert_eq!([passes(1, 3), passes(2, 3), passes(3, 3)], [10, 10, 30]);
    let rules: Vec<_> = tool.stats(None).into_iter().map(|row| (row.direction, row.rule)).collect();
    let expected = Direction::ALL.map(|direction| ["default", "b"].map(|rule| (direction, rule.to_owned())));
    assert_eq!(rules, expected.concat());
    tool.apply(Config::of("near0", keys).text());
    assert_eq!([passes(1, 4), passes(2, 4), passes(3, 4)], [10; 3]);
}

#[test]
fn a_wrong_file_changes_nothing_and_every_error_is_told() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let keys = "rate=8bit burst=640b";
    let good = Config::of("near0", keys).rule("a", "match=10.0.0.0/8 rate=8bit burst=1280b");
    let _limit = tool.limit(good.text());
    let before = scene(&net, &tool);

    let bad = Config::of("near0", keys)
        .rule("fine", "match=10.0.0.0/8 rate=1mbit")
        .rule("bits", "match=10.1.2.3/16 rate=1mbit")
        .rule("units", "match=10.2.0.0/16 rate=1mbps")
        .rule("nothing", "match=10.3.0.0/16")
        .rule("fine", "match=10.4.0.0/16 rate=1mbit")
        .rule("twice", "match=10.0.0.0/8 rate=2mbit")
        .rule("typo", "match=10.5.0.0/16 rat=1mbit");
    let ran = tool.on_file(&["apply", "-f"], bad.text());
    assert_eq!(ran.code, Some(1), "{ran}");
    for told in ["10.1.0.0/16", "1mbps", "nothing is limited", "`fine`", "10.0.0.0/8", "`rat`"] {
        assert!(ran.stderr.contains(told), "{told} is not told\n{ran}");
    }
    for command in ["check", "diff"] {
        let ran = tool.on_file(&[command], bad.text());
        assert_eq!(ran.code, Some(1), "{ran}");
    }
    let missing = Config::of("near0", "rate=1mbit").device("far0", "rate=1mbit");
    let ran = tool.on_file(&["apply", "-f"], missing.text());
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stderr.contains("far0"), "{ran}");
    assert_eq!(scene(&net, &tool), before);
}

#[test]
fn a_hostile_file_touches_nothing() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let _limit = tool.limit(Config::of("near0", "rate=1mbit").rule("a", "match=10.0.0.0/8 rate=1mbit").text());
    let before = scene(&net, &tool);
    let rule = |name: &str| {
        format!(
            "version = 1\n[[attach]]\ndev = \"near0\"\nrate = \"2mbit\"\n[[attach.rule]]\nname = {name}\nblock = true\n"
        )
    };
    let files = [
        String::new(),
        "\0".repeat(1 << 16),
        "[".repeat(1 << 16),
        format!("version = 1\nattach = {}", "[".repeat(1 << 16)),
        "[[attach]]\n".repeat(1 << 16),
        format!("version = 1\n{}", "a".repeat(1 << 20)),
        "version = 1\n[[attach]]\ndev = \"../../near0\"\nrate = \"2mbit\"\n".to_owned(),
        "version = 1\n[[attach]]\ndev = \"near0\\u0000\"\nrate = \"2mbit\"\n".to_owned(),
        rule("\"\\u001b[2J\""),
        rule("\"../../../x\\n\""),
        rule(&format!("{:?}", "n".repeat(1 << 20))),
        rule("{ a = 1 }"),
        rule("\"default\""),
    ];
    for text in files {
        let ran = tool.on_file(&["apply", "-f"], &text);
        let short: String = text.chars().take(60).collect();
        assert_eq!(ran.code, Some(1), "{short:?}\n{ran}");
        assert!(!ran.text().contains("panicked") && !ran.text().contains('\u{1b}'), "{short:?}\n{ran}");
        assert!(ran.text().len() < 1 << 16, "{short:?}: {} bytes", ran.text().len());
    }
    for path in ["/dev/zero", "/run", "/run/nothing", "/proc/self/mem"] {
        let ran = tool.run(&["apply", "-f", path]);
        assert_eq!(ran.code, Some(1), "{path}\n{ran}");
    }
    assert_eq!(scene(&net, &tool), before);
}

#[test]
fn other_devices_stay_unless_the_file_is_all_there_is_to_be() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    net.near.ns.ip("link add spare type veth peer name spare-peer");
    tool.ok(&["attach", "spare", "--rate", "1mbit"]);
    tool.ok(&["attach", "near0", "--rate", "1mbit", "--direction", "egress"]);
    let config = Config::of("near0", "rate=2mbit").rule("a", "match=10.0.0.0/8 rate=1mbit");
    let places = || {
        let status = tool.status(None).into_iter();
        let mut places: Vec<_> = status.map(|found| format!("{} {}", found.dev, found.direction.word())).collect();
        places.sort();
        places
    };
    tool.apply(config.text());
    assert_eq!(places(), ["near0 egress", "near0 ingress", "spare ingress"]);
    let ran = tool.on_file(&["apply", "--exclusive", "--dry-run", "-f"], config.text());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(places(), ["near0 egress", "near0 ingress", "spare ingress"]);
    let ran = tool.on_file(&["apply", "--exclusive", "-f"], config.text());
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(places(), ["near0 ingress"]);
    tool.ok(&["detach", "--all"]);
}

#[test]
fn what_is_saved_is_what_is_there() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let config = Config::of("near0", "direction=both rate=1mbit total=1gbit per=src max-flows=1000 account=wire")
        .rule("guests", "match=10.20.0.0/16,2001:db8:20::/48 per=src/24 rate=20mbit exceed=dscp=CS1 total=500mbit")
        .rule("dns", "proto=udp sport=53 pps=2kpps")
        .rule("ports", "side=local match=192.0.2.0/24 proto=tcp sport=1-2 dport=3-4 rate=1mbit soft=10%")
        .rule("not", "match=203.0.113.0/24 block")
        .rule("free", "match=203.0.113.7/32 unlimited")
        .device("lo", "direction=egress pps=1kpps");
    let ran = tool.on_file(&["diff"], config.text());
    assert_eq!(ran.code, Some(6), "{ran}");
    tool.apply(config.text());
    let saved = tool.ok(&["save"]).stdout;
    for text in [saved.as_str(), config.text()] {
        let ran = tool.on_file(&["check"], text);
        assert_eq!(ran.code, Some(0), "{text}\n{ran}");
        let ran = tool.on_file(&["diff"], text);
        assert_eq!(ran.code, Some(0), "{text}\n{ran}");
        let ran = tool.apply(text);
        assert!(unchanged(&ran), "{text}\n{ran}");
    }
    assert_eq!(tool.ok(&["save"]).stdout, saved);
    let ran = tool.on_file(&["diff"], &saved.replace("20mbit", "21mbit"));
    assert_eq!(ran.code, Some(6), "{ran}");
    assert!(ran.text().contains("guests"), "{ran}");
    // From nothing it comes to the same.
    tool.ok(&["detach", "--all"]);
    tool.apply(&saved);
    assert_eq!(tool.ok(&["save"]).stdout, saved);
    tool.ok(&["detach", "--all"]);
}

#[test]
fn files_that_are_applied_at_once_end_in_one_of_them() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let before = net.sandbox.pins();
    // Some need other maps or another program than the one before.
    let config = |n: u16| {
        let keys = format!("rate=8bit burst={} overhead={}", 640 * (n + 1), n % 2);
        Config::of("near0", &keys).rules(40 * n, "rate=8bit burst=64b")
    };
    for n in 0..4 {
        tool.write(&format!("/run/{n}.toml"), config(n).text());
    }
    for round in 0..2_u8 {
        let line = ["apply", "-f"];
        let paths = ["/run/0.toml", "/run/1.toml", "/run/2.toml", "/run/3.toml"];
        let ran = thread::scope(|scope| {
            let tool = &tool;
            let start = |path| scope.spawn(move || tool.run(&[&line[..], &[path]].concat()));
            paths.map(start).map(|running| running.join().expect("the tool"))
        });
        for ran in ran {
            assert_eq!(ran.code, Some(0), "round {round}: {ran}");
        }
        let same = |n: &u16| tool.run(&["diff", &format!("/run/{n}.toml")]).code == Some(0);
        let winners: Vec<u16> = (0..4).filter(same).collect();
        let [winner] = winners[..] else { panic!("round {round}: {winners:?}\n{}", tool.state()) };
        let path = Direction::Ingress.of(&net);
        // Those with an overhead of a byte take 65 for each packet.
        let of_default = path.with_remote([11, 0, 0, round].into());
        let passed = u64::from(640 * (winner + 1) / (64 + winner % 2));
        assert_eq!(path.passes(&of_default, 100), passed, "round {round}, {winner} in force");
        let objects = net.near.objects();
        assert_eq!(objects.programs.len(), 1, "round {round}: {objects:?}");
    }
    let objects = net.near.objects();
    tool.ok(&["detach", "--all"]);
    assert_eq!(net.sandbox.pins(), before);
    until("the kernel to free programs and maps", || objects.alive().is_empty().then_some(()));
}
