//! When a worker looks closely at a level that seems to have work for it.
//!
//! A level is ready as long as a task of it is in any ring, and a ring's only task is its owner's for a few
//! microseconds (`protocol/ring.rs`). So beside workers whose urgent tasks wake each other, a worker below finds the
//! level ready and nothing that it may take. To look into all rings, to take the level's bit back, and to look once
//! more takes steps in proportion to the workers, and writes the one word that all of them read. It did that in each
//! dispatch.
//!
//! Where workers are more than one group and levels more than one, a dispatch looks at what is on *offer* instead
//! (`Pools::offering`): one word for each level, with a bit for each group of which a shard has something, or a ring
//! two tasks or more.
//!
//! 1. An insertion into a shard shows the group, and so does a push that leaves more than one task in a ring: after the
//!    entry is in, and before the level's bit is set.
//! 2. A look that finds nothing on offer in a group that is shown takes the group out, and looks once more behind that
//!    (`groups.rs`).
//! 3. A worker that finds nothing looks closely: into all rings, as before. Then the close look *stands* for
//!    [`LOOK_AROUND`] looks of the worker and for a period of relief. While it stands, and another level has work, the
//!    worker leaves the level's bit as it is and goes on to that level.
//!
//! What comes on offer by its age alone, a ring's only task beside a long poll, is found by the next close look, or by
//! the expiry of relief that its push has set. What is taken out by mistake for a moment is found in the same way.

use super::aged::LOOK_AROUND;
use crate::{
    sched::{core::period, job::Job, worker::Worker},
    sys::primitives::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

/// One worker's last close look at one level. The worker's holder writes and reads it.
#[derive(Debug, Default)]
pub(in crate::sched) struct CloseLook {
    /// The worker's count of looks then.
    turn: AtomicU32,
    /// When that was, in ticks.
    at: AtomicU64,
}

impl CloseLook {
    /// The worker has looked closely, at this turn and time.
    pub(in crate::sched) fn made(&self, turn: u32, now: u64) {
        self.turn.store(turn, Relaxed);
        self.at.store(now, Relaxed);
    }

    /// Whether the last close look stands, `period` ticks at most.
    pub(in crate::sched) fn stands(&self, turn: u32, now: u64, period: u64) -> bool {
        turn.wrapping_sub(self.turn.load(Relaxed)) < LOOK_AROUND
            && now.saturating_sub(self.at.load(Relaxed)) < period
    }
}

impl Job {
    /// Step 2, of a group of which no stack offers a task.
    #[cold]
    pub(in crate::sched) fn offers_nothing(&self, group: usize, level: u8) {
        let Some(offering) = &self.pools.offering else {
            return;
        };
        let pool = self.pools.at(level);
        let offers = || {
            group < pool.shards() && !pool.shard(group).is_empty()
                || self
                    .stacks_in(group, level)
                    .any(|stack| stack.offers_task())
        };
        if !offers() && offering.clear(level, group, offers) {
            // Others may have found nothing on offer meanwhile.
            self.alert_below(level);
        }
    }

    /// Whether the worker's last close look at the level stands.
    pub(in crate::sched) fn has_looked_closely(&self, worker: &Worker, level: u8) -> bool {
        let stands = || {
            let look = &self.notes.at(worker, level).close_look;
            look.stands(worker.turn(), worker.since(), period())
        };
        self.pools.offering.is_some() && !self.seats.is_on() && stands()
    }

    /// The worker has looked closely at the level, and found nothing.
    pub(in crate::sched) fn looked_closely(&self, worker: &Worker, level: u8) {
        if self.pools.offering.is_some() {
            let look = &self.notes.at(worker, level).close_look;
            look.made(worker.turn(), worker.since());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_close_look_stands_for_so_many_looks_and_so_long() {
        let look = CloseLook::default();
        assert!(!look.stands(LOOK_AROUND, 5, 10), "none was made");
        look.made(u32::MAX, 100);
        assert!(look.stands(0, 100, 10));
        assert!(look.stands(LOOK_AROUND - 2, 109, 10));
        assert!(!look.stands(LOOK_AROUND - 1, 109, 10), "so many looks");
        assert!(!look.stands(0, 110, 10), "so long");
    }
}
