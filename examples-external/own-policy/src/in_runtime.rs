//! The three in the runtime.
//!
//! The order and the schedule: urgent tasks never end, and a batch ends all the same. Under the default schedule the
//! urgent tasks would keep all workers, and the batch would wait for ever. The night shift gives it one worker in four.
//! Within each level the tasks are in the queues of [`SpillingQueues`].
//!
//! The core policy: a job that was there first has no core while a newer one runs, and has all of them back afterwards.

use crate::{between_jobs::NewestFew, between_levels::NightShift, within_level::SpillingQueues};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    Runtime,
    jobs::{CoreSet, JobControl},
    policy::Schedule,
};

urgency::levels! { Day: Request > Batch }

/// Runs a batch of so many tasks below endless requests. Returns the sum of their results.
pub fn run(tasks: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let runtime = Runtime::builder()
        .workers(4)
        .levels::<Day>()
        .pool(SpillingQueues)
        .schedule(Schedule::own(NightShift))
        .build()?;
    let ends = Arc::new(AtomicBool::new(false));
    let requests: Vec<_> = (0..8)
        .map(|_| {
            let ends = ends.clone();
            runtime.at(Request).spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    urgency::yield_now().await;
                }
            })
        })
        .collect();
    let batch: Vec<_> = (0..tasks)
        .map(|number| runtime.at(Batch).spawn(async move { number }))
        .collect();
    let mut sum = 0;
    for task in batch {
        sum += task.get()?;
    }
    ends.store(true, Ordering::Relaxed);
    for request in requests {
        request.get()?;
    }
    Ok(sum)
}

/// An old job beside a new one, under [`NewestFew`] with room for one.
pub fn run_jobs() -> Result<(), Box<dyn std::error::Error>> {
    let cores = CoreSet::builder()
        .cores(2)
        .core_policy(NewestFew::new(1))
        .build()?;
    let ends = Arc::new(AtomicBool::new(false));
    let until = ends.clone();
    let old = cores.spawn_fn(move || {
        while !until.load(Ordering::Relaxed) {
            urgency::scheduling_point();
        }
    })?;
    comes_to(&old, 2)?;
    let its = old.control();
    let newest = cores.spawn_fn(move || comes_to(&its, 0))?;
    newest.get()??;
    comes_to(&old, 2)?;
    ends.store(true, Ordering::Relaxed);
    old.get()?;
    Ok(())
}

/// Waits until the policy has given the job so many cores.
fn comes_to(job: &JobControl, count: usize) -> Result<(), String> {
    let limit = Instant::now() + Duration::from_secs(20);
    let entitled = || job.stats().and_then(|stats| stats.share.entitled);
    while entitled() != Some(count) {
        if Instant::now() > limit {
            return Err(format!("it has {:?} cores, and not {count}", entitled()));
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_job_has_no_core_while_the_newest_one_runs() {
        run_jobs().unwrap();
    }

    #[test]
    fn the_batch_ends_below_endless_requests() {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(run(1000).unwrap()));
        let sum = told.recv_timeout(std::time::Duration::from_secs(60));
        assert_eq!(sum, Ok(499_500));
    }
}
