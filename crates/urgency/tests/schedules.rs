//! Schedules between levels other than prompt and fair rounds: which worker serves what, by count; nothing is lost;
//! nothing ticks.

mod common;
#[path = "common/program.rs"]
mod program;

use common::{ends, fib, quiet};
use program::{LEVELS, run_random};
use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError, LevelId, Runtime,
    policy::{
        Adaptive, Criterion, FixedShares, Otherwise, Parameters, Rounds, Schedule, ScheduleError,
        WinnerTakeAll,
    },
    time, yield_now,
};
use urgency_policy::level::{LevelSchedule, Period, Seat};

urgency::levels! { Two: Upper > Lower }
urgency::levels! { Four: L0 > L1 > L2 > L3 }

fn stages(workers: &[usize]) -> Schedule {
    FixedShares::of_workers(workers, Otherwise::Wait).into()
}

fn adaptive(levels: usize) -> Schedule {
    Adaptive::new(levels, Parameters::default()).unwrap().into()
}

fn two(workers: usize, schedule: impl Into<Schedule>) -> Runtime {
    let builder = Runtime::builder().workers(workers).levels::<Two>();
    builder.schedule(schedule).build().unwrap()
}

/// How often each worker ran anything at each level.
fn runs(runtime: &Runtime) -> Vec<Vec<u64>> {
    let workers = runtime.stats().workers;
    let of = |l: &urgency::WorkerLevelStats| l.tasks + l.closures + l.jobs;
    let by_level = |w: &urgency::WorkerStats| w.levels.iter().map(of).collect();
    workers.iter().map(by_level).collect()
}

/// Work at a level until the flag is set; its turns are counted.
fn endless(runtime: &Runtime, level: impl Into<LevelId>, stop: &Arc<AtomicBool>) -> Arc<AtomicU64> {
    let (stop, turns) = (stop.clone(), Arc::new(AtomicU64::new(0)));
    let its = turns.clone();
    let work = move || {
        while !stop.load(Relaxed) {
            fib(10);
            its.fetch_add(1, Relaxed);
        }
    };
    runtime.at(level).spawn_fn(work).detach();
    turns
}

fn reaches(turns: &AtomicU64, more: u64) {
    let before = turns.load(Relaxed);
    while turns.load(Relaxed) < before + more {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_worker_of_a_stage_runs_nothing_of_another_and_every_stage_goes_on() {
    ends(|| {
        let runtime = two(3, stages(&[1, 2]));
        // Tasks that hop from stage to stage, with forks, timers and waits.
        let hops: Vec<_> = (0..50u64)
            .map(|n| {
                runtime.at(Lower).spawn(async move {
                    yield_now().await;
                    let up = urgency::at(Upper).spawn(async move {
                        time::sleep(Duration::from_micros(n)).await;
                        fib(12) + n
                    });
                    let fine = up.await.unwrap();
                    urgency::at(Lower).spawn_fn(move || fine + fib(15)).await
                })
            })
            .collect();
        for (n, hop) in hops.into_iter().enumerate() {
            assert_eq!(hop.get().unwrap().unwrap(), 144 + n as u64 + 610);
        }
        let runs = runs(&runtime);
        assert_eq!(runs[0][1], 0, "{runs:?}");
        assert_eq!((runs[1][0], runs[2][0]), (0, 0), "{runs:?}");
        assert!(
            runs[0][0] >= 50 && runs[1][1] + runs[2][1] >= 100,
            "{runs:?}"
        );
    });
}

#[test]
fn a_stage_whose_worker_is_kept_busy_delays_no_other_stage() {
    ends(|| {
        let runtime = two(2, stages(&[1, 1]));
        let stop = Arc::new(AtomicBool::new(false));
        let above = endless(&runtime, Upper, &stop);
        let below = endless(&runtime, Lower, &stop);
        // Chaos takes the worker of `below` for its equal, which never ends.
        let _beside = (!cfg!(urgency_chaos)).then(|| endless(&runtime, Lower, &stop));
        for turns in [&above, &below, &above] {
            reaches(turns, 100);
        }
        assert_eq!(runs(&runtime)[0][1] + runs(&runtime)[1][0], 0);
        stop.store(true, Relaxed);
    });
}

#[test]
fn workers_that_donate_serve_what_is_there() {
    ends(|| {
        let donating = FixedShares::of_workers(&[2, 0], Otherwise::Donate);
        let runtime = two(2, donating);
        assert_eq!(runtime.at(Lower).spawn_fn(|| fib(18)).get().unwrap(), 2584);
        let runs = runs(&runtime);
        assert!(runs[0][1] + runs[1][1] > 0);
    });
}

#[test]
fn adaptive_gives_a_level_that_uses_its_workers_all_that_nobody_else_uses() {
    ends(|| {
        let runtime = two(2, adaptive(2));
        // Both workers once belonged to the upper level.
        for _ in 0..20 {
            runtime.at(Upper).spawn_fn(|| fib(12)).get().unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        // The second is queued behind the first until a worker moves.
        let below = [
            endless(&runtime, Lower, &stop),
            endless(&runtime, Lower, &stop),
        ];
        reaches(&below[0], 100);
        reaches(&below[1], 100);
        // And one moves back.
        let above = endless(&runtime, Upper, &stop);
        reaches(&above, 100);
        stop.store(true, Relaxed);
    });
}

#[test]
fn under_adaptive_a_lone_computation_gets_thieves() {
    ends(|| {
        let runtime = two(2, adaptive(2));
        for _ in 0..20 {
            runtime.at(Upper).spawn_fn(|| fib(12)).get().unwrap();
        }
        // Nothing but its forks says that it could use a second worker.
        let stop = Arc::new(AtomicBool::new(false));
        let turns = endless(&runtime, Lower, &stop);
        while runtime.stats().total().steals == 0 {
            reaches(&turns, 1);
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn the_winner_takes_all_but_only_when_a_round_begins() {
    ends(|| {
        let runtime = two(1, WinnerTakeAll::default());
        let stop = Arc::new(AtomicBool::new(false));
        let below = endless(&runtime, Lower, &stop);
        reaches(&below, 10);
        let above = endless(&runtime, Upper, &stop);
        reaches(&above, 100);
        let turns = below.load(Relaxed);
        // Many rounds.
        reaches(&above, 5000);
        let more = below.load(Relaxed) - turns;
        assert!(more <= 1, "the loser had {more} turns");
        stop.store(true, Relaxed);
        reaches(&below, 0);
    });
}

#[test]
fn a_winner_without_scheduling_points_keeps_its_worker_while_only_the_loser_waits() {
    ends(|| {
        let runtime = two(1, WinnerTakeAll::default());
        let runs = Arc::new(AtomicBool::new(false));
        let (stop, theirs) = (Arc::new(AtomicBool::new(false)), runs.clone());
        let ends = stop.clone();
        let winner = runtime.at(Upper).spawn_fn(move || {
            theirs.store(true, Relaxed);
            while !ends.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        while !runs.load(Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let loser = runtime.at(Lower).spawn_fn(|| {});
        // Many expiries of relief.
        thread::sleep(Duration::from_millis(50));
        let reliefs = runtime.stats().total().reliefs;
        stop.store(true, Relaxed);
        winner.get().unwrap();
        loser.get().unwrap();
        assert_eq!(reliefs, 0, "nothing of its own level waited");
    });
}

#[test]
fn a_schedule_can_be_exchanged_while_the_runtime_runs() {
    ends(|| {
        let runtime = two(2, Schedule::Prompt);
        let stop = Arc::new(AtomicBool::new(false));
        let above = [
            endless(&runtime, Upper, &stop),
            endless(&runtime, Upper, &stop),
        ];
        reaches(&above[0], 10);
        reaches(&above[1], 10);
        let below = endless(&runtime, Lower, &stop);
        runtime.set_schedule(stages(&[1, 1])).unwrap();
        reaches(&below, 100);
        let half = Criterion::from_shares(&[0.5, 0.5]).unwrap();
        runtime.set_fairness(half).unwrap();
        reaches(&below, 100);
        runtime.set_schedule(Schedule::Prompt).unwrap();
        reaches(&above[0], 100);
        reaches(&above[1], 100);
        assert!(runtime.set_schedule(stages(&[1, 2])).is_err());
        stop.store(true, Relaxed);
    });
}

#[test]
fn after_rounds_a_level_with_workers_of_its_own_has_them_whatever_was_ahead_of_it() {
    ends(|| {
        let runtime = two(1, Criterion::from_shares(&[0.5, 0.5]).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        // In turns, so that the other level is ahead for want of work.
        let below = [
            endless(&runtime, Lower, &stop),
            endless(&runtime, Lower, &stop),
        ];
        let either = || below[0].load(Relaxed) + below[1].load(Relaxed);
        let reaches = |turns| {
            while either() < turns {
                thread::sleep(Duration::from_millis(1));
            }
        };
        // Either: neither gives way to the other.
        reaches(1000);
        let shares = FixedShares::of_workers(&[0, 1], Otherwise::Donate);
        runtime.set_schedule(shares).unwrap();
        endless(&runtime, Upper, &stop);
        reaches(either() + 1000);
        stop.store(true, Relaxed);
    });
}

#[test]
fn a_worker_that_a_new_schedule_frees_gets_the_private_forks_of_what_runs() {
    ends(|| {
        let runtime = two(2, stages(&[1, 1]));
        let (stop, turns) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let (stops, counts) = (stop.clone(), turns.clone());
        let forks = runtime.at(Lower).spawn_fn(move || {
            // Goes on by a direct delivery: its level shows no work.
            urgency::block_on(urgency::time::sleep(Duration::from_millis(1)));
            while !stops.load(Relaxed) {
                fib(10);
                counts.fetch_add(1, Relaxed);
            }
        });
        reaches(&turns, 100);
        runtime.set_schedule(Schedule::Prompt).unwrap();
        while runtime.stats().total().steals == 0 {
            reaches(&turns, 1);
        }
        stop.store(true, Relaxed);
        forks.get().unwrap();
    });
}

#[test]
fn schedules_that_do_not_fit_are_named() {
    let build = |workers, schedule: Schedule| {
        let builder = Runtime::builder().workers(workers).levels::<Two>();
        builder.schedule(schedule).build().map(drop)
    };
    let wrong = |error| Err(BuildError::Schedule(error));
    assert_eq!(
        build(2, stages(&[1, 2])),
        wrong(ScheduleError::WorkerCount {
            schedule: 3,
            workers: 2
        })
    );
    assert_eq!(
        build(2, stages(&[2, 0])),
        wrong(ScheduleError::Unserved { rank: 1 })
    );
    assert_eq!(
        build(2, adaptive(3)),
        wrong(ScheduleError::LevelCount {
            schedule: 3,
            levels: 2
        })
    );
    let halves = Criterion::from_shares(&[0.5, 0.5]).unwrap();
    let waits = FixedShares::new(&halves, Otherwise::Wait);
    assert_eq!(
        build(1, waits.into()),
        wrong(ScheduleError::Unserved { rank: 1 }),
        "one worker cannot be of two stages"
    );
}

/// Each schedule for four levels.
fn all_schedules(workers: usize) -> Vec<(&'static str, Schedule)> {
    let even = Criterion::from_shares(&[0.25; 4]).unwrap();
    let uneven = Criterion::from_shares(&[0.5, 0.0, 0.4, 0.1]).unwrap();
    let hasty = Parameters {
        quantum: 200_000,
        utilisation: 0.5,
        growth: 1.5,
        initial: 2,
    };
    let short = Rounds::new(even.clone()).with_length(1_000_000);
    let mut all: Vec<(_, Schedule)> = vec![
        ("prompt", Schedule::Prompt),
        ("fair", uneven.into()),
        ("short independent rounds", short.independent(7).into()),
        ("adaptive", adaptive(4)),
        ("hasty", Adaptive::new(4, hasty).unwrap().into()),
        ("donate", FixedShares::new(&even, Otherwise::Donate).into()),
    ];
    if workers >= 4 {
        all.push(("stages", FixedShares::new(&even, Otherwise::Wait).into()));
    }
    all
}

#[test]
fn under_every_schedule_random_programs_give_their_serial_results() {
    quiet();
    assert_eq!(LEVELS, 4);
    let (rounds, workers) = if cfg!(debug_assertions) {
        (1, vec![2, 5])
    } else {
        (20, vec![1, 2, 5])
    };
    for seed in 0..rounds {
        for &workers in &workers {
            for (name, schedule) in all_schedules(workers) {
                let runtime = Runtime::builder()
                    .workers(workers)
                    .levels::<Four>()
                    .schedule(schedule)
                    .build()
                    .unwrap();
                println!("{name}, {workers} workers, seed {seed}");
                ends(move || run_random(runtime, seed, 60));
            }
        }
    }
}

/// Gives level 1 two rounds, and panics then. What it panics with panics when it is dropped, and so does the schedule.
#[derive(Clone, Debug, Default)]
struct Panics(usize);

impl Drop for Panics {
    fn drop(&mut self) {
        if self.0 == 3 && !std::thread::panicking() {
            panic!("this schedule panics when it is dropped");
        }
    }
}

impl LevelSchedule for Panics {
    fn period(&self) -> Period {
        Period::EachWorker(1_000_000)
    }

    fn seat(&mut self, _: usize, _: usize, _: u64) -> Seat {
        self.0 += 1;
        if self.0 == 3 {
            std::panic::panic_any(Panics(3));
        }
        Seat::at(1, Otherwise::Donate)
    }
}

#[test]
fn after_a_panic_of_an_own_schedule_the_workers_are_prompt() {
    quiet();
    ends(|| {
        let builder = Runtime::builder().workers(1).levels::<Two>();
        let runtime = builder.schedule(Schedule::own(Panics::default()));
        let runtime = runtime.build().unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        let spin = |turns: usize| {
            let ended = ended.clone();
            async move {
                for _ in 0..turns {
                    urgency::yield_now().await;
                }
                ended.fetch_add(1, Relaxed)
            }
        };
        // Long enough for the third round.
        let lower: Vec<_> = (0..2)
            .map(|_| runtime.at(Lower).spawn(spin(200_000)))
            .collect();
        let upper: Vec<_> = (0..2)
            .map(|_| runtime.at(Upper).spawn(spin(100_000)))
            .collect();
        let upper: Vec<usize> = upper.into_iter().map(|task| task.get().unwrap()).collect();
        assert!(upper.iter().all(|before| *before < 2), "{upper:?}");
        let lower = lower.into_iter().map(|task| task.get().unwrap());
        assert_eq!(lower.max(), Some(3));
    });
}

/// A closure that sleeps in the kernel uses no seat. Its level kept the seat, and what it slept for had none.
#[test]
fn closures_of_all_levels_that_sleep_for_each_other_all_begin_under_adaptive() {
    for workers in [1, 2, 8] {
        for each in [[3, 3, 3, 3], [0, 6, 6, 0]] {
            let builder = Runtime::builder().workers(workers).levels::<Four>();
            let runtime = builder.schedule(adaptive(4)).build().unwrap();
            let meet = Arc::new(Barrier::new(12));
            let levels: [LevelId; 4] = [L0.into(), L1.into(), L2.into(), L3.into()];
            let closures = levels.into_iter().zip(each).flat_map(|(level, count)| {
                let at = runtime.at(level);
                let meet = &meet;
                (0..count).map(move |_| {
                    let meet = meet.clone();
                    at.spawn_fn(move || {
                        meet.wait();
                    })
                })
            });
            let closures: Vec<_> = closures.collect();
            for closure in closures {
                ends(|| closure.get().unwrap());
            }
        }
    }
}
