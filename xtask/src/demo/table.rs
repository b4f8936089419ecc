//! The closing table, and whether it is what a limit should do.

use anyhow::{Result, bail};

use super::traffic::{FRAME, Flow, MEASURED, TCP_PAYLOAD, UDP_PAYLOAD};
use crate::output::say;

pub(super) struct Measured {
    pub(super) tcp: Flow,
    pub(super) udp: Flow,
}

/// The burst that the tool gives a rate by default, in seconds at that rate. A flow that paused may use it again.
const BURST_SECONDS: f64 = 0.25;
/// What two instants can be wrong by.
const TOLERANCE: f64 = 1.01;

pub(super) fn print(without: &Measured, with: &Measured, limit: f64) {
    say("   Payload received          without limit       with limit   limit allows");
    for (name, without, with, allowed) in [
        ("TCP, as fast as it can", without.tcp, with.tcp, allowed(limit, TCP_PAYLOAD)),
        ("UDP, at twice the limit", without.udp, with.udp, allowed(limit, UDP_PAYLOAD)),
    ] {
        let [without, with, allowed] = [without.received, with.received, allowed].map(bits);
        say(format_args!("   {name:24} {without:>14} {with:>16} {allowed:>14}"));
    }
    say(format_args!(
        "   A limit counts whole Ethernet frames: of {} a part is headers. A flow that paused",
        bits(limit)
    ));
    say(format_args!("   may exceed it for a moment, by a burst of {:.0} ms of the rate.", BURST_SECONDS * 1e3));
}

/// An error if more came through than the limit allows, or so little that TCP cannot live with it.
pub(super) fn verify(with: &Measured, limit: f64) -> Result<()> {
    for (name, flow, payload) in [("TCP", with.tcp, TCP_PAYLOAD), ("UDP", with.udp, UDP_PAYLOAD)] {
        let allowed = allowed(limit, payload);
        let burst = allowed * BURST_SECONDS / MEASURED.as_secs_f64();
        if flow.received > (allowed + burst) * TOLERANCE {
            bail!("{name} received {}, more than the {} that the limit allows", bits(flow.received), bits(allowed));
        }
        if flow.received < allowed / 2.0 {
            bail!(
                "{name} received {}, less than half of the {} that the limit allows",
                bits(flow.received),
                bits(allowed)
            );
        }
    }
    Ok(())
}

/// The payload of full frames at the limit.
fn allowed(limit: f64, payload: usize) -> f64 {
    limit * payload as f64 / FRAME as f64
}

/// With three significant digits or so.
pub(super) fn bits(per_second: f64) -> String {
    let (value, unit) = if per_second >= 1e9 { (per_second / 1e9, "Gbit/s") } else { (per_second / 1e6, "Mbit/s") };
    if value >= 100.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(tcp: f64, udp: f64) -> Measured {
        let flow = |received| Flow { sent: 200e6, received };
        Measured { tcp: flow(tcp), udp: flow(udp) }
    }

    #[test]
    fn a_limit_that_does_not_limit_is_noticed() {
        assert!(verify(&measured(94e6, 97e6), 100e6).is_ok());
        assert!(verify(&measured(94e6, 194e6), 100e6).is_err());
        assert!(verify(&measured(20e9, 97e6), 100e6).is_err());
        assert!(verify(&measured(5e6, 97e6), 100e6).is_err());
    }

    #[test]
    fn rates_are_written_for_people() {
        assert_eq!([bits(100e6), bits(97.23e6), bits(21.62e9)], ["100 Mbit/s", "97.2 Mbit/s", "21.6 Gbit/s"]);
    }
}
