//! Seats that turn: how a job with a part of the workers serves the levels of all of its seats.
//!
//! Fixed shares, *adaptive* and a schedule of the program's own give one seat to each worker of the core. A job beside
//! others has some of the workers only, and may keep these for good. So a level whose seats other workers have
//! would have nothing, for as long as the levels of the job's own seats have work.
//!
//! While a job lacks workers its seats go on by one worker, now and then: each of its workers comes to each seat, and
//! is there as long as at any other. So each level has the part of the job's workers that it has of the seats. A job
//! lacks workers if another job has some. It also does if it may not have more (`JobBuilder::max_cpus`), and something
//! waits for which none of its own workers has the seat. Otherwise no seat moves.
//!
//! The seats turn where the relief timer expires. The timer is armed while work waits that no idle worker would serve,
//! and a level is owed nothing before that. Rounds need none of this: they end one by one, and each worker is asked
//! about by itself.

use super::seats::State;
use crate::sched::job::Job;
use crate::sys::clock;
use urgency_policy::level::Seat;

/// For how long a worker keeps a seat, in nanoseconds: a round of a fair schedule by default.
const TURN: f64 = 5_000_000.0;

impl Job {
    /// The relief timer expired.
    pub(super) fn turn_seats(&self, state: &mut State) {
        let now = clock::now();
        let has_lasted = now.saturating_sub(state.turned) >= clock::ticks(TURN);
        if !has_lasted || !self.lacks_workers() {
            return;
        }
        state.turned = now;
        let workers = self.core.workers.iter();
        let mut seats: Vec<Seat> = workers.map(|worker| self.seats.of(worker)).collect();
        seats.rotate_left(1);
        self.give_seats(seats, now);
    }

    fn lacks_workers(&self) -> bool {
        let starves = |level: u8| {
            let mut seats = self.workers().map(|worker| self.seats.of(worker));
            self.is_queued(level) && !seats.any(|it| it.primary().is_none_or(|its| its == level))
        };
        let mut all = self.core.workers.iter();
        all.any(|worker| worker.is_of_other(self))
            // A worker with the seat may be on its way, unless the job has as many as it may.
            || !self.crew.has_room(|| self.workers().count())
                && self.pools.levels_of(starves) != 0
    }
}
