//! Turns: brief work goes between long equals.
//!
//! Within a level the oldest goes first, and what runs goes on until it waits or ends. That is right for equals of one
//! kind. But a timer that is over, a request that arrived, or a stack whose wait is over needs a worker for a moment
//! only. Behind a parallel computation of its own level it would wait for seconds: a limit of 20 ms around a
//! computation of 2.6 s ended after 2.6 s.
//!
//! # Rules
//!
//! 1. *Brief* is what begins no long piece of work as a rule: a poll of a task, and a stack whose wait is over. It is
//!    on a list of its own in the pool (`order/lists.rs`). All else is *long*.
//! 2. In a *turn* a worker takes up to `MOST_IN_TURN` (`worker/brief_turn.rs`) pieces of brief work before all others
//!    of their level. Then it goes back to the stack that it came from. It owes its long stacks as much time as the
//!    turn took, at most a relief period. While it owes more than that period it has no other turn: so brief work that
//!    never ends gets half of the time. More urgent work ends a turn.
//! 3. A long stack loses its worker for a turn if a thread comes out of the poller with brief work of its level
//!    (`poll/poller.rs`), or if it leaves a request to check in unanswered (`rescue/relief.rs`). It goes on meanwhile,
//!    as by relief, and usually has its worker back before it notices. It *gives* its worker for a turn at a scheduling
//!    point where it has been asked to check in, unless it has run for less than a relief period since it began, or
//!    since its last wait: then it may be brief itself. At the end of a piece of work that relief has asked, the worker
//!    has a turn as well, if more than brief work waits, and it has none. (In a web server under load nine of ten polls
//!    were of turns, and nothing long waited.) Without an event no turn begins while a worker of the level runs
//!    something brief: it comes to what waits by itself. (A closure that spawned 10^6 tasks gave a turn each
//!    millisecond.)
//! 4. A poll that forks or computes is long after all: one more begun piece of work. So no turn begins while P stacks
//!    wait to go on in the middle of a poll, or go on without their workers for turns. P is the number of workers. A
//!    stack that goes on counts until its worker comes back. A worker that comes back finds the stack as it was, unless
//!    the stack has noticed (the model `a_worker_that_is_restored_is_held_by_one_stack` of `attention.rs`). A worker
//!    that goes to another job does not come back, and the stack counts no longer. So an endless loop does not count
//!    for good, but for chaos, which lets a restore fail without that: `tests/turns.rs` leaves endless loops out there.
//!    P polls that compute without end stop all turns of their job as well.
//! 5. A stack that gave a turn may find that all workers run what came in that turn. So stacks that wait to go on take
//!    turns with the running ones: a stack that has run for [`LONG`](super::relief::LONG) gives its worker to the first
//!    of them at a scheduling point.
//! 6. A closure or a fork that has not begun would be one more begun piece of work, and has no turn of this kind. But
//!    what runs may never end. So a stack that has run for `LONG` gives its worker to the oldest of these, if fewer
//!    than P stacks of its level wait to go on or are ahead as endless loops. By rule 5 it has a worker again in time.
//!    Code that checks in delays its equals no longer than code that does not.
//!
//! 7. A poll that has lasted for a relief period is long. It says so nowhere, since no poll should have to look at the
//!    clock: the thread that looks for a worker finds it by its length, and relief looks besides whether its thread has
//!    run. Once such a poll is pending, its task *computes*, until a poll of it has been short. Polls of tasks that
//!    compute are on a list of their own, and have turns in the place of closures and forks only, after what is brief.
//!    Between polls that compute the oldest goes first. (A timer waited for the end of each poll that computed, and
//!    then for those before it: beside polls of 50 ms it was late by 45 ms in the median. As brief work, a task that
//!    computes took the turn that the timer needed.)
//!
//! Under another order than aging the policy says what goes first, and there are no turns.
//!
//! Here is when a turn may begin. `serve/turns.rs` has how stacks give turns, and how workers take them.

use super::silence::seems_preempted;
use crate::{
    sched::{
        core::{RELIEF_PERIOD, period},
        job::Job,
        stack::Stack,
        worker::{Worker, runs::Runs},
    },
    sys::{clock, primitives::atomic::Ordering},
};
use std::time::Duration;

impl Job {
    /// Rule 3: whether the worker may be taken for a turn of brief work at `level`, some of which an event made ready.
    pub(in crate::sched) fn wants_turn_for_event(&self, level: u8, worker: &Worker) -> bool {
        self.has_for_turn(level, worker.runs()) && self.may_begin_polls()
    }

    /// As [`Job::wants_turn_for_event`], without an event.
    pub(in crate::sched) fn wants_turn(&self, level: u8, worker: &Worker) -> bool {
        self.has_for_turn(level, worker.runs()) && self.may_begin_turn(level)
    }

    /// Rules 1 and 7: whether something waits that may have a turn in the place of this.
    pub(in crate::sched) fn has_for_turn(&self, level: u8, runs: Runs) -> bool {
        let pool = self.pools.at(level);
        pool.has_brief() || runs == Runs::Long && pool.has_computing()
    }

    /// Rules 3 and 4.
    pub(in crate::sched) fn may_begin_turn(&self, level: u8) -> bool {
        let now = clock::now();
        let is_brief = |worker: &Worker| {
            worker.level() == level && worker.is_brief() && !seems_preempted(worker, now)
        };
        !self.workers().any(is_brief) && self.may_begin_polls()
    }

    /// Rule 3, at the end of a piece of work that relief has asked to check in. (A turn that was under way began anew.
    /// Relief asks each millisecond while something waits, so beside a task that yielded every 300 us the turn never
    /// ended, and a stack that waited to go on waited for up to 43 s.)
    pub(in crate::sched) fn may_begin_turn_at_end(&self, worker: &Worker, level: u8) -> bool {
        worker.brief_turn.level().is_none()
            && self.pools.at(level).has_others()
            && has_rested(worker)
    }

    /// Rule 4.
    fn may_begin_polls(&self) -> bool {
        let polls = self.abandoned_polls.load(Ordering::Relaxed);
        let workers = self.core.workers.len();
        polls < workers && polls + self.lent_for_turns() < workers
    }

    /// Asks the stacks that run something long at `level` to check in.
    pub(in crate::sched) fn ask_long(&self, level: u8) {
        for worker in self.workers() {
            if let Some(stack) = self.core.holder(worker)
                && stack.is_of(self)
                && can_have_turn(worker, stack, level)
            {
                stack.ask_to_check_in();
            }
        }
    }
}

/// Rules 2 and 3: whether the worker, which `stack` holds, runs something long at `level`, and may have a turn.
pub(in crate::sched) fn can_have_turn(worker: &Worker, stack: &Stack, level: u8) -> bool {
    worker.level() == level && !runs_briefly(worker, stack) && has_rested(worker)
}

/// Whether the worker, which `stack` holds, runs a poll that has come to no scheduling point, and has not taken long.
pub(in crate::sched) fn runs_briefly(worker: &Worker, stack: &Stack) -> bool {
    worker.is_brief() && !is_over(RELIEF_PERIOD, stack.runs_since.load(Ordering::Relaxed))
}

/// Rule 2: whether the worker owes no more time than it may.
pub(in crate::sched) fn has_rested(worker: &Worker) -> bool {
    worker.brief_turn.owes() <= period()
}

/// Whether this time has passed since then, in ticks.
pub(in crate::sched) fn is_over(time: Duration, since: u64) -> bool {
    clock::now().saturating_sub(since) >= clock::ticks(time.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::{super::relief::LONG, period};
    use crate::{
        Runtime,
        sched::{stack::Stack, worker::runs::Runs},
        spawn, yield_now,
    };
    use std::{
        hint,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering::SeqCst},
        },
        time::{Duration, Instant},
    };

    /// A closure waits meanwhile, as a stack would that is to go on.
    #[test]
    fn a_turn_that_is_under_way_does_not_begin_anew_and_the_next_one_waits_until_its_time_is_given_back()
     {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job().arc();
        let (waits, ran) = runtime.run(|| {
            let waits = runtime.spawn_fn(|| ());
            let ran = Stack::with_current(|me| {
                let me = me.unwrap();
                job.come_in(me);
                job.flush_ring(&me);
                job.go_on(me);
                let worker = me.worker();
                let may_begin = || job.may_begin_turn_at_end(worker, 0);
                // On a loaded machine relief may have served it by now.
                let before = may_begin() || waits.is_finished();
                worker.begin_turn(0, Runs::Long);
                let during = may_begin();
                let length = Duration::from_millis(4);
                let end = Instant::now() + length;
                while Instant::now() < end {}
                // It ends, and owes a relief period.
                worker.brief_turn.took(false, 4 * period());
                (before, during, may_begin())
            });
            (waits, ran)
        });
        assert_eq!(ran, (true, false, false));
        waits.get().unwrap();
    }

    /// Long before it is taken for an endless loop.
    #[test]
    fn what_a_poll_that_computes_has_made_ready_has_a_turn_at_the_next_expiries() {
        const ROUNDS: u32 = 20;
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let run_time = || Stack::with_current(|me| me.unwrap().run_time());
        let round = || async move {
            let (ran, began) = (Arc::new(AtomicBool::new(false)), run_time());
            let runs = ran.clone();
            spawn(async move { runs.store(true, SeqCst) }).detach();
            while !ran.load(SeqCst) {
                hint::spin_loop();
            }
            run_time() - began
        };
        let rounds = (0..ROUNDS).map(|_| runtime.spawn(round()).get().unwrap());
        let taken = Duration::from_nanos(rounds.sum());
        assert!(taken < ROUNDS * LONG / 2, "{taken:?}");
    }

    /// Relief asks the worker to check in, again and again: the other tasks wait.
    #[test]
    fn brief_work_that_waits_alone_has_no_turns() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let end = Instant::now() + Duration::from_millis(50);
        let has_turn = || Stack::with_current(|me| me.unwrap().worker().brief_turn.level());
        let yields = move || async move {
            let mut turns = 0;
            while Instant::now() < end {
                yield_now().await;
                turns += usize::from(has_turn().is_some());
            }
            turns
        };
        let tasks: Vec<_> = (0..8).map(|_| runtime.spawn(yields())).collect();
        let turns = tasks.into_iter().map(|task| task.get().unwrap());
        assert_eq!(turns.sum::<usize>(), 0);
    }
}
