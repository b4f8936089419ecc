//! Many processors, one bucket: none gets what another has had, and none is refused what is there.

use std::{cell::Cell, rc::Rc, sync::atomic::Ordering, thread};

use shaper_common::{
    atomic::{AtomicU64, Native},
    bucket::{charge, debt},
    clock::Clock,
};
use tests::model::interleaving::{self, Operation, Scripted};

/// Lost races after which a charge no longer tries to compare.
const TRIES: u32 = 8;

/// Where the clock of these tests stands.
const V: u64 = Clock::ORIGIN;

#[test]
fn threads_that_share_a_bucket_get_exactly_what_it_holds() {
    for threads in 2..=4 {
        for (size, burst) in [(1, 20_000), (60, 600_017), (1514, 1 << 24)] {
            let word = AtomicU64::new(0);
            let attempts = burst / size;
            let worker = || (0..attempts).filter(|_| charge::<Native>(&word, V, burst, size)).count() as u64;
            let admitted = together(threads, worker).into_iter().sum::<u64>();
            assert_eq!(admitted, burst / size, "{threads} threads, packets of {size} bytes, burst {burst}");
            assert_eq!(word.into_inner(), V + admitted * size, "refused packets leave no trace");
        }
    }
}

#[test]
fn threads_that_share_a_bucket_never_get_more_than_burst_and_rate_while_time_passes() {
    let (size, burst, step, attempts) = (1000, 50_000, 700, 20_000);
    let word = AtomicU64::new(0);
    let clock = AtomicU64::new(V);
    let worker = || {
        // Each attempt moves the clock on, and is made by a reading that others may have overtaken since.
        let attempt = || charge::<Native>(&word, clock.fetch_add(step, Ordering::Relaxed), burst, size);
        (0..attempts).filter(|_| attempt()).count() as u64
    };
    let bytes = together(3, worker).into_iter().sum::<u64>() * size;
    let earned = clock.into_inner() - step - V;
    assert!(bytes <= burst + earned, "{bytes} bytes of {burst} + {earned}");
    // More is asked for than is earned, so that the bucket is nearly empty in the end.
    assert!(bytes + 10 * size >= burst + earned, "{bytes} bytes of {burst} + {earned}");
}

/// Runs `worker` on so many threads and returns what each did.
fn together<T: Send>(threads: usize, worker: impl Fn() -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(&worker)).collect();
        handles.into_iter().map(|handle| handle.join().expect("the worker does not panic")).collect()
    })
}

/// A charge, and others that get in before its first compare-and-swaps.
struct Race {
    burst: u64,
    cost: u64,
    /// How many compare-and-swaps are lost.
    losses: u32,
    /// What each of the others charges, and how far their clocks lag.
    theirs: u64,
    lag: u64,
}

/// What came of a [`Race`].
struct Finish {
    admitted: bool,
    /// Bytes that the others got.
    theirs: u64,
    word: u64,
    fell_back: bool,
}

impl Race {
    fn run(&self, start: u64) -> Finish {
        let word = Rc::new(AtomicU64::new(start));
        let theirs = Rc::new(Cell::new(0));
        let fell_back = Rc::new(Cell::new(false));
        let &Self { burst, cost, losses, theirs: other, lag } = self;
        let script = {
            let (word, theirs, fell_back) = (Rc::clone(&word), Rc::clone(&theirs), Rc::clone(&fell_back));
            let mut left = losses;
            move |_, operation| {
                fell_back.set(fell_back.get() || operation == Operation::FetchAdd);
                if operation == Operation::CompareExchange && left > 0 {
                    left -= 1;
                    if charge::<Native>(&word, V - lag, burst, other) {
                        theirs.set(theirs.get() + other);
                    }
                }
            }
        };
        let (admitted, _) = interleaving::run(script, || charge::<Scripted>(&word, V, burst, cost));
        let word = word.load(Ordering::Relaxed);
        Finish { admitted, theirs: theirs.get(), word, fell_back: fell_back.get() }
    }
}

#[test]
fn a_charge_that_loses_every_race_is_as_exact_as_one_that_wins_the_first() {
    let (cost, theirs) = (1000, 70);
    for losses in 0..=2 * TRIES {
        let lost = u64::from(losses.min(TRIES)) * theirs;
        for room in [lost + cost, lost + cost - 1, lost, 10 * (lost + cost)] {
            // The bucket holds `room` bytes before anybody comes.
            let race = Race { burst: 1 << 20, cost, losses, theirs, lag: 0 };
            let start = V + race.burst - room;
            let finish = race.run(start);
            let ours = if finish.admitted { cost } else { 0 };
            let case = format!("{losses} losses, room for {room}");
            assert!(finish.theirs + ours <= room, "{case}: over");
            assert_eq!(finish.admitted, finish.theirs + cost <= room, "{case}: wrongly decided");
            assert_eq!(
                finish.word,
                start + finish.theirs + ours,
                "{case}: the word is not the sum of what was admitted"
            );
        }
    }
}

#[test]
fn only_a_charge_that_lost_eight_races_takes_the_way_that_cannot_fail() {
    for losses in 0..=2 * TRIES {
        let finish = Race { burst: 1 << 20, cost: 1, losses, theirs: 1, lag: 0 }.run(0);
        assert!(finish.admitted);
        assert_eq!(finish.fell_back, losses >= TRIES, "{losses} losses");
    }
}

#[test]
fn a_charge_that_is_taken_back_can_only_refuse_others() {
    // Room for one packet less than a byte; another processor comes while the charge that did not fit is in the word.
    let (burst, cost) = (1 << 20, 1000);
    let word = Rc::new(AtomicU64::new(V + burst - u64::from(TRIES) * 70 - cost + 1));
    let between = Rc::new(Cell::new(None));
    let script = {
        let (word, between) = (Rc::clone(&word), Rc::clone(&between));
        move |_, operation| match operation {
            Operation::CompareExchange => assert!(charge::<Native>(&word, V, burst, 70)),
            Operation::Add => between.set(Some(charge::<Native>(&word, V, burst, cost - 1))),
            _ => {}
        }
    };
    let (admitted, _) = interleaving::run(script, || charge::<Scripted>(&word, V, burst, cost));
    assert!(!admitted);
    assert_eq!(between.get(), Some(false), "refused, though it would have fitted a moment later");
    assert_eq!(debt(word.load(Ordering::Relaxed), V), burst - cost + 1, "taken back to the byte");
}

#[test]
fn others_whose_clocks_lag_gain_at_most_their_lag() {
    for lag in [0, 1, 500, 5_000, 1_000_000] {
        for losses in [0, 1, TRIES, 2 * TRIES] {
            let race = Race { burst: 10_000, cost: 1500, losses, theirs: 60, lag };
            let finish = race.run(V - lag);
            assert!(finish.admitted, "lag {lag}, {losses} losses");
            // All that comes after, until the bucket is empty.
            let after = race.burst - debt(finish.word, V);
            let all = finish.theirs + race.cost + after;
            assert!(all <= race.burst + lag, "lag {lag}, {losses} losses: {all} bytes of {} + {lag}", race.burst);
        }
    }
}
