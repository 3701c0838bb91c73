//! The time in which every level has work left, and what each of them ran in it.
//!
//! In that time the levels' stretches are the ones in the papers' feasibility sum (`bounds::feasibility`): a level that
//! ran w of work in a time t, on P workers, was stretched by P t / w. Afterwards a level gets what others no longer
//! use, and its stretch says nothing of shares.
//!
//! The contest ends when the first level has run all that it has, which is known from the DAG. Slices that are under
//! way then count as far as they have run.

use super::{Engine, State, Worker};

/// See the module's text.
#[derive(Debug)]
pub(super) struct Contest {
    /// By level: the work that it has not run.
    left: Vec<u64>,
    is_over: bool,
}

impl Contest {
    pub(super) fn new(work: Vec<u64>) -> Self {
        Contest {
            left: work,
            is_over: false,
        }
    }
}

impl Engine<'_> {
    /// A worker has just run so much of a level, and it is in the report.
    pub(super) fn contested(&mut self, level: u8, ran: u64) {
        let contest = &mut self.contest;
        let left = &mut contest.left[usize::from(level)];
        *left -= ran;
        if *left > 0 || contest.is_over {
            return;
        }
        contest.is_over = true;
        let now = self.now;
        self.report.contested = now;
        for level in &mut self.report.levels {
            level.contested = level.busy;
        }
        let is_under_way = |worker: &&Worker| worker.state == State::Busy && worker.slice > 0;
        for worker in self.workers.iter().filter(is_under_way) {
            let ran = now.saturating_sub(worker.started).min(worker.slice);
            self.report.levels[usize::from(worker.level)].contested += ran;
        }
    }
}
