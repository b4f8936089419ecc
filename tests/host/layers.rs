//! Several limits against the plainest model there is: counters of tokens that are filled up as time passes, and the
//! algorithm of RFC 2698, section 3, in its own words.

use std::collections::HashMap;

use proptest::prelude::*;
use shaper_cli::model::{Direction, Match, PortRange, Ports};
use shaper_common::{
    abi::{Keying, RuleLimits, Settings, feature},
    bucket::Limit,
    verdict::{Action, Reason, Verdict},
};
use tests::{
    frames::{Frame, Network},
    model::{
        plane::HostPlane,
        rules::{RuleBook, Ruled},
    },
};

use crate::{
    policy::SETTINGS,
    property::{config, regressions},
};

/// A byte, or packet, in a nanosecond: every model below is then in whole numbers.
const ONE_PER_NS: u64 = 8_000_000_000;
const START: u64 = 1_000_000;

/// A bucket as the textbooks have it.
#[derive(Clone, Copy, Debug)]
struct Tokens {
    per_ns: u64,
    depth: u64,
    tokens: u64,
    at: u64,
}

impl Tokens {
    fn new(per_ns: u64, depth: u64) -> Self {
        Self { per_ns, depth, tokens: depth, at: START }
    }

    fn holds(&mut self, now: u64, cost: u64) -> bool {
        self.tokens = self.depth.min(self.tokens.saturating_add((now - self.at) * self.per_ns));
        self.at = now;
        self.tokens >= cost
    }
}

/// What a test draws: rates in units of one per nanosecond, depths, and which limits there are.
#[derive(Clone, Debug)]
struct Drawn {
    features: u8,
    rate: (u64, u64),
    peak: (u64, u64),
    pps: (u64, u64),
    /// Of each of the rules, and of the device.
    totals: [(u64, u64); 2],
    device: (u64, u64),
    exceed: bool,
    violate: bool,
    keying: Keying,
    packets: Vec<(u64, u16, usize)>,
}

/// The flows that meet the other rule, if there is one: the first of three.
const OF_RULE: PortRange = PortRange { first: 1, last: 2 };

fn drawn() -> impl Strategy<Value = Drawn> {
    let limit = || (prop::sample::select(vec![1_u64, 2, 4]), 60_u64..4000);
    let packet = (0_u64..1500, 1_u16..4, 60_usize..1515);
    let packets = prop::collection::vec(packet, 1..200);
    let few = (prop::sample::select(vec![1_u64, 2]), 1_u64..40);
    let features = (0_u8..16, any::<bool>()).prop_map(|(bits, total)| {
        // A peak without a rate is refused by the tool.
        let peaks = bits & feature::PEAK != 0;
        bits | if peaks { feature::RATE } else { 0 } | if total { feature::TOTAL } else { 0 } | feature::ACTION
    });
    let keying = prop::sample::select(vec![Keying::Single, Keying::Cached, Keying::ByRule]);
    let of_flow = (limit(), limit(), few);
    let shared = ([limit(), limit()], limit());
    (features, of_flow, shared, any::<(bool, bool)>(), keying, packets).prop_map(
        |(features, (rate, peak, pps), (totals, device), (exceed, violate), keying, packets)| Drawn {
            features,
            rate,
            peak,
            pps,
            totals,
            device,
            exceed,
            violate,
            keying,
            packets,
        },
    )
}

/// The limits of each flow, of each rule and of the device.
struct Model<'a> {
    drawn: &'a Drawn,
    flows: HashMap<u16, [Tokens; 3]>,
    totals: [Tokens; 2],
    device: Tokens,
}

impl<'a> Model<'a> {
    fn new(drawn: &'a Drawn) -> Self {
        let tokens = |(per_ns, depth)| Tokens::new(per_ns, depth);
        Self { drawn, flows: HashMap::new(), totals: drawn.totals.map(tokens), device: tokens(drawn.device) }
    }

    fn has(&self, bit: u8) -> bool {
        self.drawn.features & bit != 0
    }

    fn rule(&self, flow: u16) -> usize {
        let rules = self.drawn.keying != Keying::Single;
        usize::from(rules && (OF_RULE.first..=OF_RULE.last).contains(&flow))
    }

    fn judge(&mut self, now: u64, flow: u16, bytes: u64) -> (Verdict, Reason) {
        let drawn = self.drawn;
        let rule = self.rule(flow);
        let [has_peak, has_rate, has_pps, has_total, has_device] =
            [feature::PEAK, feature::RATE, feature::PPS, feature::TOTAL, feature::DEVICE_TOTAL]
                .map(|bit| self.has(bit));
        let [rate, peak, pps] = self
            .flows
            .entry(flow)
            .or_insert_with(|| [drawn.rate, drawn.peak, drawn.pps].map(|(per_ns, depth)| Tokens::new(per_ns, depth)));
        let (total, device) = (&mut self.totals[rule], &mut self.device);
        let largest = if has_peak { peak.depth } else { rate.depth };
        let totals = [(has_total, &*total), (has_device, &*device)];
        if (has_rate && bytes > largest) || totals.iter().any(|(there, total)| *there && bytes > total.depth) {
            return (Verdict::Drop, Reason::Oversize);
        }
        let (in_peak, in_rate) = (!has_peak || peak.holds(now, bytes), !has_rate || rate.holds(now, bytes));
        let in_pps = !has_pps || pps.holds(now, 1);
        let (in_total, in_device) = (!has_total || total.holds(now, bytes), !has_device || device.holds(now, bytes));
        // "If Tp(t)-B < 0, the packet is red, else if Tc(t)-B < 0, the packet is yellow and Tp is decremented by B, else
        // the packet is green and both Tp and Tc are decremented by B."
        let (reason, passes) = match (in_peak, in_rate, in_pps) {
            (false, _, _) => (Reason::Peak, drawn.violate),
            (_, false, _) => (Reason::Rate, drawn.exceed),
            (_, _, false) => (Reason::Pps, drawn.exceed),
            _ => (Reason::Conform, true),
        };
        if !passes {
            return (Verdict::Drop, reason);
        }
        if !in_total {
            return (Verdict::Drop, Reason::Total);
        }
        if !in_device {
            return (Verdict::Drop, Reason::DeviceTotal);
        }
        let green = reason == Reason::Conform;
        let pay = |there: bool, tokens: &mut Tokens, cost| {
            if there {
                tokens.tokens -= cost;
            }
        };
        pay(has_peak && (green || reason == Reason::Rate), peak, bytes);
        pay(has_rate && green, rate, bytes);
        pay(has_pps && green, pps, 1);
        pay(has_total, total, bytes);
        pay(has_device, device, bytes);
        (Verdict::Pass, reason)
    }
}

fn limit((per_ns, depth): (u64, u64)) -> Limit {
    Limit::new(per_ns * ONE_PER_NS, depth, START)
}

proptest! {
    #![proptest_config(config(regressions!("layers"), 2000))]

    #[test]
    fn every_packet_gets_the_verdict_and_the_reason_of_the_model(drawn in drawn()) {
        let action = |passes| if passes { Action::Pass } else { Action::Drop }.into();
        let limits = RuleLimits {
            rate: limit(drawn.rate),
            peak: limit(drawn.peak),
            pps: limit(drawn.pps),
            total: limit(drawn.totals[0]),
            device_total: limit(drawn.device),
            exceed: action(drawn.exceed),
            violate: action(drawn.violate),
            features: drawn.features,
            prefix_v4: 32,
            prefix_v6: 128,
            ..RuleLimits::default()
        };
        let keying = drawn.keying as u8;
        let settings = Settings { features: drawn.features, set_mask: 63, keying, ..SETTINGS };
        let rules = RuleBook::new(
            limits,
            &[Ruled {
                slot: 1,
                matches: Match { ports: Ports::Source(OF_RULE), ..Match::default() },
                limits: RuleLimits { total: limit(drawn.totals[1]), id: 1, ..limits },
            }],
            Direction::Ingress,
        );
        let mut plane = HostPlane::with_rules(settings, rules, START);
        let mut model = Model::new(&drawn);
        let mut now = START;
        for &(gap, flow, len) in &drawn.packets {
            now += gap;
            plane.set_now(now);
            let frame = Frame::ethernet(Network::udp(flow, 53, len - 42)).bytes();
            let outcome = plane.run(&frame[..]);
            let expected = model.judge(now, flow, len as u64);
            prop_assert_eq!((outcome.verdict, outcome.reason), expected, "{} bytes of flow {} at {}", len, flow, now);
        }
    }
}
