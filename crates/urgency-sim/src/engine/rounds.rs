//! Fair rounds, with the runtime's rules (`sched/share/rounds.rs` there).
//!
//! 1. A round is charged what its worker *ran* in it, not how long it lasted.
//! 2. Each millisecond (a fifth of a round) the accounts are settled: a worker in a round for level P may run another
//!    level L. That time is moved to L's account, if P had work or the worker serves P by now.
//! 3. A level that has used little of its share is *ahead* (`urgency_policy::level::Advance`), and comes
//!    before the primary level of every less urgent seat until the next settlement.
//!
//! The runtime settles when its relief timer expires, and that is armed only while work waits. Here it happens at the
//! first decision of any worker that comes so long or longer after the last one; while no worker decides, none could
//! act on it.

use super::{Engine, State};
use crate::dag::NONE;
use urgency_policy::level::{Period, Schedule, Settlement};

/// A round has so many settlements: of 5 ms, one in each of the runtime's relief periods.
const SETTLEMENTS: u64 = 5;

/// What is settled.
#[derive(Debug)]
pub(super) struct Accounts {
    /// By worker and level: time run since the last settlement.
    ran: Vec<u64>,
    levels: usize,
    settled_at: u64,
    /// The levels that are ahead.
    pub ahead: u64,
}

impl Accounts {
    pub(super) fn new(workers: usize, levels: usize) -> Self {
        Accounts {
            ran: vec![0; workers * levels],
            levels,
            settled_at: 0,
            ahead: 0,
        }
    }
}

impl Engine<'_> {
    /// Accounts for what a busy worker has run of its slice by now.
    pub(super) fn count_run(&mut self, me: usize) {
        let worker = &mut self.workers[me];
        if worker.state != State::Busy || worker.running == NONE {
            return;
        }
        let by_now = self.now.saturating_sub(worker.started).min(worker.slice);
        let ran = by_now - std::mem::replace(&mut worker.counted, by_now);
        worker.round_ran += ran;
        self.busy_in_quantum[usize::from(worker.level)] += ran;
        self.accounts.ran[me * self.accounts.levels + usize::from(worker.level)] += ran;
    }

    /// A decision: the accounts are settled if that is due, and the worker's round ends if it is over.
    pub(super) fn end_round(&mut self, me: usize) {
        if let Schedule::FairlyPrompt(_) | Schedule::Own(_) = &self.schedule
            && let Period::EachWorker(length) = self.period
            && self.now - self.accounts.settled_at >= length / SETTLEMENTS
        {
            self.settle();
        }
        if let Period::EachWorker(length) = self.period
            && self.now - self.workers[me].seated_at >= length
        {
            let ran = std::mem::take(&mut self.workers[me].round_ran);
            self.schedule.charge(self.workers[me].seat, ran);
            self.take_seat(me);
        }
    }

    fn settle(&mut self) {
        for me in 0..self.workers.len() {
            self.count_run(me);
        }
        let busy = |worker: &&super::Worker| worker.state == State::Busy;
        let running = self.workers.iter().filter(busy);
        let running = running.fold(0u64, |levels, worker| levels | 1 << worker.level);
        let levels = self.accounts.levels;
        let mut settlement = Settlement::new(levels, self.with_work, running);
        for (worker, ran_by) in self
            .workers
            .iter()
            .zip(self.accounts.ran.chunks_mut(levels))
        {
            let serves = match worker.state {
                State::Busy => 1 << worker.level,
                _ => 0,
            };
            for (level, ran) in (0u8..).zip(ran_by) {
                let ran = std::mem::take(ran);
                settlement.ran(&mut self.schedule, worker.seat, serves, level, ran);
            }
        }
        self.accounts.settled_at = self.now;
        self.accounts.ahead = settlement.end(&mut self.schedule);
        for worker in &mut self.workers {
            worker.seat = worker.seat.with_ahead(self.accounts.ahead);
        }
    }
}
