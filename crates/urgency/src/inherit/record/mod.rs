//! Recordings: what a runtime ran, as a computation that `urgency sim` takes as input.
//!
//! A recorded task is a *thread* of the DAG model (fairness paper, section 2.2), in *steps*. A step is what the task
//! runs between two points where it spawns, wakes another task, takes a result, or suspends. Edges say which step had
//! to end before which could begin. A latency says how long a step waited for what no recorded step brought about: I/O,
//! timers, plain threads.
//!
//! # What it costs
//!
//! Nothing in the scheduler. A recorded task *carries* its thread, as tasks carry deadlines and locals
//! (`inherit/mod.rs`): its future is wrapped where it is spawned, and the wrapper sees each poll, and lends a waker
//! that tells which step woke. So a runtime that does not record pays for one relaxed load in `spawn`, `block_on` and
//! where a result is taken: is there any recording runtime in this process? A runtime that records pays some
//! microseconds for each step, under one lock.
//!
//! # What is recorded, and what is not
//!
//! - *Work* is the processor's time of the thread: preemption, or more urgent work, makes a step no longer.
//! - A closure's steps are its stack's steps. What it forks with `join` or `scope` is part of the step: stolen forks
//!   count only as far as their parent waited at work, and what they spawn or wake comes after their parent's last step
//!   before. Spawn them, if the DAG is to show them.
//! - A wait for a result is an edge from the awaited thread's last step, whether the waiter suspended or found the
//!   result there. A wait for a wake-up (a channel, a lock) is an edge from the step that woke. A wait that was over
//!   before it began (a channel that was not empty) leaves none: the DAG may then have more parallelism than the
//!   program.
//! - A task that is cancelled ends after its last step. Edges to steps that never began are left out.
//! - After the limit of steps nothing new is recorded, and running threads go on in their last step.
//!
//! # Rules
//!
//! 1. *Here.* The thread whose code runs on the calling OS thread is the one that this code has inherited. Only the OS
//!    thread that began a step cuts or suspends the thread: stolen forks inherit, too.
//! 2. *After the end.* A task's waiter is woken when the task's last poll has returned, so nothing is inherited any
//!    more. For that the wrapper leaves the last step behind, until the next recorded poll on the OS thread. It counts
//!    while the scheduler says that a task is being run.
//! 3. *First wake-up.* Of several wake-ups between two polls the first counts. One in the middle of a poll
//!    counts for the next.
//! 4. *One lock.* All of a recorder is under one lock, which is never held while the program's code runs.

mod log;
mod recorded_thread;

pub use log::Recording;
pub(crate) use log::{Machine, Recorder};
pub(crate) use recorded_thread::{RecordedThread, Waits, waits};

use crate::tasks::{TaskRef, tell_taken};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

static ON: AtomicBool = AtomicBool::new(false);

/// Whether any runtime of this process records.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The recorder of a new runtime. `runs_task` says whether the calling thread runs a task.
pub(crate) fn start(steps: usize, runs_task: fn() -> bool) -> Recorder {
    ON.store(true, Ordering::Relaxed);
    tell_taken();
    Recorder::new(steps, runs_task)
}

/// `task` is of this recorded thread.
#[inline]
pub(crate) fn named(recorded: Option<Arc<RecordedThread>>, task: &TaskRef) {
    if let Some(recorded) = recorded {
        recorded.names(task.id());
    }
}

/// The calling code has taken the result of `task`.
#[cold]
pub(crate) fn took(task: &TaskRef) {
    if let Some(recorded) = recorded_thread::here() {
        recorded.took(task.id());
    }
}
