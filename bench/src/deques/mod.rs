//! Hundreds of deques of one level (Prompt I-Cilk, section 3: memcached has as many at any time): what it costs until
//! one goes on, by how many there are. Parties meet at a barrier, again and again; each time all of them are ready at
//! once, in one pool.
//!
//! - `stacks-<count>`: parties are closures that block, each with a stack and a deque of its own, in which it has a
//!   fork when it meets the others;
//! - `tasks-<count>` and `tokio-<count>`: parties are async tasks.

#[cfg(feature = "ours")]
mod ours;
mod tokio;

use crate::engines::by_workers;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// How many parties there are, and the names of the contenders.
const COUNTS: [(u64, [&str; 3]); 4] = [
    (2, ["stacks-2", "tasks-2", "tokio-2"]),
    (16, ["stacks-16", "tasks-16", "tokio-16"]),
    (128, ["stacks-128", "tasks-128", "tokio-128"]),
    (1024, ["stacks-1024", "tasks-1024", "tokio-1024"]),
];

/// Parties, and how often they meet.
#[derive(Clone, Copy)]
struct Config {
    parties: u64,
    meetings: u64,
    workers: usize,
}

impl Config {
    /// Times `meet`, which returns how often parties went on.
    fn measure(&self, meet: impl FnMut() -> u64) -> Sample {
        let expected = self.parties * self.meetings;
        let sample = timing::repeat(1, &expected, meet);
        sample.with_each("resume_ns", expected)
    }
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = move |parties, resumptions: u64| Config {
        parties,
        meetings: (resumptions / parties).max(2),
        workers,
    };
    let resumptions = scale.pick(200_000, 2_000);
    let mut experiment = Experiment::new(
        format!("deques-{workers}"),
        format!("so many stacks or tasks of one level go on at once, {workers} worker(s)"),
    )
    .table("tasks-2", &["resume_ns", "cpu_ns"]);
    for (count, [of_stacks, of_tasks, of_tokio]) in COUNTS {
        let tasks = config(count, resumptions);
        experiment = experiment.contender(of_tokio, move || tokio::run(tasks));
        #[cfg(feature = "ours")]
        {
            let stacks = config(count, resumptions / 4);
            experiment = experiment
                .contender(of_tasks, move || ours::tasks(tasks))
                .contender(of_stacks, move || ours::stacks(stacks));
        }
        #[cfg(not(feature = "ours"))]
        let _ = (of_stacks, of_tasks);
    }
    experiment
        .bar(Bar::times_at_most(
            "stacks-1024",
            "resume_ns",
            1.5,
            &["stacks-16"],
        ))
        .bar(Bar::times_at_most(
            "tasks-1024",
            "resume_ns",
            1.0,
            &["tokio-1024"],
        ))
}
