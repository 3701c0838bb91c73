//! Jobs that only fork: no work of theirs ever waits, and they run for long without an end of any piece of it. They
//! have their shares, and what they ran is in their accounts.

mod common;

use common::{ends, rounds_in, until, work};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime, Stats,
    jobs::{CoreSet, JobBuilder, JobHandle},
    join, par,
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

/// A job of pieces that take 40 ms and come to no scheduling point, and how many were in progress at most.
fn long_pieces(stop: &Arc<AtomicBool>, job: JobBuilder) -> (JobHandle<()>, Arc<AtomicUsize>) {
    let rounds = rounds_in(Duration::from_millis(40));
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let (stop, peak) = (stop.clone(), most.clone());
    let job = job.spawn_fn(move || {
        let piece = || {
            peak.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
            work(rounds);
            now.fetch_sub(1, Relaxed);
        };
        while !stop.load(Relaxed) {
            par::for_each(0..64, |_| {
                if !stop.load(Relaxed) {
                    piece();
                }
            });
        }
    });
    (job.unwrap(), most)
}

/// A worker that comes back from another job goes to the piece that it left, before it begins another one. (Without
/// that 20 to 30 pieces were in progress at once, in 8 runs. Now there are 2, and 3 in one run of 15: a stack whose
/// wait is over gets an idle worker directly.)
#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes what a worker takes first")]
fn beside_a_quiet_job_a_job_of_long_pieces_has_few_in_progress() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (long, most) = long_pieces(&stop, cores.job());
        let ends = stop.clone();
        let quiet = cores.spawn(async move {
            while !ends.load(Relaxed) {
                urgency::time::sleep(Duration::from_millis(3)).await;
                urgency::spawn_fn(|| join(|| work(20_000), || work(20_000)))
                    .await
                    .unwrap();
            }
        });
        thread::sleep(Duration::from_secs(2));
        stop.store(true, Relaxed);
        long.get().unwrap();
        quiet.unwrap().get().unwrap();
        let most = most.load(Relaxed);
        assert!(most <= 4, "{most} pieces at once");
    });
}

/// Of four jobs on two cores the pieces of one take 40 ms. Its threads go on when their worker goes to another job: few
/// at once, since what they run beside the workers is of the job's share. (24 and 31 pieces were in progress at once.)
#[test]
fn a_job_of_long_pieces_has_few_in_progress_beside_other_jobs() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (long, most) = long_pieces(&stop, cores.job());
        let others = [(); 3].map(|()| forks_until(&stop, cores.job()));
        thread::sleep(Duration::from_secs(3));
        stop.store(true, Relaxed);
        long.get().unwrap();
        others.into_iter().for_each(|job| job.get().unwrap());
        let most = most.load(Relaxed);
        assert!(most <= 8, "{most} pieces at once");
    });
}
