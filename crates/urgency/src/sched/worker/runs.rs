//! What a worker runs, as it shows to the threads that look for one.
//!
//! A poll that computes shows itself as any other, until it forks. A thread that looks for a worker finds it by its
//! length (`rescue/turns.rs`, rule 7).

use super::Worker;
use crate::sys::primitives::atomic::{AtomicU8, Ordering};

/// See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::sched) enum Runs {
    /// A poll of a task that has come to no scheduling point.
    Poll,
    /// A poll of a task that has, and forks, as a rule; or from which the worker was revoked and restored.
    LongPoll,
    /// Anything else: a closure, a fork, the code of a plain thread.
    Long,
}

impl Runs {
    /// Of code that comes to a scheduling point, or begins there: a poll, or anything else.
    #[inline]
    pub(in crate::sched) fn at_scheduling_point(is_poll: bool) -> Self {
        match is_poll {
            true => Runs::LongPoll,
            false => Runs::Long,
        }
    }
}

/// Shows it; at first a poll. Written by the worker's holder.
#[derive(Debug, Default)]
pub(in crate::sched) struct ShownRuns(AtomicU8);

impl ShownRuns {
    pub(in crate::sched) fn get(&self) -> Runs {
        match self.0.load(Ordering::SeqCst) {
            0 => Runs::Poll,
            1 => Runs::LongPoll,
            _ => Runs::Long,
        }
    }

    /// Shows `runs`, in a sequentially consistent step if that is news. Whether it was a poll that is shown no longer.
    #[inline]
    pub(in crate::sched) fn show(&self, runs: Runs) -> bool {
        let before = self.0.load(Ordering::Relaxed);
        let news = before != runs as u8;
        if news {
            self.0.store(runs as u8, Ordering::SeqCst);
        }
        news && before == Runs::Poll as u8
    }
}

impl Worker {
    /// What it runs.
    pub(in crate::sched) fn runs(&self) -> Runs {
        self.shown.runs.get()
    }

    /// Whether what it runs is a poll of a task that has come to no scheduling point.
    pub(in crate::sched) fn is_brief(&self) -> bool {
        self.runs() == Runs::Poll
    }

    /// The holder announces what it is about to run. Whether it ran a poll until now, and is brief no longer.
    #[inline]
    pub(in crate::sched) fn set_runs(&self, runs: Runs) -> bool {
        self.shown.runs.show(runs)
    }
}
