//! Limits that change under traffic: nobody gets a burst for it, nobody loses credit, and no counter is lost.

use std::{
    thread,
    time::{Duration, Instant},
};

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, ethertype},
};

use crate::HOOKS;

#[test]
fn set_keeps_the_level_of_a_bucket() {
    for hook in HOOKS {
        let net = two_ns();
        let path = Direction::Ingress.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --rate 8bit --burst 6400b"));
        let arrivals = path.arrivals(ethertype::IPV4);
        let injector = path.injector();
        let passes = |count| {
            let before = arrivals.count();
            injector.send(&path.udp4(), count);
            arrivals.count() - before
        };
        assert_eq!(passes(60), 60);
        // 40 packets are left, whatever the depth of the bucket becomes, until it is less than that.
        limit.set("--burst 64000b");
        assert_eq!(passes(10), 10);
        limit.set("--rate 16bit");
        assert_eq!(passes(10), 10);
        limit.set("--rate 8bit --burst 6400b");
        assert_eq!(passes(10), 10);
        limit.set("--burst 320b");
        assert_eq!(passes(50), 5);
        limit.set("--burst 640000b");
        assert_eq!(passes(50), 0);

        let stats = limit.stats(Direction::Ingress);
        assert_eq!((stats.passed_packets, stats.dropped_packets), (95, 95), "{stats:?}");
        assert_eq!(limit.flow(Direction::Ingress).passed_packets, 95);
    }
}

#[test]
fn a_burst_that_was_not_given_follows_the_rate() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let limit = tool.attach("--rate 100mbit");
    let burst = || tool.status(Some(&net.near.dev))[0].burst_bytes;
    assert_eq!(burst(), Some(3_125_000));
    limit.set("--rate 1gbit");
    assert_eq!(burst(), Some(31_250_000));
    limit.set("--rate 1mbit");
    assert_eq!(burst(), Some(262_144));
    limit.set("--burst 1mb");
    limit.set("--rate 2mbit");
    assert_eq!(burst(), Some(1 << 20));
}

#[test]
fn set_during_a_flood_gives_nobody_a_burst() {
    /// Bits per second, each for about a third of a second.
    const RATES: [u64; 8] =
        [10_000_000, 40_000_000, 5_000_000, 20_000_000, 5_000_000, 40_000_000, 8_000_000, 10_000_000];
    const BURST: u64 = 1 << 20;
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let limit = Tool::on(&net.near).attach(&format!("--rate {} --burst {BURST}b", RATES[0]));
    let arrivals = path.arrivals(ethertype::IPV4);

    let (flood, changes) = thread::scope(|scope| {
        let flood = scope.spawn(|| path.injector().flood(&path.udp4(), Duration::from_millis(3300)));
        // A change takes effect at some moment between these two.
        let mut changes: Vec<(Instant, Instant)> = Vec::new();
        for rate in &RATES[1..] {
            thread::sleep(Duration::from_millis(330));
            let before = Instant::now();
            limit.set(&format!("--rate {rate}"));
            changes.push((before, Instant::now()));
        }
        (flood.join().expect("the flood"), changes)
    });

    assert!(changes.last().expect("changes").1 < flood.end, "the flood ended before the changes");
    let (most, least) = allowed(&RATES, &changes, flood.start, flood.end);
    let stats = limit.stats(Direction::Ingress);
    assert_eq!(stats.judged_packets(), flood.sent.frames, "{stats:?}");
    assert_eq!(arrivals.count(), stats.passed_packets);
    assert_eq!(limit.flow(Direction::Ingress).passed_packets, stats.passed_packets);
    let passed = stats.passed_bytes as f64;
    assert!(passed <= BURST as f64 + most, "{passed} bytes passed, {BURST} + {most} are allowed");
    assert!(passed >= 0.98 * (BURST as f64 + least), "{passed} bytes passed, {BURST} + {least} were due");
}

/// Bytes that the rates send from `start` to `end`: at most, and at least.
fn allowed(rates: &[u64], changes: &[(Instant, Instant)], start: Instant, end: Instant) -> (f64, f64) {
    let integral = |pick_late: fn(u64, u64) -> bool| {
        let mut since = start;
        let mut bytes = 0.0;
        for (pair, (before, after)) in rates.windows(2).zip(changes) {
            let until = if pick_late(pair[0], pair[1]) { *after } else { *before };
            bytes += pair[0] as f64 / 8.0 * (until - since).as_secs_f64();
            since = until;
        }
        bytes + rates[rates.len() - 1] as f64 / 8.0 * (end - since).as_secs_f64()
    };
    (integral(|old, new| old > new), integral(|old, new| old < new))
}

#[test]
fn attaching_again_changes_in_place() {
    for hook in HOOKS {
        let net = two_ns();
        let path = Direction::Ingress.of(&net);
        let tool = Tool::on(&net.near);
        let options = format!("--hook {hook} --rate 8bit --burst 6400b");
        let limit = tool.attach(&options);
        let arrivals = path.arrivals(ethertype::IPV4);
        let injector = path.injector();
        injector.send(&path.udp4(), 60);
        let objects = net.near.objects();

        let again = limit.again(&options);
        assert!(again.text().contains("unchanged"), "{again}");
        assert_eq!(net.near.objects(), objects, "something was replaced");
        injector.send(&path.udp4(), 10);

        // Limits alone, and then something that needs another program.
        for (round, change) in ["", "--overflow closed", "--overflow closed --mpu 64"].into_iter().enumerate() {
            let changed = limit.again(&format!("--hook {hook} --rate 8bit --burst 64000b {change}"));
            assert!(changed.text().contains("updated"), "{changed}");
            assert_eq!(net.near.objects().programs.len(), 1, "{:?}", net.near.objects());
            injector.send(&path.udp4(), 5);
            assert_eq!(arrivals.count(), 75 + 5 * round as u64, "{change}");
        }
        injector.send(&path.udp4(), 100);

        let stats = limit.stats(Direction::Ingress);
        assert_eq!((stats.passed_packets, stats.dropped_packets), (100, 85), "{stats:?}");
        assert_eq!(arrivals.count(), 100);
        assert_eq!(limit.flow(Direction::Ingress).passed_packets, 100);
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let before = (net.sandbox.pins(), net.near.objects());
    tool.ok(&["attach", &net.near.dev, "--rate", "1mbit", "--dry-run"]);
    assert_eq!((net.sandbox.pins(), net.near.objects()), before);

    let limit = tool.attach("--rate 1mbit");
    let before = (net.sandbox.pins(), net.near.objects(), tool.status(None));
    limit.set("--rate 2mbit --dry-run");
    tool.ok(&["attach", &net.near.dev, "--rate", "3mbit", "--per", "src", "--dry-run"]);
    tool.ok(&["detach", &net.near.dev, "--dry-run"]);
    tool.ok(&["detach", "--all", "--dry-run"]);
    assert_eq!((net.sandbox.pins(), net.near.objects(), tool.status(None)), before);
}
