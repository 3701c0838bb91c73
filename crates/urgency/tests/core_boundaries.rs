//! Where workers leave a runtime: at a scheduling point, when they have no work of their own, at the end of all its
//! work; and what happens without a partition.
//!
//! What is counted is how many closures of one runtime have ended when a closure of the other starts, and running time
//! in proportion to the other runtimes'.

mod common;

use common::{ends, fib, until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime,
    policy::{
        Kind, Plan,
        cores::{
            AtBoundary, Boundary, CorePolicy, Demand, Elastic, Feedback, NAMED, Shares,
            StaticEqual, Unpartitioned,
        },
    },
};

fn first<P: CorePolicy + Clone + Send + Sync + 'static>(workers: usize, policy: P) -> Runtime {
    let builder = Runtime::builder().workers(workers).core_policy(policy);
    builder.build().unwrap()
}

fn beside(other: &Runtime, weight: u32) -> Runtime {
    let demand = Demand {
        weight,
        ..Demand::default()
    };
    let builder = Runtime::builder().share_workers_with(other).demand(demand);
    builder.build().unwrap()
}

/// Closures that compute until they are told to end, one by one.
struct Closures {
    stops: Vec<Arc<AtomicBool>>,
    rounds: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl Closures {
    fn on(runtime: &Runtime, count: usize) -> Closures {
        let stops: Vec<Arc<AtomicBool>> = (0..count).map(|_| Arc::default()).collect();
        let (rounds, ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        for stop in &stops {
            let (stop, rounds, ended) = (stop.clone(), rounds.clone(), ended.clone());
            runtime
                .spawn_fn(move || {
                    while !stop.load(SeqCst) {
                        assert_eq!(fib(8), 21);
                        rounds.fetch_add(1, SeqCst);
                    }
                    ended.fetch_add(1, SeqCst);
                })
                .detach();
        }
        Closures {
            stops,
            rounds,
            ended,
        }
    }

    /// Lets them go on for so long that the timer of the looks expires some times.
    fn go_on(&self) {
        let from = self.rounds.load(SeqCst);
        thread::sleep(Duration::from_millis(20));
        until(|| self.rounds.load(SeqCst) > from + 200);
    }
}

impl Drop for Closures {
    fn drop(&mut self) {
        self.stops.iter().for_each(|stop| stop.store(true, SeqCst));
    }
}

/// One worker has four closures of one runtime to run, and one of another. How many of the four have ended when the one
/// starts, and how often the worker left one of the four before its end: by itself, or revoked from a thread that did
/// not come to a scheduling point for a period, as may be on a machine that is busy with others.
///
/// The four have an order without turns. Under the usual one a closure that has run for 100 ms leaves its worker to an
/// equal of its own runtime, and that counts as the same. On a slow machine each of them runs for so long.
fn ended_before_the_other_starts(boundary: Boundary) -> (usize, u64, u64) {
    ends(move || {
        let policy = AtBoundary::new(Shares::default(), boundary);
        let busy = Runtime::builder().workers(1).core_policy(policy);
        let busy = busy.pool(Kind::Queues(Plan::FIFO)).build().unwrap();
        let other = beside(&busy, 1);
        let four = Closures::on(&busy, 4);
        until(|| busy.stats().share.entitled == Some(1));
        let ended = four.ended.clone();
        let one = other.spawn_fn(move || ended.load(SeqCst));
        until(|| other.stats().share.entitled.is_some());
        for stop in &four.stops {
            four.go_on();
            stop.store(true, SeqCst);
        }
        let ended = one.get().unwrap();
        let total = busy.stats().total();
        (ended, total.abandonments, total.reliefs)
    })
}

#[test]
fn at_a_scheduling_point_the_worker_leaves_in_the_middle_of_a_closure() {
    let (ended, left, revoked) = ended_before_the_other_starts(Boundary::Point);
    assert_eq!(ended, 0);
    assert!(left + revoked > 0);
}

#[test]
fn at_the_steal_boundary_the_worker_leaves_after_a_closure() {
    let (ended, left, _) = ended_before_the_other_starts(Boundary::Steal);
    assert!((1..4).contains(&ended), "{ended}");
    assert_eq!(left, 0);
}

#[test]
fn at_the_job_boundary_the_worker_leaves_after_all_closures() {
    let (ended, left, _) = ended_before_the_other_starts(Boundary::Job);
    assert_eq!((ended, left), (4, 0));
}

/// A runtime at the job boundary whose work comes and goes does not keep the workers from the others.
#[test]
fn at_the_job_boundary_workers_come_back_when_the_work_has_ended() {
    ends(|| {
        let one = first(2, AtBoundary::new(Shares::default(), Boundary::Job));
        let other = beside(&one, 1);
        for _ in 0..20 {
            let both = [&one, &other].map(|runtime| {
                let each: Vec<_> = (0..10).map(|_| runtime.spawn_fn(|| fib(12))).collect();
                each
            });
            for handle in both.into_iter().flatten() {
                assert_eq!(handle.get().unwrap(), 144);
            }
        }
    });
}

#[test]
fn without_a_partition_runtimes_take_turns_whatever_their_weight() {
    for workers in [1, 2, 4] {
        ends(move || {
            let light = first(workers, Unpartitioned);
            let heavy = beside(&light, 1000);
            let third = beside(&light, 1);
            let all = [&light, &heavy, &third];
            let running = || all.map(|it| it.stats().total().running.as_secs_f64());
            let _closures = all.map(|runtime| Closures::on(runtime, 2 * workers));
            until(|| running().iter().all(|&time| time > 0.0));
            let mut before = running();
            // The kernel's processors are shared with others, which can spoil a second of it.
            let passed = loop {
                let look = Instant::now();
                thread::sleep(Duration::from_millis(5));
                if look.elapsed() > Duration::from_millis(500) {
                    // Nobody ran, and the closures that were under way are charged with it all when they go on.
                    thread::sleep(Duration::from_millis(100));
                    before = running();
                    continue;
                }
                let now = running();
                let passed = [0, 1, 2].map(|at| now[at] - before[at]);
                let least = passed.into_iter().fold(f64::MAX, f64::min);
                let sum = passed.iter().sum::<f64>();
                let alike = passed.iter().all(|&time| time < 3.0 * least);
                if sum > 1.5 && alike || sum > 6.0 {
                    break (passed, alike);
                }
            };
            assert!(passed.1, "{passed:?}");
            assert!(all.iter().all(|it| it.stats().share.entitled.is_none()));
        });
    }
}

#[test]
fn both_go_on_under_every_built_in_policy_at_every_boundary() {
    fn work<P: CorePolicy + Clone + Send + Sync + 'static>(policy: P) {
        for boundary in [Boundary::Point, Boundary::Steal, Boundary::Job] {
            let policy = AtBoundary::new(policy.clone(), boundary);
            ends(move || {
                let one = first(2, policy);
                let other = beside(&one, 1);
                for _ in 0..3 {
                    let closures = Closures::on(&one, 4);
                    let handles: Vec<_> = (0..5).map(|_| other.spawn_fn(|| fib(10))).collect();
                    closures.go_on();
                    drop(closures);
                    for handle in handles {
                        assert_eq!(handle.get().unwrap(), 55);
                    }
                    assert_eq!((one.run(|| fib(10)), other.run(|| fib(10))), (55, 55));
                }
                let share = one.stats().share;
                assert_eq!((share.rejected, share.policy_panicked), (None, false));
            });
        }
    }
    assert_eq!(NAMED.len(), 8, "another one to try here");
    work(Shares::default());
    work(urgency::policy::cores::Drep::new(1));
    work(Elastic::default());
    work(Feedback::default());
    work(StaticEqual::new(2).unwrap());
    work(Unpartitioned);
}
