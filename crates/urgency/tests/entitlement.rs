//! The number of workers that run is the number of processors that the process may use, also when that changes while
//! the runtime runs.
#![cfg(target_os = "linux")]

mod common;

use common::{ends, in_child, is_child};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{JoinHandle, Runtime, WorkerShare, jobs::CoreSet};

/// All threads of this process may use these processors, and no others.
fn restrict(cpus: &CpuSet) {
    for thread in std::fs::read_dir("/proc/self/task").unwrap() {
        let tid = thread.unwrap().file_name().into_string().unwrap();
        // A thread that has ended meanwhile needs none.
        let _ = sched_setaffinity(Pid::from_raw(tid.parse().unwrap()), cpus);
    }
}

/// The processors of this process, and one of them; `None` where there is but one.
fn all_and_one() -> Option<(CpuSet, CpuSet)> {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    (all.count() > 1).then_some((all, one))
}

/// Closures that come to scheduling points until `stop`, and again as many that wait for a worker.
fn keep_busy(runtime: &Runtime, stop: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let workers = runtime.stats().workers.len();
    let spins = |_| {
        let stop = stop.clone();
        runtime.spawn_fn(move || {
            while !stop.load(SeqCst) {
                urgency::scheduling_point();
            }
        })
    };
    (0..2 * workers).map(spins).collect()
}

/// Waits until it is so for ten looks in a row.
#[track_caller]
fn until_it_stays(runtime: &Runtime, is_so: impl Fn(WorkerShare) -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    let mut times = 0;
    while times < 10 {
        let share = runtime.stats().share;
        assert!(Instant::now() < limit, "it stays at {share:?}");
        times = if is_so(share) { times + 1 } else { 0 };
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn busy_workers_follow_an_affinity_that_is_lowered_and_raised() {
    if !is_child() {
        return in_child("busy_workers_follow_an_affinity_that_is_lowered_and_raised");
    }
    let Some((all, one)) = all_and_one() else {
        return;
    };
    ends(move || {
        let runtime = Runtime::builder().build().unwrap();
        let workers = runtime.stats().workers.len();
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = keep_busy(&runtime, &stop);
        for _ in 0..2 {
            until_it_stays(&runtime, |share| {
                (share.usable, share.serving) == (workers, workers)
            });
            restrict(&one);
            until_it_stays(&runtime, |share| (share.usable, share.serving) == (1, 1));
            restrict(&all);
        }
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}

#[test]
fn a_process_that_may_use_more_processors_than_at_first_uses_them() {
    if !is_child() {
        return in_child("a_process_that_may_use_more_processors_than_at_first_uses_them");
    }
    let Some((all, one)) = all_and_one() else {
        return;
    };
    ends(move || {
        restrict(&one);
        let builder = Runtime::builder().most_workers(all.count() as usize);
        let runtime = builder.build().unwrap();
        assert_eq!(runtime.stats().share.usable, 1);
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = keep_busy(&runtime, &stop);
        until_it_stays(&runtime, |share| (share.usable, share.serving) == (1, 1));
        restrict(&all);
        until_it_stays(&runtime, |share| share.serving == all.count() as usize);
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}

/// A program that names the number has reasons: its code may spin until other code does something.
#[test]
fn a_number_of_workers_that_the_program_named_runs_whatever_the_process_may_use() {
    if !is_child() {
        return in_child(
            "a_number_of_workers_that_the_program_named_runs_whatever_the_process_may_use",
        );
    }
    let Some((_, one)) = all_and_one() else {
        return;
    };
    ends(move || {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = keep_busy(&runtime, &stop);
        until_it_stays(&runtime, |share| share.serving == 2);
        restrict(&one);
        thread::sleep(Duration::from_millis(2500));
        until_it_stays(&runtime, |share| share.serving == 2);
        stop.store(true, SeqCst);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}

#[test]
fn the_jobs_of_a_core_set_share_the_workers_that_are_left() {
    if !is_child() {
        return in_child("the_jobs_of_a_core_set_share_the_workers_that_are_left");
    }
    let Some((_, one)) = all_and_one() else {
        return;
    };
    ends(move || {
        let cores = CoreSet::builder().build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let spin = || {
            let stop = stop.clone();
            cores.spawn_fn(move || {
                while !stop.load(SeqCst) {
                    urgency::scheduling_point();
                }
            })
        };
        let jobs: Vec<_> = (0..3).map(|_| spin().unwrap()).collect();
        restrict(&one);
        let serving = || {
            let all = jobs.iter().filter_map(|job| job.stats());
            all.map(|stats| stats.share.serving).sum::<usize>()
        };
        let limit = Instant::now() + Duration::from_secs(60);
        let mut times = 0;
        while times < 10 {
            assert!(Instant::now() < limit, "{} workers serve", serving());
            times = if serving() <= 1 { times + 1 } else { 0 };
            thread::sleep(Duration::from_millis(5));
        }
        // Each of them has its turns on the one that is left.
        let ran = |job: &urgency::jobs::JobHandle<()>| {
            let total = job.stats().unwrap().total();
            total.running
        };
        let before: Vec<_> = jobs.iter().map(ran).collect();
        for (job, before) in jobs.iter().zip(before) {
            while ran(job) <= before {
                assert!(Instant::now() < limit, "a job is left out");
                thread::sleep(Duration::from_millis(5));
            }
        }
        stop.store(true, SeqCst);
        jobs.into_iter().for_each(|job| job.get().unwrap());
    });
}
