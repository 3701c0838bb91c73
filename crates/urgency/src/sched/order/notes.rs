//! What each worker notes of each level of a job: its counters, and what its next look at the level has to know.
//!
//! Only the worker's holder writes, and it does so at every dispatch: each level of each worker has cache lines of its
//! own.

use super::close_look::CloseLook;
use crate::{account::counters::LevelCounters, protocol::pace::Pace, sched::worker::Worker};
use crossbeam_utils::CachePadded;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Notes {
    levels: usize,
    /// All levels of one worker follow each other.
    all: Box<[CachePadded<AtLevel>]>,
}

/// What a worker notes of one level.
#[derive(Debug, Default)]
pub(crate) struct AtLevel {
    /// By how much it overtakes.
    pub(super) pace: Pace,
    /// When it looked closely.
    pub(super) close_look: CloseLook,
    /// What it did.
    pub(in crate::sched) did: LevelCounters,
}

impl Notes {
    pub(in crate::sched) fn new(workers: usize, levels: usize) -> Self {
        let all = (0..workers * levels).map(|_| CachePadded::default());
        Notes {
            levels,
            all: all.collect(),
        }
    }

    #[inline]
    pub(in crate::sched) fn at(&self, worker: &Worker, level: u8) -> &AtLevel {
        &self.all[worker.id * self.levels + usize::from(level)]
    }

    /// What a worker did at each level.
    pub(in crate::sched) fn of(&self, worker: &Worker) -> impl Iterator<Item = &LevelCounters> {
        let its = &self.all[worker.id * self.levels..][..self.levels];
        its.iter().map(|noted| &noted.did)
    }
}
