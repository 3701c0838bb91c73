//! A core set of two cores under a core policy; each job is a job.
//!
//! The workers are pinned. A worker that moves goes to another thread, and the kernel may wake that thread on the
//! processor of the other worker, where it waits beside an idle processor.

use super::{AT_ONCE, CORES, Config, Jobs};
use crate::engines;
use std::sync::Arc;
use urgency::jobs::{CoreSet, CoreSetBuilder};
use urgency::policy::cores::{AtBoundary, Boundary, Drep, Shares, StaticEqual, Unpartitioned};
use urgency_measure::Sample;
use urgency_measure::client::pacer::Paced;

/// Gives a core set its policy.
pub type Policy = fn(CoreSetBuilder) -> CoreSetBuilder;

/// The contenders, in the order of `simulated::POLICIES`.
pub const POLICIES: [(&str, Policy); 5] = [
    ("ours", |set| set.core_policy(Shares::default())),
    ("ours-drep", |set| set.core_policy(Drep::new(1))),
    ("ours-steal-boundary", |set| {
        set.core_policy(AtBoundary::new(Drep::new(1), Boundary::Steal))
    }),
    ("ours-static", |set| {
        set.core_policy(StaticEqual::new(CORES).expect("a number above 0"))
    }),
    ("ours-none", |set| set.core_policy(Unpartitioned)),
];

/// One sample.
pub fn run(config: Config, policy: Policy) -> Sample {
    on(CoreSet::builder().cores(CORES).pinned(), config, policy)
}

/// One sample under *shares*, with workers that the kernel places.
pub fn free(config: Config) -> Sample {
    on(CoreSet::builder().cores(CORES), config, POLICIES[0].1)
}

fn on(builder: CoreSetBuilder, config: Config, policy: Policy) -> Sample {
    let builder = builder.most_running(AT_ONCE).most_queued(config.jobs);
    let set = policy(builder);
    let set = set.build().expect("threads can be started");
    let run = |jobs: &Jobs, job| jobs.run(job, engines::ours::Join);
    let sample = config.measure(each_as_a_job(&set, run));
    set.drain();
    let stats = set.stats();
    assert_eq!(stats.over, config.jobs as u64, "{stats:?}");
    sample.with("stats_built", stats.built as f64)
}

/// Starts what arrives as a job of the set, which `run` is the code of.
pub fn each_as_a_job<P: Paced>(
    set: &CoreSet,
    run: impl Fn(&P, usize) + Copy + Send + 'static,
) -> impl FnMut(&Arc<P>, usize) + Send {
    let like = set.job();
    move |program, job| {
        let program = program.clone();
        let submitted = like.clone().spawn_fn(move || run(&program, job));
        submitted.expect("the queue holds all jobs").detach();
    }
}
