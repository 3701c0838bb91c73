//! Measures what scheduling costs on this machine.
//!
//! Each cost is measured with the primitive that the runtime uses for it, by two threads:
//!
//! - `queue`: a push and a pop of the runtime's queue while another thread does the same, per operation;
//! - `steal`, `mug`: taking one entry, or all, out of another thread's deque under its lock. So a mug is dearer than a
//!   steal here: the same wait for the same lock, and up to 64 entries are moved, while the owner needs a new buffer.
//!   In the Prompt I-Cilk paper (1.44 and 0.363 µs) and in the runtime nobody holds what is mugged;
//! - `hand_off`: one thread wakes another on the same processor and waits; per switch;
//! - `wake`: from the wake-up of a thread that has slept for a millisecond until it runs.
//!
//! The median of many; the machine should be otherwise idle.

use crate::{Costs, report::quantile};
use crossbeam_queue::SegQueue;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    collections::VecDeque,
    hint,
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

pub(super) fn costs() -> Costs {
    Costs {
        queue: queue(),
        steal: take(1),
        mug: take(usize::MAX),
        hand_off: hand_off(),
        wake: wake(),
    }
}

fn median(mut samples: Vec<u64>) -> u64 {
    samples.sort_unstable();
    quantile(&samples, 0.5)
}

fn queue() -> u64 {
    const OPERATIONS: u32 = 200_000;
    let queue = SegQueue::new();
    let both = Barrier::new(2);
    let work = || {
        both.wait();
        let start = Instant::now();
        for number in 0..OPERATIONS {
            queue.push(number);
            hint::black_box(queue.pop());
        }
        start.elapsed().as_nanos() as u64 / u64::from(2 * OPERATIONS)
    };
    let times = thread::scope(|scope| {
        let other = scope.spawn(work);
        [work(), other.join().expect("it does not panic")]
    });
    times[0].max(times[1])
}

/// Takes up to so many entries at a time out of a deque that its owner fills.
fn take(most: usize) -> u64 {
    let deque = Mutex::new(VecDeque::new());
    let done = AtomicBool::new(false);
    let lock = || deque.lock().expect("nothing panics under this lock");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                let mut deque = lock();
                if deque.len() < 64 {
                    deque.push_back(0u64);
                }
                drop(deque);
                for _ in 0..20 {
                    hint::spin_loop();
                }
            }
        });
        let mut samples = Vec::new();
        let limit = Instant::now() + Duration::from_millis(300);
        while samples.len() < 2000 && Instant::now() < limit {
            let start = Instant::now();
            let mut deque = lock();
            let taken: Vec<u64> = if most == 1 {
                deque.pop_front().into_iter().collect()
            } else {
                std::mem::take(&mut *deque).into()
            };
            drop(deque);
            if !hint::black_box(taken).is_empty() {
                samples.push(start.elapsed().as_nanos() as u64);
            }
            thread::sleep(Duration::from_micros(20));
        }
        done.store(true, Relaxed);
        median(samples)
    })
}

/// Two threads of one processor wake each other in turn.
fn hand_off() -> u64 {
    const ROUNDS: usize = 2000;
    let turn = AtomicUsize::new(0);
    let mut one = CpuSet::new();
    if let Ok(all) = sched_getaffinity(None)
        && let Some(first) = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu))
    {
        one.set(first);
    }
    // Of threads of their own, so that the caller keeps its processors. Where the system refuses, it is a wake-up.
    let pin = || {
        let _ = sched_setaffinity(None, &one);
    };
    let (turn, pin) = (&turn, &pin);
    thread::scope(|scope| {
        let first = scope.spawn(move || {
            pin();
            let me = thread::current();
            let second = scope.spawn(move || {
                pin();
                for round in 0..ROUNDS {
                    while turn.load(Acquire) != 2 * round + 1 {
                        thread::park();
                    }
                    turn.store(2 * round + 2, Release);
                    me.unpark();
                }
            });
            let other = second.thread().clone();
            let start = Instant::now();
            for round in 0..ROUNDS {
                turn.store(2 * round + 1, Release);
                other.unpark();
                while turn.load(Acquire) != 2 * round + 2 {
                    thread::park();
                }
            }
            start.elapsed().as_nanos() as u64 / (2 * ROUNDS as u64)
        });
        first.join().expect("it does not panic")
    })
}

fn wake() -> u64 {
    const ROUNDS: u64 = 200;
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64 + 1;
    let (called, woke) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let mut samples = Vec::new();
            for _ in 0..ROUNDS {
                let at = loop {
                    match called.swap(0, AcqRel) {
                        0 => thread::park(),
                        at => break at,
                    }
                };
                let passed = now().saturating_sub(at);
                samples.push(passed);
                woke.fetch_add(1, Release);
            }
            samples
        });
        for round in 0..ROUNDS {
            thread::sleep(Duration::from_millis(1));
            called.store(now(), Release);
            sleeper.thread().unpark();
            while woke.load(Acquire) <= round {
                thread::yield_now();
            }
        }
        median(sleeper.join().expect("it does not panic"))
    })
}
