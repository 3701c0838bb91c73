//! Primitives and channels: Tokio's on Tokio, ours on ours, the same programs (`programs!` is written once
//! and expanded for each).
//!
//! - *alone*: one task and a primitive for which nobody waits, the fast path.
//! - *shared*: 8 tasks that use it for a moment, in turns that they choose (each yields after 16 operations).
//! - *queued*: 8 tasks, of which the holder always yields, so that all others wait in the queue and each
//!   release is a hand-over.

#[cfg(feature = "ours")]
mod ours;
mod programs;
mod tokio;

use crate::engines::WORKERS;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// What is done, how often in all.
#[derive(Clone, Copy)]
pub struct Config {
    /// Which program.
    pub program: Program,
    /// Number of workers.
    pub workers: usize,
    /// Operations in all.
    pub operations: u64,
}

/// The programs.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    /// A mutex in one task.
    MutexAlone,
    /// A mutex that 8 tasks share.
    MutexShared,
    /// A mutex for which 7 of 8 tasks wait.
    MutexQueued,
    /// A semaphore in one task.
    SemaphoreAlone,
    /// A semaphore of 2 permits for which 6 of 8 tasks wait.
    SemaphoreQueued,
    /// A reader-writer lock: 7 of 8 tasks read, one writes.
    RwLock,
    /// A channel for 128 messages, from one task to one.
    MpscOne,
    /// A channel for 128 messages, from 8 tasks to one.
    MpscMany,
    /// An unbounded channel, from one task to one.
    MpscUnbounded,
    /// A message to oneself, in a new channel each time.
    OneshotAlone,
    /// A request with a channel for its answer, to another task.
    OneshotCall,
    /// Messages to 4 receivers.
    Broadcast,
}

/// How many tasks share.
pub const TASKS: u64 = 8;

/// Receivers of the broadcast.
pub const RECEIVERS: u64 = 4;

impl Config {
    /// Times `run`, which returns how many operations were made.
    pub fn measure(&self, run: impl FnMut() -> u64) -> Sample {
        let sample = timing::repeat(3, &self.operations, run);
        sample.with_each("operation_ns", self.operations)
    }
}

/// Each program with 1 and 2 workers; a program of one task with one worker.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    use Program::*;
    let million = scale.pick(1_000_000, 8_000);
    let some = scale.pick(400_000, 8_000);
    [
        (
            "sync-mutex-alone",
            "a mutex that one task locks",
            MutexAlone,
            million,
        ),
        (
            "sync-mutex-shared",
            "a mutex that 8 tasks lock",
            MutexShared,
            million,
        ),
        (
            "sync-mutex-queued",
            "a mutex for which 7 of 8 tasks wait",
            MutexQueued,
            some,
        ),
        (
            "sync-semaphore-alone",
            "a semaphore that one task acquires",
            SemaphoreAlone,
            million,
        ),
        (
            "sync-semaphore-queued",
            "2 permits for 8 tasks",
            SemaphoreQueued,
            some,
        ),
        (
            "sync-rwlock",
            "a lock that 7 tasks read and one writes",
            RwLock,
            million,
        ),
        (
            "chan-mpsc-one",
            "a channel for 128 messages, one sender",
            MpscOne,
            million,
        ),
        (
            "chan-mpsc-many",
            "a channel for 128 messages, 8 senders",
            MpscMany,
            million,
        ),
        (
            "chan-mpsc-unbounded",
            "an unbounded channel, one sender",
            MpscUnbounded,
            million,
        ),
        (
            "chan-oneshot-alone",
            "a oneshot channel within a task",
            OneshotAlone,
            million,
        ),
        (
            "chan-oneshot-call",
            "requests answered by oneshot channels",
            OneshotCall,
            some,
        ),
        ("chan-broadcast", "messages to 4 receivers", Broadcast, some),
    ]
    .into_iter()
    .flat_map(|(name, about, program, operations)| {
        let alone = matches!(program, MutexAlone | SemaphoreAlone | OneshotAlone);
        let workers = if alone { &WORKERS[..1] } else { &WORKERS[..] };
        workers.iter().map(move |&workers| {
            let config = Config {
                program,
                workers,
                operations,
            };
            experiment(format!("{name}-{workers}"), about, config)
        })
    })
    .collect()
}

fn experiment(name: String, about: &str, config: Config) -> Experiment {
    let about = format!("{about}, {} worker(s)", config.workers);
    let experiment = Experiment::new(name, about)
        .table("tokio", &["operation_ns", "cpu_ns"])
        .contender("tokio", move || tokio::run(config))
        .bar(Bar::times_at_most("ours", "operation_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
