//! What another processor does in between: atomics that call a script before every operation.
//!
//! Real threads show that races happen; a script shows that a certain one, at a certain step, comes out right.

use std::cell::{Cell, RefCell};

use shaper_common::atomic::{AtomicU64, Atomics, Native};

/// Kind of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Atomics::load`].
    Load,
    /// [`Atomics::store`].
    Store,
    /// [`Atomics::compare_exchange`].
    CompareExchange,
    /// [`Atomics::fetch_add`].
    FetchAdd,
    /// [`Atomics::add`].
    Add,
}

/// The processor's atomics, preceded by the script of the current [`run`].
#[derive(Clone, Copy, Debug)]
pub struct Scripted;

type Script = Box<dyn FnMut(u32, Operation)>;

thread_local! {
    static SCRIPT: RefCell<Option<Script>> = const { RefCell::new(None) };
    static STEP: Cell<u32> = const { Cell::new(0) };
}

/// Runs `work`, whose [`Scripted`] operations are numbered from 0; `script` runs before each. Returns the result and
/// the number of operations.
///
/// The script stands for other processors and uses [`Native`] operations.
pub fn run<R>(script: impl FnMut(u32, Operation) + 'static, work: impl FnOnce() -> R) -> (R, u32) {
    STEP.set(0);
    SCRIPT.set(Some(Box::new(script)));
    let result = work();
    SCRIPT.set(None);
    (result, STEP.get())
}

fn step(operation: Operation) {
    let step = STEP.replace(STEP.get() + 1);
    SCRIPT.with_borrow_mut(|script| {
        if let Some(script) = script {
            script(step, operation);
        }
    });
}

impl Atomics for Scripted {
    fn load(word: &AtomicU64) -> u64 {
        step(Operation::Load);
        Native::load(word)
    }

    fn store(word: &AtomicU64, value: u64) {
        step(Operation::Store);
        Native::store(word, value);
    }

    fn compare_exchange(word: &AtomicU64, current: u64, new: u64) -> u64 {
        step(Operation::CompareExchange);
        Native::compare_exchange(word, current, new)
    }

    fn fetch_add(word: &AtomicU64, n: u64) -> u64 {
        step(Operation::FetchAdd);
        Native::fetch_add(word, n)
    }

    fn add(word: &AtomicU64, n: u64) {
        step(Operation::Add);
        Native::add(word, n);
    }
}
