//! Rules that come, change and go under traffic: flows keep their debts, counters count on, nobody gets a burst.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use tests::{
    tool::{Attached, Config, Tool},
    topology::two_ns,
    traffic::{Arrivals, Direction, Path, Sent, UdpFrame, ethertype},
};

use crate::HOOKS;

/// Bytes of the frames here.
const LEN: u64 = 64;

#[test]
fn a_flow_takes_its_debt_from_rule_to_rule() {
    for hook in HOOKS {
        let net = two_ns();
        let direction = Direction::Ingress;
        let path = direction.of(&net);
        let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --rate 8bit --burst 6400b"));
        let passes = |count| path.passes(&path.with_remote([10, 0, 0, 1].into()), count);
        let counted = |rule| {
            let stats = limit.rule(direction, rule);
            (stats.passed_packets, stats.dropped_packets)
        };
        assert_eq!(passes(60), 60);
        limit.change_rules("add 10.0.0.0/8 --name a --rate 8bit --burst 6400b");
        assert_eq!(passes(100), 40);
        assert_eq!([counted("default"), counted("a")], [(60, 0), (40, 60)]);
        // Another rate or burst leaves the level as it is, which is empty.
        limit.change_rules("replace --name a --rate 16bit --burst 6400b");
        limit.change_rules("replace --name a --rate 8bit --burst 12800b");
        assert_eq!(passes(10), 0);
        // 200 packets are owed, and the next rule allows 300.
        limit.change_rules("add 10.0.0.1 --name b --rate 8bit --burst 19200b");
        assert_eq!(passes(200), 100);
        assert_eq!([counted("a"), counted("b")], [(40, 70), (100, 100)]);
        limit.change_rules("del --name b");
        assert_eq!(passes(10), 0);
        limit.change_rules("del --name a");
        assert_eq!(passes(10), 0);
        assert_eq!(counted("default"), (60, 10));
        // A rule of the same name is another rule, with counters of its own. No more is owed than the burst of the rule
        // that the flow comes from: 100 packets.
        limit.change_rules("add 10.0.0.0/8 --name a --rate 8bit --burst 25600b");
        assert_eq!(passes(400), 300);
        assert_eq!(counted("a"), (300, 100));
        let flow = limit.flow(direction);
        assert_eq!((flow.rule.as_str(), flow.passed_packets, flow.dropped_packets), ("a", 500, 290));
    }
}

#[test]
fn the_first_rule_with_a_key_of_its_own_starts_every_bucket_full_and_says_so() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let limit = Tool::on(&net.near).attach("--rate 8bit --burst 640b");
    let passes = || path.passes(&path.udp4(), 30);
    assert_eq!(passes(), 10);
    let said = limit.change_rules("add 10.0.0.0/8 --name a --rate 8bit --per src");
    assert!(said.stderr.contains("note: buckets have other keys now: every one starts full"), "{said}");
    assert_eq!(passes(), 10);
    let said = limit.change_rules("add 10.1.0.0/16 --name b --rate 8bit --per dst");
    assert!(!said.stderr.contains("note: "), "{said}");
    assert_eq!(passes(), 0, "the second is no news");
}

#[test]
fn a_rule_keeps_its_levels_while_others_come_and_go() {
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let config = |more: u16| {
        Config::of("near0", "rate=8bit burst=64000b total=8bit total-burst=12800b")
            .rule("kept", "match=172.16.0.0/12 rate=8bit burst=64000b total=8bit total-burst=6400b")
            .rules(more, "rate=8bit burst=64b")
    };
    let limit = Tool::on(&net.near).limit(config(0).text());
    let passes = |a: u8| path.passes(&path.with_remote([a, 16, 0, 1].into()), 30);
    let mut passed = Vec::new();
    for more in [3, 0, 2, 1, 5] {
        passed.push((passes(172), passes(11)));
        Tool::on(&net.near).apply(config(more).text());
    }
    // 100 packets of the rule, 200 of all.
    assert_eq!(passed, [(30, 30), (30, 30), (30, 30), (10, 10), (0, 0)]);
    let [kept, rest] = ["kept", "default"].map(|rule| limit.rule(direction, rule).reasons);
    assert_eq!([kept.conform.packets, kept.total.packets], [100, 50]);
    assert_eq!([rest.conform.packets, rest.device_total.packets], [100, 50]);
}

/// Bytes that had arrived at some moment between two others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    before: Instant,
    pub(crate) bytes: u64,
    after: Instant,
}

impl Reading {
    fn take(arrivals: &Arrivals) -> Self {
        let before = Instant::now();
        let bytes = arrivals.count() * LEN;
        Self { before, bytes, after: Instant::now() }
    }
}

/// Bytes that may pass: `burst + rate * t`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) bytes_per_second: u64,
    pub(crate) burst: u64,
}

impl Bound {
    /// Checks every window between two readings.
    pub(crate) fn check(self, readings: &[Reading]) {
        let Self { bytes_per_second, burst } = self;
        for (n, last) in readings.iter().enumerate() {
            for first in &readings[..n] {
                let time = (last.after - first.before).as_secs_f64();
                let most = burst as f64 + bytes_per_second as f64 * time;
                let passed = last.bytes - first.bytes;
                assert!(passed as f64 <= most, "{passed} bytes in {time} s, {most} are allowed: {first:?} {last:?}");
            }
        }
    }

    /// Checks that everything was due that has passed between the first reading and the last, and that it has passed.
    pub(crate) fn check_least(self, readings: &[Reading]) {
        let [first, .., last] = readings else { panic!("no window") };
        let time = (last.before - first.after).as_secs_f64();
        let least = self.bytes_per_second as f64 * time;
        let passed = last.bytes - first.bytes;
        assert!(passed as f64 >= 0.95 * least, "{passed} bytes in {time} s, {least} were due");
    }
}

/// Makes changes while frames come as fast as they can; what was sent, and what had arrived after each change.
pub(crate) fn under_flood(
    path: &Path<'_>,
    frame: &UdpFrame,
    mut changes: impl FnMut(&mut dyn FnMut()),
) -> (Sent, Vec<Reading>) {
    let arrivals = path.arrivals(ethertype::IPV4);
    let over = AtomicBool::new(false);
    let mut readings = vec![Reading::take(&arrivals)];
    let sent = thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let injector = path.injector().on_cpu(1);
            let mut sent = Sent::default();
            while !over.load(Relaxed) {
                sent = sent.and(injector.flood(frame, Duration::from_millis(50)).sent);
            }
            sent
        });
        // Also if a change fails, or the flood would never end.
        let _guard = Over(&over);
        changes(&mut || readings.push(Reading::take(&arrivals)));
        over.store(true, Relaxed);
        flood.join().expect("the flood")
    });
    readings.push(Reading::take(&arrivals));
    (sent, readings)
}

/// Ends the flood.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// What the flow has passed and dropped is what was sent and what arrived.
fn check_flow(limit: &Attached<'_>, sent: Sent, readings: &[Reading]) {
    let flow = limit.flow(Direction::Ingress);
    assert_eq!(flow.passed_packets + flow.dropped_packets, sent.frames, "{flow:?}");
    assert_eq!(Some(flow.passed_bytes), readings.last().map(|last| last.bytes), "{flow:?}");
}

#[test]
fn rules_that_come_and_go_during_a_flood_give_nobody_a_burst() {
    /// Commands; each changes some of these rules.
    const COMMANDS: u32 = 300;
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let bound = Bound { bytes_per_second: 1_000_000, burst: 1 << 20 };
    let same = "rate=8mbit burst=1mb";
    let frame = path.with_remote([10, 1, 2, 3].into());
    // The flow moves between four rules and the default, all with the same limits, while others come and go.
    let own = ["match=10.0.0.0/8", "match=10.1.0.0/16", "match=10.1.2.3/32 proto=udp", "proto=udp port=9"];
    let config = |bits: u32| {
        let there = |n: &usize| bits >> n & 1 == 1;
        let config = Config::of("near0", same);
        let config = (0..4)
            .filter(there)
            .fold(config, |config, n| config.rule(&format!("own{n}"), &format!("{} {same}", own[n])));
        (4..12).filter(there).fold(config, |config, n| {
            let rate = 1 + (bits >> 12 & 3);
            config.rule(&format!("other{n}"), &format!("match=10.{n}.0.0/16 rate={rate}mbit total={rate}gbit"))
        })
    };
    let tool = Tool::on(&net.near);
    let limit = tool.limit(config(0).text());
    let mut random = 0x5eed_u32;
    let (sent, readings) = under_flood(&path, &frame, |read| {
        for _ in 0..COMMANDS {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            tool.apply(config(random >> 8).text());
            read();
        }
    });
    bound.check(&readings);
    bound.check_least(&readings);
    check_flow(&limit, sent, &readings);
}

#[test]
fn rule_commands_during_a_flood_give_nobody_a_burst() {
    const ROUNDS: u32 = 25;
    let net = two_ns();
    let direction = Direction::Ingress;
    let path = direction.of(&net);
    let limit = Tool::on(&net.near).attach("--rate 8mbit --burst 4mb");
    let frame = path.with_remote([10, 1, 2, 3].into());
    let (sent, readings) = under_flood(&path, &frame, |read| {
        let mut run = |words: &str| {
            limit.change_rules(words);
            read();
        };
        run("add 10.0.0.0/8 --name a --rate 8mbit --burst 4mb");
        for _ in 0..ROUNDS {
            run("add 10.1.0.0/16 --name b --rate 8mbit --burst 4mb");
            run("replace --name b --rate 4mbit --burst 4mb");
            run("replace --name a --rate 8mbit --burst 2mb");
            run("replace --name a --rate 8mbit --burst 4mb");
            run("del --name b");
        }
    });
    Bound { bytes_per_second: 1_000_000, burst: 4 << 20 }.check(&readings);
    Bound { bytes_per_second: 500_000, burst: 4 << 20 }.check_least(&readings);
    check_flow(&limit, sent, &readings);
}

#[test]
fn limits_of_rules_that_change_during_a_flood_lose_no_count() {
    const COMMANDS: u64 = 60;
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let tool = Tool::on(&net.near);
    let config = |n: u64| {
        let rate = 4 << (n & 1);
        Config::of("near0", "rate=8bit burst=64b")
            .rule("a", &format!("match=10.0.0.0/8 rate={rate}mbit burst={}mb", 4 >> (n & 1)))
    };
    let limit = tool.limit(config(0).text());
    let frame = path.with_remote([10, 1, 2, 3].into());
    let mut last = 0;
    let (sent, readings) = under_flood(&path, &frame, |read| {
        for n in 1..COMMANDS {
            tool.apply(config(n).text());
            read();
            let judged = limit.rule(Direction::Ingress, "a").judged_packets();
            assert!(judged > last, "counters stand at {judged}, after {last}");
            last = judged;
        }
    });
    Bound { bytes_per_second: 1_000_000, burst: 4 << 20 }.check(&readings);
    Bound { bytes_per_second: 500_000, burst: 4 << 20 }.check_least(&readings);
    let stats = limit.rule(Direction::Ingress, "a");
    assert_eq!(stats.judged_packets(), sent.frames, "{stats:?}");
    assert_eq!(limit.rule(Direction::Ingress, "default").judged_packets(), 0);
    check_flow(&limit, sent, &readings);
}
