//! Processors that race for a way while rules change: every interleaving of a packet with another's.
//!
//! What a processor that is held up charges by the clock of a rule to which the way no longer belongs means nothing on the
//! present one. That may let a flow have at most one burst too much, or empty its bucket once; it blocks nobody for
//! longer, and no way stays between two rules.

use std::{
    cell::Cell,
    collections::BTreeSet,
    marker::PhantomData,
    rc::Rc,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use shaper_cli::model::{Direction, Match, PortRange, Ports};
use shaper_common::{
    abi::{self, Keying, RuleLimits, RuleState, Settings, feature},
    atomic::{Atomics, Native},
    bucket::{self, Limit},
    clock::Clock,
    policy::{self, Plane},
    rule::{Boundary, Index, Link, Rules},
    table::{self, FlowSet, stamp},
    verdict::{Reason, Verdict},
};
use tests::{
    frames::{Frame, Network},
    model::{
        interleaving::{self, Scripted},
        plane::{HostPlane, Maps, Outcome},
        rules::{RuleBook, Ruled},
    },
};

use crate::policy::SETTINGS;

/// A byte in a nanosecond.
const RATE: u64 = 8_000_000_000;
const BURST: u64 = 20_000;
/// What the default's clock reads: it has been running for long.
const RUNNING: u64 = 1 << 55;
/// What the flow owes when a test begins, in packets of [`SIZE`].
const OWED: u64 = 7;
const SIZE: u64 = 1000;
/// Source ports of two flows.
const FLOW: u16 = 1;
const OTHER: u16 = 2;

/// A processor in the middle of a packet: it has read the number of the configuration, and the time.
struct Cpu<'a, A> {
    maps: &'a Maps,
    config: u64,
    now: u64,
    atomics: PhantomData<A>,
}

impl<A> Rules for Cpu<'_, A> {
    fn index(&self, half: u32) -> Option<&Index> {
        self.maps.index(half)
    }

    fn boundary(&self, at: u32) -> Option<&Boundary> {
        self.maps.boundary(at)
    }

    fn link(&self, at: u32) -> Option<&Link> {
        self.maps.link(at)
    }
}

impl<A: Atomics> Plane for Cpu<'_, A> {
    type Atomics = A;
    type Settings = Settings;

    fn settings(&self) -> &Settings {
        self.maps.settings()
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn config(&self) -> u64 {
        self.config
    }

    fn limits(&self, rule: u32, config: u64) -> Option<&RuleLimits> {
        Plane::limits(self.maps, rule, config)
    }

    fn flows(&self, set: u32) -> Option<&FlowSet> {
        Plane::flows(self.maps, set)
    }

    fn state(&self, rule: u32) -> Option<&RuleState> {
        self.maps.state(rule)
    }
}

/// A rule's limit of `burst` bytes whose clock is `ahead` of the default's.
fn limits(id: u32, ahead: u64, burst: u64) -> RuleLimits {
    let clock = Clock { v0: RUNNING.wrapping_add(ahead), ..Clock::new(RATE, 0) };
    let rate = Limit { clock, burst };
    RuleLimits { rate, id, features: feature::RATE, prefix_v4: 32, prefix_v6: 128, ..RuleLimits::default() }
}

/// A table of one set and two configurations: in the first there is the default alone; in the second the flow meets the
/// rule in slot 1, and the other one that in slot 2.
#[derive(Clone)]
struct World(Rc<HostPlane>);

/// Where and by how much the clocks of the two rules are ahead of the default's, and their bursts.
#[derive(Clone, Copy, Debug)]
struct Shape {
    ahead: [u64; 2],
    burst: [u64; 2],
    /// Whether the first configuration knew the limits of the rules, as it does if they were there before.
    known: bool,
}

impl World {
    fn new(shape: &Shape, overflow: abi::Overflow) -> Self {
        let rules = [1, 2].map(|slot| limits(slot, shape.ahead[slot as usize - 1], shape.burst[slot as usize - 1]));
        Self::with_rules(rules, shape.known, overflow)
    }

    fn with_rules(rules: [RuleLimits; 2], known: bool, overflow: abi::Overflow) -> Self {
        let settings = Settings {
            keying: Keying::Cached as u8,
            features: feature::RATE | feature::PPS,
            overflow: overflow as u8,
            ..SETTINGS
        };
        let default = limits(0, 0, BURST);
        let of_port = |slot: u32, port| Ruled {
            slot,
            matches: Match { ports: Ports::Source(PortRange { first: port, last: port }), ..Match::default() },
            limits: rules[slot as usize - 1],
        };
        let second = RuleBook::new(default, &[of_port(1, FLOW), of_port(2, OTHER)], Direction::Ingress);
        let first = if known {
            second.followed_by(default, &[], Direction::Ingress)
        } else {
            let mut limits = vec![RuleLimits::default(); 3];
            limits[0] = default;
            RuleBook { limits, ..RuleBook::single(default) }
        };
        let mut plane = HostPlane::with_rules(settings, first, 0);
        plane.switch(second);
        Self(Rc::new(plane))
    }

    fn packet<A: Atomics>(&self, config: u64, now: u64, flow: u16, size: u64) -> Outcome {
        let maps = self.0.maps();
        let cpu = Cpu::<A> { maps, config, now, atomics: PhantomData };
        let frame = Frame::ethernet(Network::udp(flow, 53, size as usize - 42)).bytes();
        Outcome::from(&policy::judge(&cpu, &frame[..]))
    }

    /// The same, and whether it passed.
    fn passes(&self, config: u64, now: u64, flow: u16) -> bool {
        self.packet::<Native>(config, now, flow, SIZE).verdict == Verdict::Pass
    }

    fn set(&self) -> &FlowSet {
        &self.0.maps().flows()[0]
    }

    /// Fills the ways but one with flows that owe for ever.
    fn crowd(&self, config: u64) {
        for flow in 100..100 + table::WAYS as u16 - 1 {
            let way = self.packet::<Native>(config, 0, flow, SIZE);
            assert!(way.tracked);
        }
    }

    /// What holds after every race.
    fn check(&self, case: &str) {
        for state in &self.set().state {
            assert!(!stamp::is_moving(Native::load(&state.rule)), "{case}: a way is being moved for ever");
        }
    }

    /// What a rule's way owes on the clock of the rule, and what untracked packets of the rule owe.
    fn debts(&self, rule: u32) -> [u64; 2] {
        let v = Plane::limits(self.0.maps(), rule, 1).map_or(0, |limits| limits.rate.clock.at(0));
        let of_rule = |way: &usize| {
            let word = Native::load(&self.set().state[*way].rule);
            Native::load(&self.set().tags[*way]) != table::EMPTY && stamp::rule(word) == rule
        };
        let ways = (0..table::WAYS).filter(of_rule);
        let tracked = ways.map(|way| bucket::debt(Native::load(&self.set().full_at[way]), v)).sum();
        let untracked = bucket::debt(Native::load(&self.0.maps().states()[rule as usize].untracked_full_at), v);
        [tracked, untracked]
    }

    /// Sends packets of a flow in the second configuration until one is refused: how many passed.
    fn drain(&self, flow: u16) -> u64 {
        (0..1000).take_while(|_| self.passes(1, 0, flow)).count() as u64
    }
}

/// Runs a packet of `flow` in the configuration `config`, and `between` before its `step`th atomic operation. Returns
/// whether it passed; `None` if there is no such step.
fn race(world: &World, config: u64, flow: u16, step: u32, between: impl Fn() + 'static) -> Option<bool> {
    let script = move |at, _| {
        if at == step {
            between();
        }
    };
    let (outcome, steps) = interleaving::run(script, || world.packet::<Scripted>(config, 0, flow, SIZE));
    (step < steps).then_some(outcome.verdict == Verdict::Pass)
}

/// Clocks so near that one's debts could be the other's, so far that they are none, and the bounds between.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for ahead in [0, 1, 900, BURST - 1, BURST + 1, 50_000, 1 << 30, 1 << 41, (1 << 42) + 1, 1 << 50] {
        for ahead in [ahead, 0_u64.wrapping_sub(ahead)] {
            for burst in [BURST, 3 * BURST, BURST / 2] {
                for known in [false, true] {
                    shapes.push(Shape { ahead: [ahead, ahead.wrapping_mul(3)], burst: [burst, BURST], known });
                }
            }
        }
    }
    shapes
}

/// A world in which the flow owes [`OWED`] packets to the default's bucket.
fn in_debt(shape: &Shape) -> World {
    in_debt_under(shape, 0)
}

/// The same, in the configuration of this number.
fn in_debt_under(shape: &Shape, config: u64) -> World {
    let world = World::new(shape, abi::Overflow::Closed);
    (0..OWED).for_each(|_| assert!(world.passes(config, 0, FLOW)));
    world
}

/// Asserts that a flow that was refused is not blocked for longer than its bucket takes to fill, or where a nonsense on
/// one clock is credible on the other, than such a debt takes to be paid.
fn assert_fills(world: &World, flow: u16, shape: &Shape, case: &str) {
    let rule = usize::from(flow);
    let (burst, ahead) = (shape.burst[rule - 1], shape.ahead[0]);
    assert_eq!(world.packet::<Native>(1, 0, flow, SIZE).verdict, Verdict::Drop, "{case}: it was refused before");
    let longest = match ahead.min(ahead.wrapping_neg()) {
        // One clock, but perhaps a larger burst.
        0 => burst + SIZE,
        1..=NEAR => 2 * burst + bucket::DOUBT_BYTES,
        _ => burst,
    };
    let outcome = world.packet::<Native>(1, longest, flow, burst);
    assert_eq!((outcome.verdict, outcome.reason), (Verdict::Pass, Reason::Conform), "{case}: flow {flow} is blocked");
}

/// Clocks that differ by more than this cannot make credible debts of nonsense.
const NEAR: u64 = 1 << 22;

#[test]
fn of_two_processors_that_move_a_way_one_does_and_every_byte_is_owed() {
    for shape in shapes() {
        for step in 0.. {
            let world = World::new(&shape, abi::Overflow::Shared);
            (0..OWED).for_each(|_| assert!(world.passes(0, 0, FLOW)));
            let passed = Rc::new(Cell::new(0));
            let between = {
                let (world, passed) = (world.clone(), Rc::clone(&passed));
                move || passed.set(passed.get() + u64::from(world.passes(1, 0, FLOW)))
            };
            let Some(first) = race(&world, 1, FLOW, step, between) else {
                assert!(step > 8, "a move has more steps than {step}");
                break;
            };
            let case = format!("step {step}, {shape:?}");
            world.check(&case);
            let passed = (passed.get() + u64::from(first)) * SIZE;
            assert_eq!(passed, 2 * SIZE, "{case}: there is room for both");
            let owed: u64 = world.debts(1).iter().sum();
            let before = OWED * SIZE;
            assert_eq!(owed, before + passed, "{case}");
        }
    }
}

/// A packet under `config`, and some under the other configuration before each of its steps: they cost at most a burst.
fn costs_at_most_a_burst(config: u64) {
    for shape in shapes() {
        for packets in [1, 3] {
            for step in 0.. {
                let world = in_debt(&shape);
                let passed = Rc::new(Cell::new(0));
                let between = {
                    let (world, passed) = (world.clone(), Rc::clone(&passed));
                    move || {
                        let more = (0..packets).filter(|_| world.passes(1 - config, 0, FLOW)).count() as u64;
                        passed.set(passed.get() + more);
                    }
                };
                let Some(first) = race(&world, config, FLOW, step, between) else { break };
                let case = format!("{packets} before step {step}, {shape:?}");
                finish(&world, &shape, passed.get() + u64::from(first), &case);
            }
        }
    }
}

#[test]
fn a_charge_by_the_old_clock_costs_at_most_a_burst() {
    // It has read the old configuration and stamp; then others move the way and use it.
    costs_at_most_a_burst(0);
}

#[test]
fn a_move_during_which_others_charge_by_the_old_clock_costs_at_most_a_burst() {
    costs_at_most_a_burst(1);
}

/// After a race of the flow's packets, of which `passed` passed.
fn finish(world: &World, shape: &Shape, passed: u64, case: &str) {
    let burst = shape.burst[0];
    let all = OWED + passed + world.drain(FLOW);
    world.check(case);
    let largest = burst.max(BURST);
    assert!(all * SIZE <= 2 * largest, "{case}: {all} packets of bursts of {largest} bytes");
    assert_fills(world, FLOW, shape, case);
}

/// A full set, in which the flow's way is the only one that may be taken.
fn with_one_full_bucket(shape: &Shape, config: u64) -> World {
    let world = World::new(shape, abi::Overflow::Closed);
    world.crowd(config);
    let first = world.packet::<Native>(config, 0, FLOW, SIZE);
    assert!(first.tracked);
    let rule = if config == 0 { 0 } else { 1 };
    let v = Plane::limits(world.0.maps(), rule, config).map_or(0, |limits| limits.rate.clock.at(0));
    Native::store(&world.set().full_at[table::WAYS - 1], v);
    world
}

/// Both flows' packets of a race for one way, and what comes after: for the one that has it a burst, and one too much.
fn share(world: &World, shape: &Shape, passed: u64, case: &str) {
    let all = passed + world.drain(FLOW) + world.drain(OTHER);
    world.check(case);
    let most = 2 * shape.burst[0].max(shape.burst[1]).max(BURST);
    assert!(all * SIZE <= most, "{case}: {all} packets of {most} bytes");
    let tags = world.set().tags.iter().map(Native::load).collect::<BTreeSet<_>>();
    assert_eq!(tags.len(), table::WAYS, "{case}: no flow has two ways, for no two processors brought it");
    for flow in [FLOW, OTHER] {
        if world.packet::<Native>(1, 0, flow, SIZE).tracked {
            assert_fills(world, flow, shape, case);
        }
    }
}

#[test]
fn a_way_that_one_flow_moves_and_another_claims_belongs_to_one_of_them() {
    for shape in shapes() {
        // The one between the steps of the other, and the other way round.
        for (first, second) in [(FLOW, OTHER), (OTHER, FLOW)] {
            for step in 0.. {
                let world = with_one_full_bucket(&shape, 0);
                let passed = Rc::new(Cell::new(0));
                let between = {
                    let (world, passed) = (world.clone(), Rc::clone(&passed));
                    move || passed.set(passed.get() + u64::from(world.passes(1, 0, second)))
                };
                let Some(one) = race(&world, 1, first, step, between) else { break };
                let case = format!("flow {first}, and {second} before step {step}, {shape:?}");
                share(&world, &shape, passed.get() + u64::from(one), &case);
            }
        }
    }
}

#[test]
fn a_claim_across_clocks_and_a_charge_of_the_flow_that_is_forgotten_cost_at_most_a_burst() {
    for shape in shapes() {
        for (first, second) in [(FLOW, OTHER), (OTHER, FLOW)] {
            for step in 0.. {
                let world = with_one_full_bucket(&shape, 1);
                let passed = Rc::new(Cell::new(0));
                let between = {
                    let (world, passed) = (world.clone(), Rc::clone(&passed));
                    move || passed.set(passed.get() + (0..2).filter(|_| world.passes(1, 0, second)).count() as u64)
                };
                let Some(one) = race(&world, 1, first, step, between) else { break };
                let case = format!("flow {first}, and {second} before step {step}, {shape:?}");
                share(&world, &shape, passed.get() + u64::from(one), &case);
            }
        }
    }
}

/// A number of a configuration, five before that under which packets come in the end; the numbers begin anew meanwhile.
const ASLEEP: u64 = (1 << 31) - 4;

#[test]
fn a_processor_that_has_slept_through_many_changes_costs_at_most_a_burst() {
    // Its number of the configuration differs in more than the last bit; the halves are what they are now.
    for shape in shapes().into_iter().filter(|shape| shape.known) {
        for step in 0.. {
            let world = in_debt_under(&shape, ASLEEP);
            let passed = Rc::new(Cell::new(0));
            let between = {
                let (world, passed) = (world.clone(), Rc::clone(&passed));
                move || {
                    let configs = ASLEEP + 1..=ASLEEP + 5;
                    let more = configs.filter(|config| world.passes(*config, 0, FLOW)).count() as u64;
                    passed.set(passed.get() + more);
                }
            };
            let Some(first) = race(&world, ASLEEP, FLOW, step, between) else { break };
            let case = format!("step {step}, {shape:?}");
            finish(&world, &shape, passed.get() + u64::from(first), &case);
        }
    }
}

#[test]
fn no_packet_of_a_blocked_flow_passes_by_the_rule_of_the_flow_that_takes_its_way() {
    let nothing = |id, features| RuleLimits { features, ..limits(id, 1 << 45, BURST) };
    for step in 0.. {
        let rules = [nothing(1, feature::BLOCK), nothing(2, 0)];
        let world = World::with_rules(rules, true, abi::Overflow::Closed);
        world.crowd(1);
        assert!(!world.passes(1, 0, FLOW));
        let between = {
            let world = world.clone();
            move || assert!(world.passes(1, 0, OTHER), "it is not limited")
        };
        let Some(passed) = race(&world, 1, FLOW, step, between) else {
            assert!(step > 5, "a look at the table has more steps than {step}");
            break;
        };
        assert!(!passed, "step {step}");
    }
}

#[test]
fn every_packet_that_passes_during_a_claim_is_owed_by_one_of_the_two_flows() {
    // The other buckets of a way are words of their own: what was full a step ago may owe now.
    let rule = |id| {
        let pps = Limit { burst: 50, ..limits(id, 0, 0).rate };
        RuleLimits { pps, features: feature::PPS, ..limits(id, 0, BURST) }
    };
    for (first, second) in [(FLOW, OTHER), (OTHER, FLOW)] {
        for step in 0.. {
            let world = World::with_rules([rule(1), rule(2)], true, abi::Overflow::Closed);
            world.crowd(1);
            let way = &world.set().state[table::WAYS - 1].more.pps_full_at;
            assert!(world.passes(1, 0, FLOW));
            Native::store(way, 0);
            let passed = Rc::new(Cell::new(0));
            let between = {
                let (world, passed) = (world.clone(), Rc::clone(&passed));
                move || passed.set(passed.get() + u64::from(world.passes(1, 0, second)))
            };
            let Some(one) = race(&world, 1, first, step, between) else { break };
            let owed = bucket::debt(Native::load(way), rule(1).pps.clock.at(0));
            let case = format!("flow {first}, and {second} before step {step}");
            assert_eq!(owed, passed.get() + u64::from(one), "{case}");
            assert!(owed > 0, "{case}");
            world.check(&case);
        }
    }
}

#[test]
fn a_flow_that_has_just_come_is_not_emptied_by_one_that_saw_its_predecessor() {
    // Both are the default's, and full: but for the tag the way looks the same.
    let (predecessor, new) = (5, 6);
    for ahead in [1000, BURST / 2, BURST, 1 << 30, 1 << 41] {
        for step in 0.. {
            let shape = Shape { ahead: [ahead, ahead], burst: [BURST, BURST], known: true };
            let world = World::new(&shape, abi::Overflow::Closed);
            world.crowd(1);
            assert!(world.passes(1, 0, predecessor));
            Native::store(&world.set().full_at[table::WAYS - 1], limits(0, 0, BURST).rate.clock.at(0));
            let between = {
                let world = world.clone();
                // It takes the way, and is charged nothing.
                move || assert_eq!(world.packet::<Native>(1, 0, new, BURST + 1).verdict, Verdict::Drop)
            };
            let Some(passed) = race(&world, 1, OTHER, step, between) else { break };
            let case = format!("step {step}, {ahead} ahead");
            world.check(&case);
            // One that passed has had the way, or has been charged to it.
            if !passed && world.packet::<Native>(1, 0, new, BURST + 1).tracked {
                assert_eq!(world.drain(new), BURST / SIZE, "{case}");
            }
        }
    }
}

#[test]
fn a_debt_of_packets_that_none_can_have_made_is_an_empty_bucket() {
    let pps = Limit { burst: 50, ..limits(1, 0, 0).rate };
    let rule = RuleLimits { pps, features: feature::PPS, ..limits(1, 0, BURST) };
    for (owed, longest) in [(50, 50), (100, 100), (50_000, 50), (1 << 20, 50), (1 << 41, 50)] {
        let world = World::with_rules([rule, rule], true, abi::Overflow::Closed);
        assert!(world.passes(1, 0, FLOW));
        Native::store(&world.set().state[0].more.pps_full_at, pps.clock.at(0) + owed);
        assert!(!world.passes(1, 0, FLOW), "a debt of {owed}");
        assert!(world.passes(1, longest, FLOW), "a debt of {owed}");
    }
}

/// Runs `work` on four threads, while another one changes the configuration all the time.
fn under_changes<T: Send>(maps: &Maps, work: impl Fn(u16) -> T + Sync) -> Vec<T> {
    let working = &AtomicBool::new(true);
    let work = &work;
    thread::scope(|scope| {
        scope.spawn(move || {
            while working.load(Ordering::Relaxed) {
                maps.flip();
                thread::yield_now();
            }
        });
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>();
        working.store(false, Ordering::Relaxed);
        results.into_iter().map(|result| result.expect("no thread panics")).collect()
    })
}

#[test]
fn threads_whose_flow_changes_its_rule_all_the_time_get_exactly_what_its_bucket_holds() {
    const SMALL: u64 = 50;
    // One clock, so that nothing that is held up is ever nonsense: then not a byte may be lost or won.
    let shape = Shape { ahead: [0, 0], burst: [BURST, BURST], known: true };
    let frame = Frame::ethernet(Network::udp(FLOW, 53, SMALL as usize - 42)).bytes();
    for round in 0..40 {
        let world = World::new(&shape, abi::Overflow::Closed);
        let plane = Rc::into_inner(world.0).expect("nobody else has it");
        let maps = plane.maps();
        let passes = || u64::from(policy::judge(maps, &frame[..]).answer.verdict() == Verdict::Pass);
        let first = passes();
        let passed: u64 = under_changes(maps, |_| (0..BURST / SMALL).map(|_| passes()).sum::<u64>()).iter().sum();
        // Who waits for another's move for too long is refused.
        let rest: u64 = (0..BURST / SMALL).map(|_| passes()).sum();
        assert_eq!(first + passed + rest, BURST / SMALL, "round {round}");
        World(Rc::new(plane)).check("after all threads");
    }
}

#[test]
fn threads_that_race_with_changes_across_clocks_leave_every_way_on_one_and_no_bucket_blocked() {
    for ahead in [1_u64 << 30, 0_u64.wrapping_sub(1 << 30), 1 << 45] {
        let shape = Shape { ahead: [ahead, ahead.wrapping_mul(3)], burst: [2 * BURST, BURST], known: true };
        for _ in 0..10 {
            let world = World::new(&shape, abi::Overflow::Shared);
            let plane = Rc::into_inner(world.0).expect("nobody else has it");
            let maps = plane.maps();
            under_changes(maps, |thread| {
                for n in 0..500 {
                    // More flows than ways: some are forgotten.
                    let frame = Frame::ethernet(Network::udp(1 + (n * 7 + thread) % 12, 53, 100)).bytes();
                    let _whatever = policy::judge(maps, &frame[..]);
                }
            });
            let world = World(Rc::new(plane));
            world.check("after all threads");
            let config = world.0.maps().config_number() | 1;
            for flow in 1..=12 {
                let _refused_or_not = world.packet::<Native>(config, 0, flow, SIZE);
                let _heals = world.packet::<Native>(config, 0, flow, SIZE);
                let full = world.packet::<Native>(config, 2 * BURST + SIZE, flow, BURST);
                // The last of the twelve find eight that owe.
                assert!(full.verdict == Verdict::Pass || !full.tracked, "flow {flow}, {ahead:#x}: {full:?}");
            }
        }
    }
}
