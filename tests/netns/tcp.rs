//! TCP under a limit reaches it with the burst that the tool chooses.

use std::time::Duration;

use tests::{tool::Tool, topology::two_ns, traffic::Direction};

const RATE: f64 = 100e6;

#[test]
fn tcp_reaches_an_ingress_limit_over_ipv4() {
    reaches(Direction::Ingress, false);
}

#[test]
fn tcp_reaches_an_ingress_limit_over_ipv6() {
    reaches(Direction::Ingress, true);
}

#[test]
fn tcp_reaches_an_egress_limit_over_ipv4() {
    reaches(Direction::Egress, false);
}

#[test]
fn tcp_reaches_an_egress_limit_over_ipv6() {
    reaches(Direction::Egress, true);
}

/// The bounds are wide on purpose: a dropping limiter and a loss-based sender meet on a busy machine.
fn reaches(direction: Direction, v6: bool) {
    let net = two_ns();
    let limit = Tool::on(&net.near).attach(&format!("--direction {} --rate 100mbit", direction.word()));
    // The first second is the burst.
    let goodput = direction.of(&net).tcp_goodput(v6, Duration::from_secs(1), Duration::from_secs(4));
    let share = goodput.bits_per_second() / RATE;
    assert!((0.60..=1.05).contains(&share), "{goodput:?} is {share:.2} of the rate\n{:?}", limit.stats(direction));
}
