//! More rules than the maps have room for: other maps take their place, with every level and every count, under traffic.

use tests::{
    tool::{Config, Tool},
    topology::{Objects, two_ns, until},
    traffic::Direction,
};

/// How many rules there are, one after the other.
const RULES: [u16; 7] = [0, 10, 500, 5000, 500, 10, 0];

/// Those maps are gone that the attachment does not use any more.
fn no_others(before: &Objects, now: &Objects) {
    let kept = |ids: &[u32], of: &[u32]| ids.iter().all(|id| of.contains(id));
    until("the kernel to free what was replaced", || {
        let alive = before.alive();
        (kept(&alive.programs, &now.programs) && kept(&alive.maps, &now.maps)).then_some(())
    });
}

#[test]
fn levels_and_counters_outlive_the_maps() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let tool = Tool::on(&net.near);
    let pins = net.sandbox.pins();
    let config = |rules: u16| {
        Config::of("near0", "rate=8bit burst=6400b total=8bit total-burst=19200b")
            .rule("guests", "match=172.16.0.0/12,2001:db8:20::/48 rate=8bit burst=64000b total=8bit total-burst=8960b")
            .rules(rules, "rate=8bit burst=640b")
    };
    let limit = tool.limit(config(0).text());
    let passes = |remote: &str| path.passes(&path.with_remote(remote.parse().expect("an address")), 30);
    let mut passed = Vec::new();
    let mut objects = net.near.objects();
    for rules in RULES {
        tool.apply(config(rules).text());
        let now = net.near.objects();
        assert_eq!((now.programs.len(), now.maps.len()), (1, objects.maps.len()), "{rules} rules");
        no_others(&objects, &now);
        objects = now;
        assert_eq!(tool.stats(None).len(), 2 + usize::from(rules));
        passed.push([passes("11.0.0.1"), passes("172.16.0.1"), passes("2001:db8:20::1")]);
    }
    // A flow has 100 packets, the guests 140, all together 300: then the device is empty before the flow is.
    assert_eq!(passed, [[30, 30, 30], [30, 30, 30], [30, 20, 0], [10, 0, 0], [0; 3], [0; 3], [0; 3]]);
    let [guests, rest] = ["guests", "default"].map(|rule| limit.rule(direction, rule).reasons);
    assert_eq!([guests.conform.packets, guests.total.packets], [140, 14 * 30 - 140]);
    assert_eq!([rest.conform.packets, rest.rate.packets], [100, 7 * 30 - 100]);
    let flow = limit.flows(direction).into_iter().find(|flow| flow.rule == "default").expect("the flow");
    assert_eq!((flow.passed_packets, flow.dropped_packets), (100, 110), "{flow:?}");
    // The last 60 packets of the device.
    let spare = ["11.0.0.2", "11.0.0.3", "11.0.0.4"].map(passes);
    assert_eq!(spare, [30, 30, 0]);
    assert_eq!(limit.stats(direction).reasons.device_total.packets, 30);
    limit.detach();
    assert_eq!(net.sandbox.pins(), pins);
    until("the kernel to free programs and maps", || objects.alive().is_empty().then_some(()));
}

#[test]
fn growing_during_a_flood_gives_nobody_a_burst_and_loses_no_count() {
    use crate::live::{Bound, under_flood};
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let tool = Tool::on(&net.near);
    // What is charged between the copy of a level and the switch may pass once more, and is taken back after it.
    let bound = Bound { bytes_per_second: 1_000_000, burst: (1 << 20) + 20_000 };
    // What binds is the total of the device, and then that of a rule.
    let of_device =
        |rules: u16| Config::of("near0", "rate=1gbit burst=1gb total=8mbit total-burst=1mb").rules(rules, "rate=1mbit");
    let of_rule = |rules: u16| {
        Config::of("near0", "rate=1gbit burst=1gb")
            .rule("hot", "match=11.0.0.0/8 rate=1gbit burst=1gb total=8mbit total-burst=1mb")
            .rules(rules, "rate=1mbit")
    };
    let configs: [(&str, &dyn Fn(u16) -> Config); 2] = [("default", &of_device), ("hot", &of_rule)];
    for (rule, config) in configs {
        let limit = tool.limit(config(0).text());
        let frame = path.with_remote([11, 0, 0, 1].into());
        let mut last = 0;
        let (sent, readings) = under_flood(&path, &frame, |read| {
            for rules in RULES {
                tool.apply(config(rules).text());
                read();
                let judged = limit.rule(direction, rule).judged_packets();
                assert!(judged >= last, "{rule}: counters stand at {judged}, after {last}");
                last = judged;
            }
        });
        bound.check(&readings);
        bound.check_least(&readings);
        let stats = limit.rule(direction, rule);
        assert_eq!(stats.judged_packets(), sent.frames, "{stats:?}");
        assert_eq!(Some(stats.passed_bytes), readings.last().map(|last| last.bytes), "{stats:?}");
        let flow = limit.flow(direction);
        assert_eq!(flow.passed_packets + flow.dropped_packets, sent.frames, "{rule}: {flow:?}");
    }
}
