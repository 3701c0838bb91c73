//! Jobs that only fork: no work of theirs ever waits, and they run for long without an end of any piece of it. They
//! have their shares, and what they ran is in their accounts.

mod common;

use common::{ends, until};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use urgency::{
    Runtime, Stats,
    jobs::{CoreSet, JobBuilder, JobHandle},
    join,
};

fn tree(depth: u32, stop: &AtomicBool) {
    if depth > 0 && !stop.load(Relaxed) {
        join(|| tree(depth - 1, stop), || tree(depth - 1, stop));
    }
}

fn until_stopped(stop: &Arc<AtomicBool>) -> impl FnOnce() + Send + 'static {
    let stop = stop.clone();
    move || {
        while !stop.load(Relaxed) {
            tree(10, &stop);
        }
    }
}

fn forks_until(stop: &Arc<AtomicBool>, job: JobBuilder) -> JobHandle<()> {
    job.spawn_fn(until_stopped(stop)).unwrap()
}

/// By count: the policy hears of the jobs, and gives the heavier one both cores but for the other one's part.
#[test]
fn the_policy_is_asked_about_as_many_fork_join_jobs_as_cores() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let jobs = [cores.job().weight(100), cores.job()].map(|job| forks_until(&stop, job));
        let share = |of: usize| jobs[of].control().stats().map(|stats: Stats| stats.share);
        until(|| share(0).is_some_and(|share| share.decisions > 0 && share.entitled == Some(2)));
        stop.store(true, Relaxed);
        jobs.into_iter().for_each(|job| job.get().unwrap());
    });
}

#[test]
fn the_policy_is_asked_about_runtimes_that_share_workers_and_only_fork() {
    ends(|| {
        let first = Runtime::builder().workers(2).build().unwrap();
        let second = Runtime::builder()
            .share_workers_with(&first)
            .build()
            .unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let tasks = [&first, &second].map(|runtime| runtime.spawn_fn(until_stopped(&stop)));
        until(|| first.stats().share.decisions > 0);
        stop.store(true, Relaxed);
        tasks.into_iter().for_each(|task| task.get().unwrap());
    });
}

fn compute(length: Duration) -> Duration {
    let since = Instant::now();
    while since.elapsed() < length {
        hint::spin_loop();
    }
    since.elapsed()
}

#[test]
fn what_a_root_runs_until_its_end_is_in_its_jobs_accounts_and_in_no_others() {
    const LONG: Duration = Duration::from_millis(60);
    ends(|| {
        let cores = CoreSet::builder().cores(1).build().unwrap();
        let ran = |root: Box<dyn FnOnce() + Send>| {
            let job = cores.spawn_fn(root).unwrap();
            let control = job.control();
            job.get().unwrap();
            control.stats().unwrap().total().running
        };
        let long = ran(Box::new(|| _ = compute(LONG)));
        assert!(long >= LONG, "{long:?}");
        // The same container.
        let short = ran(Box::new(|| ()));
        assert!(short < LONG / 2, "{short:?} of the job before");
        let job = cores.spawn(async { compute(LONG) }).unwrap();
        let control = job.control();
        job.get().unwrap();
        assert!(control.stats().unwrap().total().running >= LONG);
    });
}

#[test]
fn what_a_job_runs_now_is_in_its_accounts() {
    ends(|| {
        let cores = CoreSet::builder().cores(1).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let job = forks_until(&stop, cores.job());
        let control = job.control();
        let running = || control.stats().map(|stats| stats.total().running);
        until(|| running() > Some(Duration::from_millis(20)));
        stop.store(true, Relaxed);
        job.get().unwrap();
    });
}
