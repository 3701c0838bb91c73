//! Fair rounds: shares of accounted run time, donation, change while running, and long code.

mod common;

use common::{ends, fib};
use std::{
    hint, panic,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{BuildError, Criterion, JoinHandle, LevelId, Runtime, policy::ScheduleError};

urgency::levels! { App: Interactive > Query > Batch }

fn runtime(workers: usize, shares: &[f64]) -> Runtime {
    let criterion = Criterion::from_shares(shares).unwrap();
    let builder = Runtime::builder().workers(workers).levels::<App>();
    builder.fairness(criterion).build().unwrap()
}

/// Work at a level until the flag is set, with scheduling points.
fn endless(runtime: &Runtime, level: impl Into<LevelId>, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let stop = stop.clone();
    runtime.at(level).spawn_fn(move || {
        while !stop.load(Relaxed) {
            fib(12);
        }
    })
}

/// The same, and its turns are counted.
fn counted(runtime: &Runtime, level: impl Into<LevelId>, stop: &Arc<AtomicBool>) -> Arc<AtomicU64> {
    let (stop, turns) = (stop.clone(), Arc::new(AtomicU64::new(0)));
    let its = turns.clone();
    let work = move || {
        while !stop.load(Relaxed) {
            fib(12);
            its.fetch_add(1, Relaxed);
        }
    };
    runtime.at(level).spawn_fn(work).detach();
    turns
}

/// The same without any.
fn stubborn(
    runtime: &Runtime,
    level: impl Into<LevelId>,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let stop = stop.clone();
    runtime
        .at(level)
        .spawn_fn(move || while !stop.load(Relaxed) {})
}

fn run_times(runtime: &Runtime) -> Vec<Duration> {
    let levels = runtime.stats().levels;
    levels.iter().map(|level| level.total.running).collect()
}

/// The levels' shares of what ran from now on until `enough` was run.
fn shares(runtime: &Runtime, enough: Duration) -> Vec<f64> {
    let before = run_times(runtime);
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        thread::sleep(Duration::from_millis(20));
        let now = run_times(runtime);
        let ran: Vec<f64> = now
            .iter()
            .zip(&before)
            .map(|(now, before)| (*now - *before).as_secs_f64())
            .collect();
        let total: f64 = ran.iter().sum();
        if total >= enough.as_secs_f64() {
            return ran.iter().map(|ran| ran / total).collect();
        }
        assert!(Instant::now() < limit, "only {total} s ran in a minute");
    }
}

/// How far a share may be off on a machine that other processes use, too: each hand-off waits for the kernel.
const TOLERANCE: f64 = 0.12;

/// The shares come near to those expected, at the latest in the last of eight windows.
fn assert_shares(runtime: &Runtime, expected: &[f64]) {
    shares(runtime, Duration::from_millis(50));
    let mut windows = Vec::new();
    for _ in 0..8 {
        let measured = shares(runtime, Duration::from_millis(600));
        println!("{measured:.3?} of {expected:?}");
        let off = measured.iter().zip(expected).map(|(m, e)| (m - e).abs());
        if off.fold(0.0, f64::max) <= TOLERANCE {
            return;
        }
        windows.push(measured);
    }
    panic!("{windows:.3?} instead of {expected:?}");
}

/// Three levels that always have work, with one worker and with two.
fn all_get_their_shares() {
    for workers in [1, 2] {
        let expected = [0.5, 0.3, 0.2];
        let runtime = runtime(workers, &expected);
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..workers {
            endless(&runtime, Interactive, &stop).detach();
            endless(&runtime, Query, &stop).detach();
            endless(&runtime, Batch, &stop).detach();
        }
        assert_shares(&runtime, &expected);
        stop.store(true, Relaxed);
    }
}

#[test]
fn levels_that_always_have_work_get_their_shares() {
    ends(all_get_their_shares);
}

/// A thread that was lowered comes after these threads, which are none of the runtime's. (The last level had 0 to 5 %.)
#[test]
fn levels_get_their_shares_beside_other_threads_that_compute() {
    ends(|| {
        let stop = AtomicBool::new(false);
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    while !stop.load(Relaxed) {
                        hint::spin_loop();
                    }
                });
            }
            let outcome = panic::catch_unwind(all_get_their_shares);
            stop.store(true, Relaxed);
            outcome.unwrap_or_else(|payload| panic::resume_unwind(payload));
        });
    });
}

#[test]
fn a_share_that_is_not_used_goes_to_the_most_urgent_level_with_work() {
    ends(|| {
        let runtime = runtime(1, &[0.5, 0.2, 0.3]);
        let stop = Arc::new(AtomicBool::new(false));
        endless(&runtime, Query, &stop).detach();
        endless(&runtime, Batch, &stop).detach();
        assert_shares(&runtime, &[0.0, 0.7, 0.3]);
        stop.store(true, Relaxed);
    });
}

#[test]
fn code_without_scheduling_points_gives_way_at_the_end_of_its_round() {
    ends(|| {
        let runtime = runtime(1, &[0.5, 0.0, 0.5]);
        let stop = Arc::new(AtomicBool::new(false));
        // It never checks in, and is more urgent. Nothing else would let the other one run.
        stubborn(&runtime, Interactive, &stop).detach();
        let turns = counted(&runtime, Batch, &stop);
        while turns.load(Relaxed) < 1000 {
            thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn the_criterion_can_be_changed_while_the_runtime_runs() {
    ends(|| {
        let runtime = Runtime::builder()
            .workers(1)
            .levels::<App>()
            .build()
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let above = counted(&runtime, Interactive, &stop);
        while above.load(Relaxed) == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        let below = counted(&runtime, Batch, &stop);
        let turns_until = |all: u64| {
            let (a, b) = (above.load(Relaxed), below.load(Relaxed));
            loop {
                thread::sleep(Duration::from_millis(5));
                let (a, b) = (above.load(Relaxed) - a, below.load(Relaxed) - b);
                if a + b >= all {
                    return b as f64 / (a + b) as f64;
                }
            }
        };
        // Where the system lets the thread above rest for a period, relief takes it for one that sleeps.
        let below_prompt = turns_until(20_000);
        assert!(below_prompt < 0.01, "prompt: {below_prompt}");
        for share in [0.75, 0.2] {
            let criterion = Criterion::from_shares(&[1.0 - share, 0.0, share]).unwrap();
            runtime.set_fairness(criterion).unwrap();
            assert_shares(&runtime, &[1.0 - share, 0.0, share]);
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn all_workers_serve_the_level_of_their_round_though_its_jobs_are_private_and_others_have_work() {
    ends(|| {
        for expected in [[0.0, 0.0, 1.0], [0.0, 0.7, 0.3]] {
            let runtime = runtime(2, &expected);
            let stop = Arc::new(AtomicBool::new(false));
            for level in [LevelId::from(Query), LevelId::from(Batch)] {
                let stop = stop.clone();
                let forks = move || {
                    while !stop.load(Relaxed) {
                        fib(27);
                    }
                };
                runtime.at(level).spawn_fn(forks).detach();
            }
            assert_shares(&runtime, &expected);
            stop.store(true, Relaxed);
        }
    });
}

#[test]
#[cfg_attr(
    urgency_chaos,
    ignore = "chaos has requests wait for whole time slices"
)]
fn a_level_that_uses_little_of_its_share_does_not_wait_for_the_rounds_of_others() {
    ends(|| {
        let runtime = runtime(1, &[0.3, 0.0, 0.7]);
        let stop = Arc::new(AtomicBool::new(false));
        let turns = counted(&runtime, Batch, &stop);
        let mut counts = Vec::new();
        for _ in 0..3 {
            let (mut between, mut waited) = (Vec::new(), Vec::new());
            let mut served = turns.load(Relaxed);
            for _ in 0..300 {
                thread::sleep(Duration::from_micros(500));
                let asked = turns.load(Relaxed);
                let its = turns.clone();
                // One worker: nobody has a turn while the request looks.
                let request = async move { its.load(Relaxed) };
                let answered = runtime.at(Interactive).spawn(request).get().unwrap();
                waited.push(answered - asked);
                between.push(asked - served);
                served = turns.load(Relaxed);
            }
            // In rounds alone one request in each round of the others waits for most of it: 30 to 40 in all.
            // Now one or two meet another process.
            let pause = (between.iter().sum::<u64>() / between.len() as u64).max(1);
            let long = waited.iter().filter(|&&turns| turns > 4 * pause).count();
            if long < 15 {
                stop.store(true, Relaxed);
                return;
            }
            counts.push(long);
        }
        panic!("{counts:?} of 300 requests waited for as long as four pauses between two are");
    });
}

#[test]
fn a_criterion_for_another_number_of_levels_is_rejected() {
    let criterion = Criterion::from_shares(&[0.5, 0.5]).unwrap();
    let built = Runtime::builder()
        .levels::<App>()
        .fairness(criterion)
        .build();
    let error = built.unwrap_err();
    assert_eq!(
        error,
        BuildError::Schedule(ScheduleError::LevelCount {
            schedule: 2,
            levels: 3
        })
    );
    assert!(error.to_string().contains("for 2 levels"));
}

/// A join tree without an end, until the flag is set.
fn sink(depth: u32, stop: &AtomicBool) {
    if depth == 0 || stop.load(Relaxed) {
        fib(8);
    } else {
        urgency::join(|| sink(depth - 1, stop), || sink(depth - 1, stop));
    }
}

/// A worker that comes back from an event to its stack takes no fork of the level above, to which no round draws it.
/// (Each such fork was one more stack, with a thread, for good.)
#[test]
fn events_beside_two_endless_trees_leave_no_stacks_behind() {
    const EVENTS: usize = 400;
    const WORKERS: usize = 2;
    let runtime = runtime(WORKERS, &[0.2, 0.5, 0.3]);
    let stop = Arc::new(AtomicBool::new(false));
    let trees: Vec<_> = [LevelId::from(Query), LevelId::from(Batch)]
        .map(|level| {
            let stop = stop.clone();
            runtime.at(level).spawn_fn(move || sink(60, &stop))
        })
        .into();
    let ticks = runtime.at(Interactive).spawn(async {
        for _ in 0..EVENTS {
            urgency::time::sleep(Duration::from_millis(2)).await;
        }
    });
    ticks.get().unwrap();
    let stats = runtime.stats();
    stop.store(true, Relaxed);
    trees.into_iter().for_each(|tree| tree.get().unwrap());
    let (steals, peak) = (stats.total().steals, stats.threads_peak);
    assert!(peak < EVENTS / 10, "{peak} threads, {steals} steals");
}
