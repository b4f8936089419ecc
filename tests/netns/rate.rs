//! Floods: what passes is the burst and the rate times the time, whatever the number of CPUs.

use std::{thread, time::Duration};

use tests::{
    tool::{RuleStats, Tool},
    topology::{TwoNs, two_ns},
    traffic::{Direction, Flood, ethertype},
};

use crate::HOOKS;

const RATE: f64 = 10e6 / 8.0;
/// 250 ms at the rate.
const BURST: f64 = 312_500.0;
const TIME: Duration = Duration::from_secs(2);

#[test]
fn a_flood_from_one_cpu_gets_the_rate_on_tcx_ingress() {
    flood(&two_ns(), HOOKS[0], Direction::Ingress, 1);
}

#[test]
fn a_flood_from_one_cpu_gets_the_rate_on_tcx_egress() {
    flood(&two_ns(), HOOKS[0], Direction::Egress, 1);
}

#[test]
fn a_flood_from_one_cpu_gets_the_rate_on_clsact() {
    flood(&two_ns(), HOOKS[1], Direction::Ingress, 1);
}

#[test]
fn a_flood_from_two_cpus_gets_the_rate_once_at_ingress() {
    flood(&two_ns(), HOOKS[0], Direction::Ingress, 2);
}

#[test]
fn a_flood_from_two_cpus_gets_the_rate_once_at_egress() {
    flood(&two_ns(), HOOKS[0], Direction::Egress, 2);
}

#[test]
fn a_flood_conforms_to_the_rate_and_passes_up_to_a_peak_a_share_above_it() {
    let net = two_ns();
    let limits = "--rate 5mbit --burst 250ms --soft 20% --peak-burst 250ms --exceed pass";
    let flooded = flood_with(&net, Direction::Ingress, 1, limits);
    flooded.got(flooded.stats.reasons.conform.bytes, 0.5 * BURST, 0.5 * RATE);
    flooded.got(flooded.stats.passed_bytes, 0.6 * BURST, 0.6 * RATE);
    let reasons = &flooded.stats.reasons;
    assert_eq!(reasons.conform.packets + reasons.rate.packets, flooded.stats.passed_packets, "{reasons:?}");
    assert_eq!(reasons.peak.packets, flooded.stats.dropped_packets, "{reasons:?}");
}

fn flood(net: &TwoNs, hook: &str, direction: Direction, cpus: usize) {
    let flooded = flood_with(net, direction, cpus, &format!("--hook {hook} --rate 10mbit"));
    flooded.got(flooded.stats.passed_bytes, BURST, RATE);
}

/// What came of a flood.
struct Flooded {
    stats: RuleStats,
    sent: u64,
    seconds: f64,
}

impl Flooded {
    /// Asserts that `bytes` are what a limit of so many bytes and bytes a second allows.
    fn got(&self, bytes: u64, burst: f64, rate: f64) {
        let &Self { ref stats, sent, seconds } = self;
        let allowed = burst + rate * seconds;
        let bytes = bytes as f64;
        assert!(sent as f64 * 64.0 > 2.0 * allowed, "no flood: {sent} packets");
        assert!(bytes <= allowed, "{bytes} bytes, {allowed} are allowed in {seconds} s: {stats:?}");
        assert!(bytes >= 0.98 * allowed, "{bytes} bytes, {allowed} are allowed in {seconds} s: {stats:?}");
    }
}

/// One flow of 64-byte packets, sent by as many CPUs at once.
fn flood_with(net: &TwoNs, direction: Direction, cpus: usize, options: &str) -> Flooded {
    let path = direction.of(net);
    let limit = Tool::on(&net.near).attach(&format!("--direction {} {options}", direction.word()));
    let arrivals = path.arrivals(ethertype::IPV4);

    let injectors: Vec<_> = (0..cpus).map(|cpu| path.injector().on_cpu(cpu)).collect();
    let floods: Vec<Flood> = thread::scope(|scope| {
        let threads: Vec<_> =
            injectors.iter().map(|injector| scope.spawn(|| injector.flood(&path.udp4(), TIME))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a flood")).collect()
    });

    let sent: u64 = floods.iter().map(|flood| flood.sent.frames).sum();
    let start = floods.iter().map(|flood| flood.start).min().expect("a flood");
    let end = floods.iter().map(|flood| flood.end).max().expect("a flood");
    let stats = limit.stats(direction);
    assert_eq!(stats.judged_packets(), sent, "{stats:?}");
    assert_eq!(arrivals.count(), stats.passed_packets, "{stats:?}");
    assert_eq!(stats.passed_bytes, 64 * stats.passed_packets, "{stats:?}");
    Flooded { stats, sent, seconds: (end - start).as_secs_f64() }
}
