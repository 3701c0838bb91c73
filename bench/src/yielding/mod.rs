//! 100 tasks that yield 10^4 times each: the cost of going once through the queue.

#[cfg(feature = "ours")]
use crate::engines::ours::Ours;
use crate::engines::tasks::{Tasks, yielding};
use crate::engines::tokio::OnTokio;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many tasks, and how often each yields.
#[derive(Clone, Copy)]
pub struct Config {
    /// Tasks.
    pub tasks: u64,
    /// Yields of each.
    pub yields: u64,
}

impl Config {
    /// One sample.
    fn measure<E: Tasks>(self) -> Sample {
        let Config { tasks, yields } = self;
        let expected = tasks * yields;
        let sample = E::sample(2, false, |runtime| {
            let all = || E::run(runtime, yielding::<E>(tasks, yields));
            timing::repeat(3, &expected, all)
        });
        sample.with_each("yield_ns", expected)
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        tasks: 100,
        yields: scale.pick(10_000, 100),
    };
    let experiment = Experiment::new(
        "yield",
        "100 async tasks that yield 10^4 times each, 2 workers",
    )
    .table("tokio", &["yield_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("tokio", move || config.measure::<OnTokio>())
    .bar(Bar::times_at_most("ours", "yield_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || config.measure::<Ours>());
    vec![experiment]
}
