//! A core set of two cores under a core policy; each job is a job.
//!
//! The workers are pinned. A worker that moves goes to another thread, and the kernel may wake that thread on the
//! processor of the other worker, where it waits beside an idle processor.

use super::{AT_ONCE, CORES, Config};
use crate::engines;
use urgency::jobs::{CoreSet, CoreSetBuilder};
use urgency::policy::cores::{AtBoundary, Boundary, Drep, Shares, StaticEqual, Unpartitioned};
use urgency_measure::Sample;

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
    let like = set.job();
    let sample = config.measure(|jobs, job| {
        let jobs = jobs.clone();
        let root = move || jobs.run(job, &engines::ours::Join);
        let submitted = like.clone().spawn_fn(root);
        submitted.expect("the queue holds all jobs").detach();
    });
    set.drain();
    let stats = set.stats();
    assert_eq!(stats.over, config.jobs as u64, "{stats:?}");
    sample.with("stats_built", stats.built as f64)
}
