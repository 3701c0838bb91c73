//! Rounds: their ends, what is charged, advances, and the forks that a donor misses.
//!
//! 1. **The end of a round.** A round ends at the first expiry of the relief timer after its length (`seats.rs`). Its
//!    level is charged what the worker *ran* in it, and the next seat is drawn. So neither a late expiry nor the time
//!    until a thread has woken up is at the expense of the round's level. A worker that is idle at the expiry has taken
//!    nothing from other levels: its next round is drawn when it is busy at an expiry, and the round before is not
//!    charged. (A seat of a schedule of the program's own may wait. Its round ends by time also while its worker is
//!    idle: the seat may serve none of the levels with work.)
//! 2. **What others ran in it.** A worker in a round for level P may run another level L. At each expiry
//!    [`Settlement`] charges that time to L, unless it was a donation: P had no queued work and the worker has not
//!    returned to P. (Time that is no donation has one of two reasons: the worker was late, or L is ahead.) A level is
//!    *ahead* (`urgency_policy::level::Advance`) if it has used little of its share. The levels that are ahead become
//!    part of every seat, and come before the primary level. All accounts are kept by the workers' own counters of
//!    running time.
//! 3. **Missed forks.** Forks are private until a worker is hungry, and a worker that donates is not: it has other
//!    work. So the level of its round would never get a second worker. Therefore a worker that donates while another
//!    one runs its primary level *misses* that level. The seat assigner has a bit for it, the level's stacks get SHARE,
//!    and the first stack that has a fork to publish puts it into the pool, which alerts the donor. A worker that takes
//!    work of another level asks for forks of its primary level ([`Job::miss_primary`]), and each expiry asks again. A
//!    bit for a level that no worker misses any more costs one insertion.
//! 4. **Nothing queued.** While two workers run different levels, each with its forks to itself, one level may have
//!    more than its share; so the timer is armed then, too ([`Job::arm_for_rounds`]).
//! 5. **What has work.** A winner-take-all round is the urgent level's if that level has work as the round begins. A
//!    context is work of its level wherever it is: in a pool; with a worker that has taken it and is on the way to its
//!    thread, which the kernel may let wait for longer than a round (`SeatAssigner::is_bound_for`); run by a worker; in
//!    a stack that lost its worker and has not noticed yet.

use super::seats::{State, ask};
use crate::protocol::attention::{PREEMPT, SHARE};
use crate::sched::{
    core::period,
    job::Job,
    worker::{NO_LEVEL, Worker},
};
use crate::sys::clock;
use std::sync::atomic::Ordering;
use urgency_policy::level::{Otherwise, Settlement};

impl Job {
    /// Whether an event may take the worker from its stack. Not within half a relief period after a new seat asked the
    /// stack to go elsewhere, unless the stack has answered: it is about to come in by itself. (A stack whose worker
    /// was taken is in no pool until it checks in.)
    pub(crate) fn is_settled(&self, worker: &Worker) -> bool {
        let seated_at = self.seats.seating(worker).since().load(Ordering::Relaxed);
        seated_at == 0
            || clock::now().saturating_sub(seated_at) > period() / 2
            || self
                .core
                .holder(worker)
                .is_none_or(|stack| !stack.attention.is_pending(PREEMPT))
    }

    /// The relief timer expired.
    pub(super) fn end_rounds(&self, state: &mut State, length: u64) {
        let levels = self.pools.ready.levels_after_writes();
        if levels == 0 && !self.are_levels_mixed() {
            return;
        }
        let now = clock::now();
        let ahead = self.settle(state, levels, now);
        // Not the bits: the bit of a level without an entry stays until a worker looks there, and none does that waits.
        let queued = self.levels_queued();
        let overrunning = self.levels_overrunning();
        // An expiry is late rather than early: a round that ends before the middle of the next period is over.
        let due = clock::ticks(length as f64 - (length as f64 / 2.0).min(500_000.0));
        for worker in &self.core.workers {
            self.seats.seating(worker).set_ahead(ahead);
            if worker.level_in(self) == NO_LEVEL
                && self.seats.of(worker).otherwise() != Otherwise::Wait
            {
                self.seats
                    .seating(worker)
                    .since()
                    .store(0, Ordering::Relaxed);
                state.round_ran[worker.id] = 0;
                continue;
            }
            let seated_at = self.seats.seating(worker).since().load(Ordering::Relaxed);
            let lasted = now.saturating_sub(seated_at);
            if seated_at == 0 || lasted >= due {
                let ran = std::mem::take(&mut state.round_ran[worker.id]);
                if seated_at != 0 {
                    ask(&mut state.schedule, |it| {
                        it.charge(self.seats.of(worker), ran)
                    });
                }
                let count = self.core.workers.len();
                let with_work = queued | worker.levels_in_hand(self) | overrunning;
                let seat = ask(&mut state.schedule, |it| {
                    it.seat(worker.id, count, with_work)
                });
                self.seats.give(worker, seat);
                self.seats
                    .seating(worker)
                    .since()
                    .store(now, Ordering::Relaxed);
            }
            self.alert_if_drawn(worker, levels);
            self.miss_primary(worker, worker.level_in(self));
        }
    }

    /// Settles the accounts of all levels, by the workers' counters. Returns which are ahead.
    fn settle(&self, state: &mut State, levels: u64, now: u64) -> u64 {
        let count = self.pools.len();
        let is_first = state.ran_by.is_empty();
        state.ran_by.resize(count * self.core.workers.len(), 0);
        state.round_ran.resize(self.core.workers.len(), 0);
        let mut settlement = Settlement::new(count, levels, self.levels_running());
        for (worker, before) in self.core.workers.iter().zip(state.ran_by.chunks_mut(count)) {
            let seat = self.seats.of(worker);
            let serves = worker.levels_in(self);
            for (level, before) in (0u8..).zip(before) {
                let by_now = self.run_ticks_of(worker, level, now);
                let ran_now = nanos(by_now.saturating_sub(std::mem::replace(before, by_now)));
                if !is_first {
                    ask(&mut state.schedule, |it| {
                        settlement.ran(it, seat, serves, level, ran_now);
                    });
                    state.round_ran[worker.id] += ran_now;
                }
            }
        }
        ask(&mut state.schedule, |it| settlement.end(it))
    }

    /// The levels that run now.
    fn levels_running(&self) -> u64 {
        let each = self.workers().map(|worker| worker.levels_in(self));
        each.fold(0, |all, levels| all | levels)
    }

    fn are_levels_mixed(&self) -> bool {
        self.levels_running().count_ones() > 1
    }

    /// Rule 4 of the module's text. A worker between two pieces of work, the caller perhaps, shows no level:
    /// it may be the one that mixes them, and the next expiry will tell.
    pub(crate) fn arm_for_rounds(&self) {
        if !self.seats.has_rounds() {
            return;
        }
        let is_between =
            |worker: &Worker| worker.level() == NO_LEVEL && !self.core.idle.contains(worker.id);
        if self.are_levels_mixed() || self.workers().any(is_between) {
            self.arm_relief();
        }
    }

    /// The worker is about to serve `level`, or does. If it donates, and its primary level runs elsewhere: rule 3.
    #[inline]
    pub(crate) fn miss_primary(&self, worker: &Worker, level: u8) {
        if let Some(primary) = self.seats.of(worker).primary()
            && primary != level
        {
            self.miss(primary);
        }
    }

    #[cold]
    fn miss(&self, level: u8) {
        if !self.seats.has_rounds() || self.pools.ready.levels() >> level & 1 == 1 {
            return;
        }
        for worker in self.workers().filter(|w| w.level() == level) {
            if let Some(stack) = self.core.holder(worker) {
                self.seats.missed.fetch_or(1 << level, Ordering::SeqCst);
                stack.attention.request(SHARE);
            }
        }
    }
}

fn nanos(ticks: u64) -> u64 {
    u64::try_from(clock::to_duration(ticks).as_nanos()).unwrap_or(u64::MAX)
}
