//! Floods: what passes is the burst and the rate times the time, whatever the number of CPUs.

use std::{thread, time::Duration};

use tests::{
    tool::Tool,
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

/// One flow of 64-byte packets, sent by as many CPUs at once.
fn flood(net: &TwoNs, hook: &str, direction: Direction, cpus: usize) {
    let path = direction.of(net);
    let limit = Tool::on(&net.near).attach(&format!("--hook {hook} --direction {} --rate 10mbit", direction.word()));
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

    let allowed = BURST + RATE * (end - start).as_secs_f64();
    let passed = stats.passed_bytes as f64;
    assert!(sent as f64 * 64.0 > 2.0 * allowed, "no flood: {sent} packets");
    assert!(passed <= allowed, "{passed} bytes passed, {allowed} are allowed: {floods:?}");
    assert!(passed >= 0.98 * allowed, "{passed} bytes passed, {allowed} are allowed: {floods:?}");
}
