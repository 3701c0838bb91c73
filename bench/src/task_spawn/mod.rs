//! Spawn 10^6 async tasks from one task, then await them all: allocation, queues, and the wake-up of the waiting task.

#[cfg(feature = "ours")]
use crate::engines::ours::Ours;
use crate::engines::tasks::{Tasks, sum};
use crate::engines::tokio::OnTokio;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many tasks.
#[derive(Clone, Copy)]
pub struct Config {
    /// Tasks.
    pub tasks: u64,
}

impl Config {
    /// One sample: tasks return 0, 1, 2, ... and are added up.
    fn measure<E: Tasks>(self) -> Sample {
        let tasks = self.tasks;
        let expected = (tasks - 1) * tasks / 2;
        let sample = E::sample(2, false, |runtime| {
            let all = || E::run(runtime, sum::<E, _>(tasks, |index| async move { index }));
            timing::repeat(3, &expected, all)
        });
        sample.with_each("task_ns", tasks)
    }
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        tasks: scale.pick(1_000_000, 10_000),
    };
    let experiment = Experiment::new("task-spawn", "spawn and await 10^6 async tasks, 2 workers")
        .table("tokio", &["task_ns", "cpu_ns", "peak_rss_bytes"])
        .contender("tokio", move || config.measure::<OnTokio>())
        .bar(Bar::times_at_most("ours", "task_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || config.measure::<Ours>());
    vec![experiment]
}
