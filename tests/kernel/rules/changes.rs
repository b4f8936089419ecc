//! Changes of rules while flows are there.

use super::*;

const FLOW: &str = "10.1.0.1";

/// The flow of these tests, of which `n` packets are sent.
fn sent(rig: &mut Rig, rule: u32, n: usize) -> usize {
    let passed = passed(rig, rule, &frame(FLOW, 1, 2), n, Reason::Rate);
    rig.assert_same();
    passed
}

#[test]
fn a_flow_that_meets_another_rule_takes_its_debt_along_to_the_byte() {
    let none = book(each(0, 10), &[]);
    let mut rig = rig(Keying::Cached, &none);
    assert_eq!(sent(&mut rig, 0, 6), 6);
    assert_eq!(rig.debts(&packets(0, 10), 0), [6000]);
    // Added: 6 of 8 are used.
    let added = none.followed_by(each(0, 10), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 8))], Direction::Ingress);
    rig.switch(&added);
    assert_eq!(sent(&mut rig, 1, 1), 1);
    assert_eq!(rig.debts(&packets(1, 8), 1), [7000]);
    assert_eq!(sent(&mut rig, 1, 5), 1);
    // A better one: of 20, 8 are used.
    let rules = [ruled(1, to(&["10.0.0.0/8"]), each(1, 8)), ruled(2, to(&["10.1.0.0/16"]), each(2, 20))];
    let replaced = added.followed_by(each(0, 10), &rules, Direction::Ingress);
    rig.switch(&replaced);
    assert_eq!(sent(&mut rig, 2, 15), 12);
    assert_eq!(rig.debts(&packets(2, 20), 2), [20_000]);
    // Deleted: 20 are more than the first can owe.
    let first = [ruled(1, to(&["10.0.0.0/8"]), each(1, 8))];
    rig.switch(&replaced.followed_by(each(0, 10), &first, Direction::Ingress));
    assert_eq!(sent(&mut rig, 1, 3), 0);
    assert_eq!(rig.debts(&packets(1, 8), 1), [8500], "the whole burst");
    // Both deleted: the default's, of which 8.5 are used.
    rig.switch(&replaced.followed_by(each(0, 10), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 5), 2);
    assert_eq!(rig.debts(&packets(0, 10), 0), [10_500]);
    // What was counted for the way has stayed all the time.
    let flows: Vec<_> = rig.flows().into_iter().map(|(_, passed, dropped)| (passed, dropped)).collect();
    assert_eq!(flows, [(6 + 2 + 12 + 2, 4 + 3 + 3 + 3)]);
}

#[test]
fn an_empty_bucket_stays_empty_however_often_its_flow_changes_its_rule() {
    let with = book(each(0, 4), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 6))]);
    let without = with.followed_by(each(0, 4), &[], Direction::Ingress);
    let mut rig = rig(Keying::Cached, &with);
    assert_eq!(sent(&mut rig, 1, 9), 6);
    rig.switch(&without);
    assert_eq!(sent(&mut rig, 0, 1), 0);
    // The smaller burst is all it owes now; what the larger one has more was earned by nobody, but is there.
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 2);
    for _ in 0..50 {
        rig.switch(&without);
        assert_eq!(sent(&mut rig, 0, 1), 0);
    }
}

#[test]
fn every_kind_of_debt_goes_along_if_both_rules_have_such_a_limit() {
    let features = feature::RATE | feature::PEAK | feature::PPS | feature::ACTION;
    let of = |slot, rate, peak, pps| RuleLimits {
        rate: packets(slot, rate),
        peak: packets(slot, peak),
        pps: units(slot, pps),
        exceed: Action::Pass.into(),
        ..RuleLimits::default()
    };
    let all = |slot, rate, peak, pps| limits(slot, features, of(slot, rate, peak, pps));
    let first = book(all(0, 2, 9, 100), &[]);
    let mut rig = rig(Keying::Cached, &first);
    let outcome = |rig: &mut Rig| rig.run(&Skb::plain(&frame(FLOW, 1, 2))).reason;
    let outcomes: Vec<_> = (0..5).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Conform, Reason::Rate, Reason::Rate, Reason::Rate]);
    rig.assert_same();
    // 2 of the rate, 5 of the peak and 2 of the packets are used.
    let follow = |book: &RuleBook, limits: RuleLimits| {
        let rule = ruled(limits.id, to(&["10.0.0.0/8"]), limits);
        book.followed_by(all(0, 2, 9, 100), &[rule], Direction::Ingress)
    };
    let second = follow(&first, all(1, 3, 7, 3));
    rig.switch(&second);
    let outcomes: Vec<_> = (0..4).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Rate, Reason::Peak, Reason::Peak]);
    rig.assert_same();
    // A rule without a peak forgets it; the next one finds it full, and the rest as it was.
    let no_peak = limits(2, feature::RATE | feature::PPS, of(2, 4, 9, 5));
    let third = follow(&second, no_peak);
    rig.switch(&third);
    assert_eq!(outcome(&mut rig), Reason::Conform);
    assert_eq!(outcome(&mut rig), Reason::Rate);
    rig.assert_same();
    rig.switch(&follow(&third, all(1, 5, 2, 9)));
    let outcomes: Vec<_> = (0..3).map(|_| outcome(&mut rig)).collect();
    assert_eq!(outcomes, [Reason::Conform, Reason::Rate, Reason::Peak]);
    rig.assert_same();
}

#[test]
fn a_change_of_limits_of_the_same_rule_keeps_levels() {
    let rule = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    for keying in BOTH {
        let mut rig = rig(keying, &book(each(0, 1), &rule(each(1, 10))));
        assert_eq!(sent(&mut rig, 1, 6), 6);
        // The clock goes back by what the burst grows: 4.5 are left, and no more.
        let changed = |burst: u64, of: &Limit| Limit {
            clock: shaper_common::clock::Clock {
                v0: of.clock.v0.wrapping_add(of.burst).wrapping_sub(burst),
                ..of.clock
            },
            burst,
        };
        let more = RuleLimits { rate: changed(50_000, &packets(1, 10)), ..each(1, 0) };
        rig.switch(&book(each(0, 1), &rule(more)));
        assert_eq!(sent(&mut rig, 1, 2), 2);
        // 2.5 are left, of which 1.5 fit.
        rig.switch(&book(each(0, 1), &rule(RuleLimits { rate: changed(1500, &more.rate), ..more })));
        assert_eq!(sent(&mut rig, 1, 2), 1);
    }
}

#[test]
fn a_flow_whose_rule_is_gone_goes_to_the_default_with_its_debt() {
    let rules = [ruled(1, to(&["10.0.0.0/8"]), each(1, 4))];
    let first = book(each(0, 6), &rules);
    let mut rig = rig(Keying::Cached, &first);
    assert_eq!(sent(&mut rig, 1, 9), 4);
    rig.switch(&first.followed_by(each(0, 6), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 2);
    // A limit that is taken away and comes back goes on where it was.
    rig.switch(&first.followed_by(RuleLimits { features: 0, ..each(0, 6) }, &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 9);
    rig.switch(&first.followed_by(each(0, 8), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 2);
    // Where nothing is limited a debt has nowhere to go.
    let unlimited = [ruled(2, to(&["10.0.0.0/8"]), limits(2, 0, RuleLimits::default()))];
    let second = first.followed_by(each(0, 8), &unlimited, Direction::Ingress);
    rig.switch(&second);
    assert_eq!(sent(&mut rig, 2, 9), 9);
    rig.switch(&second.followed_by(each(0, 8), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 9), 8);
}

#[test]
fn where_rules_have_keys_of_their_own_a_flow_finds_its_old_bucket_again() {
    let without = book(each(0, 6), &[]);
    let with = without.followed_by(each(0, 6), &[ruled(1, to(&["10.0.0.0/8"]), each(1, 4))], Direction::Ingress);
    let gone = with.followed_by(each(0, 6), &[], Direction::Ingress);
    let mut rig = rig(Keying::ByRule, &without);
    assert_eq!(sent(&mut rig, 0, 5), 5);
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 4);
    rig.switch(&gone);
    assert_eq!(sent(&mut rig, 0, 9), 1);
    rig.switch(&with);
    assert_eq!(sent(&mut rig, 1, 9), 0);
    assert_eq!(rig.flows().len(), 2);
}

/// The rule that begins in the slot of one that is gone, as the tool puts it in force.
fn begun(old: &RuleLimits, id: u32, n: u64) -> RuleLimits {
    RuleLimits { id, rate: Limit { burst: packets(0, n).burst, ..old.rate }, ..*old }
}

#[test]
fn a_rule_in_the_slot_of_one_that_is_gone_takes_over_its_flows_with_what_they_owe() {
    let rules = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    let old = each(1, 10);
    let mut rig = rig(Keying::Cached, &book(each(0, 20), &rules(old)));
    assert_eq!(sent(&mut rig, 1, 7), 7);
    let larger = begun(&old, 2, 12);
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(larger)));
    assert_eq!(sent(&mut rig, 1, 9), 5);
    assert_eq!(rig.counters_of(1).reasons[Reason::Conform as usize].packets, 5, "its own");
    // It owes 12 of 3: the bucket is empty and no more than that.
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(begun(&larger, 3, 3))));
    assert_eq!(sent(&mut rig, 1, 9), 0);
    assert_eq!(rig.debts(&packets(1, 3), 1), [3500]);
    // Flows of the old one that meet the default now.
    rig.switch(&book(each(0, 20), &rules(larger)).followed_by(each(0, 20), &[], Direction::Ingress));
    assert_eq!(sent(&mut rig, 0, 30), 17);
}

#[test]
fn a_rule_in_the_slot_of_one_that_is_gone_has_buckets_of_its_own_where_rules_have_keys() {
    let rules = |limits| [ruled(1, to(&["10.0.0.0/8"]), limits)];
    let mut rig = rig(Keying::ByRule, &book(each(0, 20), &rules(each(1, 10))));
    assert_eq!(sent(&mut rig, 1, 17), 10);
    rig.renew(1);
    rig.switch(&book(each(0, 20), &rules(begun(&each(1, 10), 2, 4))));
    assert_eq!(sent(&mut rig, 1, 9), 4);
    assert_eq!(rig.flows().len(), 2);
}

#[test]
fn a_flow_that_changes_its_rule_a_thousand_times_gets_no_more_than_one_burst_and_what_is_earned() {
    const BURST: u64 = 100_000;
    let start = now();
    // Two clocks that differ by nothing a debt could be mistaken for, and by so much that one would be.
    let of = |slot, bits, since: u64| {
        let rate = Limit::new(bits, BURST, start - since);
        limits(slot, feature::RATE, RuleLimits { rate, ..RuleLimits::default() })
    };
    for (slow, fast, since) in [(8_000_000, 8_000_000, 0), (4_000_000, 8_000_000, 100_000_000_000)] {
        let (one, other) = (of(0, slow, 0), of(1, fast, since));
        let without = book(one, &[]).followed_by(one, &[ruled(1, to(&["192.0.2.0/24"]), other)], Direction::Ingress);
        let with = book(one, &[ruled(1, to(&["10.0.0.0/8"]), other)]);
        let mut rig = rig(Keying::Cached, &without);
        let packet = Skb::plain(&frame(FLOW, 1, 2));
        let began = now();
        let mut passed = 0;
        for n in 0..1000 {
            passed += u64::from(rig.kernel(&packet).0 == Verdict::Pass);
            rig.switch(if n % 2 == 0 { &with } else { &without });
        }
        let earned = other.rate.clock.at(now()) - other.rate.clock.at(began);
        let bytes = passed * SIZE as u64;
        assert!(bytes <= BURST + earned, "{bytes} bytes of {BURST} and {earned}");
        assert!(bytes >= BURST, "{bytes}");
        let met = [0, 1].map(|rule| rig.counters_of(rule).reasons.iter().map(|count| count.packets).sum::<u64>());
        assert_eq!(met, [500, 500]);
    }
}
