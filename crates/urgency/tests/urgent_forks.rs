//! Urgent forks get all workers: each worker that serves something less urgent comes for them, at its next scheduling
//! point or by relief.

mod common;

use common::{ends, joined, spin, with_levels};
use std::{
    collections::HashSet,
    hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread::{self, ThreadId},
    time::Duration,
};
use urgency::{JoinHandle, Runtime, par, scheduling_point, scope};

urgency::levels! { pub App: Tick > Frame > Batch }

/// So many closures at the least urgent level that never end by themselves.
struct Beside {
    stop: Arc<AtomicBool>,
    closures: Vec<JoinHandle<()>>,
}

impl Beside {
    fn new(runtime: &Runtime, closures: usize, checks_in: bool) -> Self {
        let (beside, begun) = Self::spawned(runtime, closures, checks_in);
        while begun.load(SeqCst) < closures {
            thread::yield_now();
        }
        beside
    }

    /// They begin when a worker comes to them.
    fn spawned(runtime: &Runtime, closures: usize, checks_in: bool) -> (Self, Arc<AtomicUsize>) {
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicUsize::new(0));
        let closure = || {
            let (stop, begun) = (stop.clone(), begun.clone());
            runtime.at(Batch).spawn_fn(move || {
                begun.fetch_add(1, SeqCst);
                while !stop.load(Relaxed) {
                    spin(Duration::from_micros(100));
                    if checks_in {
                        scheduling_point();
                    }
                }
            })
        };
        let closures = (0..closures).map(|_| closure()).collect();
        (Beside { stop, closures }, begun)
    }

    fn end(self) {
        self.stop.store(true, Relaxed);
        self.closures.into_iter().for_each(|c| c.get().unwrap());
    }
}

/// Runs `urgent` several times in a more urgent closure, beside less urgent closures on all workers.
fn beside(urgent: impl Fn(usize) + Clone + Send + 'static) {
    for workers in [2, 8] {
        for checks_in in [true, false] {
            let urgent = urgent.clone();
            ends(move || {
                let runtime = with_levels::<App>(workers);
                let beside = Beside::new(&runtime, workers, checks_in);
                for _ in 0..3 {
                    let urgent = urgent.clone();
                    let closure = runtime.at(Frame).spawn_fn(move || urgent(workers));
                    closure.get().unwrap();
                }
                assert!(runtime.stats().levels[1].total.steals >= workers as u64 - 1);
                beside.end();
            });
        }
    }
}

/// Waits, without a scheduling point, until so many have come here.
struct AllCome(AtomicUsize);

impl AllCome {
    fn wait(&self, all: usize) {
        self.0.fetch_add(1, SeqCst);
        while self.0.load(SeqCst) < all {
            thread::yield_now();
        }
    }
}

#[test]
fn the_children_of_an_urgent_scope_run_on_all_workers_at_once() {
    beside(|workers| {
        let all = AllCome(AtomicUsize::new(0));
        scope(|s| {
            for _ in 0..workers {
                s.spawn(|| all.wait(workers));
            }
        });
    });
}

#[test]
fn the_branches_of_urgent_joins_run_on_all_workers_at_once() {
    beside(|workers| {
        let all = AllCome(AtomicUsize::new(0));
        joined(workers, &|| all.wait(workers));
    });
}

#[test]
fn the_items_of_an_urgent_parallel_loop_run_on_all_workers() {
    beside(|workers| {
        let threads: Mutex<HashSet<ThreadId>> = Mutex::default();
        let seen = AtomicUsize::new(0);
        par::for_each(0..2_000_000, |_| {
            if seen.load(Relaxed) < workers {
                spin(Duration::from_micros(10));
                let mut threads = threads.lock().unwrap();
                threads.insert(thread::current().id());
                seen.store(threads.len(), Relaxed);
            }
        });
        assert!(seen.load(Relaxed) >= workers, "{seen:?} of {workers} came");
    });
}

/// A worker that has come for urgent forks, has gone back, and is wanted again.
#[test]
fn each_of_many_short_urgent_scopes_gets_a_second_worker() {
    for checks_in in [true, false] {
        ends(move || {
            let runtime = with_levels::<App>(2);
            let beside = Beside::new(&runtime, 2, checks_in);
            let frames = runtime.at(Frame).spawn_fn(|| {
                for _ in 0..30 {
                    let all = AllCome(AtomicUsize::new(0));
                    scope(|s| {
                        s.spawn(|| all.wait(2));
                        s.spawn(|| all.wait(2));
                    });
                    // Both workers may be below again.
                    urgency::blocking(|| thread::sleep(Duration::from_millis(1)));
                }
            });
            frames.get().unwrap();
            beside.end();
        });
    }
}

/// Forks that their owner made while no worker was below it, and keeps to itself in a long leaf.
#[test]
fn a_worker_that_goes_below_later_gets_the_forks_that_a_long_leaf_hides() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        let all = Arc::new(AllCome(AtomicUsize::new(0)));
        // Keeps the other worker from being hungry until the forks are there.
        let (forked, busy) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicBool::new(false)),
        );
        let (theirs, begun) = (forked.clone(), busy.clone());
        let tick = runtime.at(Tick).spawn_fn(move || {
            begun.store(true, SeqCst);
            while !theirs.load(SeqCst) {
                hint::spin_loop();
            }
        });
        while !busy.load(SeqCst) {
            thread::yield_now();
        }
        let frame = runtime.at(Frame).spawn_fn(move || {
            scope(|s| {
                s.spawn(|| all.wait(2));
                forked.store(true, SeqCst);
                all.wait(2);
            });
        });
        let (batch, _) = Beside::spawned(&runtime, 1, true);
        frame.get().unwrap();
        tick.get().unwrap();
        batch.end();
    });
}
