//! Spawn 10^6 async tasks from one task, then await them all: allocation, queues, and the wake-up of the waiting task.

#[cfg(feature = "ours")]
mod ours;
mod tokio;

use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many tasks.
#[derive(Clone, Copy)]
pub struct Config {
    /// Tasks.
    pub tasks: u64,
}

impl Config {
    /// Times `sum`, which spawns tasks that return 0, 1, 2, ... and adds up what they return.
    pub fn measure(&self, sum: impl FnMut() -> u64) -> Sample {
        let expected = (self.tasks - 1) * self.tasks / 2;
        let sample = timing::repeat(3, &expected, sum);
        let time = sample.get("time_ns").expect("repeat measures the time");
        sample.with("task_ns", time / self.tasks as f64)
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        tasks: scale.pick(1_000_000, 10_000),
    };
    let experiment = Experiment::new("task-spawn", "spawn and await 10^6 async tasks, 2 workers")
        .table("tokio", &["task_ns", "cpu_ns", "peak_rss_bytes"])
        .contender("tokio", move || tokio::run(config))
        .bar(Bar::times_at_most("ours", "task_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
