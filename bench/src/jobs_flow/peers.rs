//! What a program has without a job layer: a pool for each job, one pool for all, tasks.

use super::{CORES, Config, DEPTH, UNIT};
use crate::engines;
use std::pin::Pin;
use urgency_measure::{Sample, timing};

/// A rayon pool for each job, built when it arrives.
pub fn pool_per_job(config: Config) -> Sample {
    config.measure(|jobs, job| {
        let jobs = jobs.clone();
        // The pool ends after what was spawned into it.
        engines::rayon::pool(CORES).spawn(move || jobs.run(job, engines::rayon::Join));
    })
}

/// One rayon pool.
pub fn shared_pool(config: Config) -> Sample {
    let pool = engines::rayon::pool(CORES);
    config.measure(|jobs, job| {
        let jobs = jobs.clone();
        pool.spawn(move || jobs.run(job, engines::rayon::Join));
    })
}

/// A runtime of Tokio; each fork is a task.
pub fn tokio(config: Config) -> Sample {
    let runtime = engines::tokio::runtime(CORES);
    config.measure(|jobs, job| {
        let jobs = jobs.clone();
        runtime.spawn(async move {
            for _ in 0..jobs.rounds(job) {
                tree(DEPTH).await;
                timing::use_processor(UNIT);
            }
            jobs.ended(job);
        });
    })
}

fn tree(depth: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if depth > 0 {
            let other = tokio::spawn(tree(depth - 1));
            tree(depth - 1).await;
            other.await.expect("no task panics");
            timing::use_processor(UNIT);
        }
    })
}
