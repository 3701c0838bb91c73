//! The loop of a thread that holds a worker, and the scheduling point.
//!
//! [`Job::serve`] is the loop: find work, run it, until the worker goes elsewhere. User code runs
//! between [`Job::go`] and `enter` of the attention; everything else is "inside the scheduler".
//!
//! [`check`] is the scheduling point: one load and one branch on the hot path of every fork, sync,
//! spawn and get. Its cold side answers what others asked for, in this order:
//!
//! 1. the worker was taken: regain one, or wait for it (`wait.rs`);
//! 2. a worker is hungry: publish forks;
//! 3. more urgent work is ready: take it, and abandon this stack for it;
//! 4. equals have waited: give them a turn (`turns.rs`);
//! 5. the worker is to serve another job: abandon this stack for that (`cores/`).

use crate::protocol::attention::{CHECK_IN, Entered, FULL, PREEMPT, SHARE};
use crate::sys::primitives::atomic::{Ordering, fence};
use crate::{
    account::overruns::Name,
    sched::{
        StolenFork, Work,
        forks::held_back::Asked,
        job::Job,
        poll_context,
        rescue::{revoke::Restored, silence::seems_preempted},
        stack::{Me, Stack},
        worker::{Worker, runs::Runs},
    },
    sys::{chaos, clock},
    tasks::TaskRef,
};

mod forks;

pub(crate) use forks::{asked_for_forks, run_own_oldest, run_pushed_above, run_stolen};

/// One dispatch in so many is timed on its own.
const SAMPLE: u32 = 16;

/// The scheduling point of the code that runs on `me`.
#[inline(always)]
pub(crate) fn check(me: Me<'_>) {
    if me.attention.is_wanted() {
        check_cold(me);
    }
}

/// The scheduling point of a stack for which there may be a request.
#[cold]
#[inline(never)]
pub(crate) fn check_cold(me: Me<'_>) {
    let has_forks = !me.deque.seems_empty();
    if !has_forks && me.attention.is_for_forks() && !chaos::one_in(2) {
        return;
    }
    let job = me.runtime();
    if !job.core.process.is_this() {
        // No other thread is here that would go on with the worker, or give it back.
        return;
    }
    // First of all, so that a searcher has its fork while the rest is done.
    let asked = if has_forks {
        job.watch_hidden_beside_others();
        asked_for_forks(me)
    } else {
        Asked::Not
    };
    if asked == Asked::Later && me.attention.is_asked_at_most(SHARE) {
        return;
    }
    let published = asked == Asked::Now && me.deque().publish(false);
    let requests = job.come_in(me);
    let is_asked = requests & SHARE != 0 && asked != Asked::Later;
    if has_forks && (asked == Asked::Now || is_asked || chaos::one_in(2)) {
        job.share(me, published);
    }
    if requests & PREEMPT != 0 {
        me.lowers_late_raise();
    }
    job.give_way(me);
    job.let_in(me);
    if requests & CHECK_IN != 0 {
        job.let_equals_first(me);
    }
    job.give_worker_to_other(me);
    if requests & FULL != 0 {
        job.wait_for_room(me);
    }
    job.go_on(me);
}

/// `task` is less urgent than it was. If its code runs on the calling thread, the stack gives way to what is
/// more urgent now: at once, or if it is a poll, at the next scheduling point.
pub(crate) fn lowered(task: &TaskRef) {
    Stack::with_current(|me| {
        let Some(me) = me else {
            return;
        };
        let level = task.level();
        if !me.runs_as(task) || me.level() >= level {
            return;
        }
        let job = me.runtime();
        job.come_in(me);
        // The tasks that the stack made ready at its old level.
        job.flush_ring(&me);
        me.set_level(level);
        fence(Ordering::SeqCst);
        // The task may have been raised since, and the stack before it was lowered.
        let raised = task.level();
        me.raise_level(raised, raised);
        // To leave a poll here takes another thread, for code that usually has nothing left to do. (It did: a chain
        // of 100 tasks, each with a lock that the one before wants, took 48 us and a new thread a hop, and 320 us
        // beside load. Now 1 us, and 2.) A closure may go on for long.
        if !poll_context::polls_task() {
            job.give_way(me);
        }
        job.go_on(me);
    });
}

impl Job {
    /// Serves with `worker` until it goes elsewhere. The calling thread has nothing on its stack. Returns a worker that
    /// the thread is to serve another job with.
    pub(crate) fn serve(&self, me: Me<'_>, worker: &Worker) -> Option<&Worker> {
        me.hold(worker);
        // Since the worker was claimed this thread may have been woken: what it begins has waited for that as well.
        worker.counters.scheduling.add(worker.lap());
        let mut handed = worker.take_handed();
        let mut started = handed.is_none();
        loop {
            // What ran may have waited, and come back with another worker.
            let worker = me.worker();
            self.look_if_due(worker);
            if handed.is_none() {
                if worker.is_to_leave()
                    && let Some(serves) = self.leave_for_other(me, worker)
                {
                    return serves.then(|| &*self.core.workers[worker.id]);
                }
                match self.restore(me, worker) {
                    Restored::Done => {
                        if started {
                            self.wake_rest(&me);
                            self.watch_the_rest();
                        }
                        return None;
                    }
                    Restored::Not => {}
                    Restored::Found(work) => handed = Some(work),
                }
            }
            if handed.is_none()
                && !started
                && let Some(task) = self.next_in_own_ring(me, worker)
            {
                if self.run_task(me, worker, task) {
                    continue;
                }
                return None;
            }
            let find = || self.find(me, worker, self.core.inbox_of(me, worker));
            let Some(work) = handed.take().or_else(find) else {
                return self.claim_for_other(me, worker);
            };
            if started {
                self.wake_rest(&me);
                self.watch_the_rest();
                started = false;
            }
            let work = self.pass_on(me, worker, work)?;
            let holding = match work {
                Work::Resume(stack) => {
                    self.flush_ring(&me);
                    self.at(worker, stack.level()).hand_offs.add(1);
                    self.hand_back(me, worker, &stack);
                    false
                }
                Work::Task(task) => self.run_task(me, worker, task),
                Work::Fork(forked) => self.run_fork(me, worker, forked),
            };
            if !holding {
                return None;
            }
        }
    }

    /// The stack goes to user code, to begin something at `level`.
    #[inline]
    pub(crate) fn go(&self, me: Me<'_>, level: u8) {
        let room = self.expect_long(me, me.worker(), level);
        self.begin_at(me, level);
        self.go_at(me, level, clock::now(), room);
    }

    /// The stack goes back to user code, at its level. The level is not written: a thread that raises the stack at this
    /// moment would be overruled for good.
    #[inline]
    pub(crate) fn go_on(&self, me: Me<'_>) {
        let level = me.level();
        let room = self.expect_long(me, me.worker(), level);
        self.go_at(me, level, clock::now(), room);
    }

    #[inline]
    fn begin_at(&self, me: Me<'_>, level: u8) {
        if self.pools.are_several() && me.level() != level {
            // The ring is of one level, the stack's.
            self.flush_ring(&me);
        }
        me.set_level(level);
    }

    /// What `me` goes to run may be long, and fork. Returns how much room for forks `me` has. (A poll that an event
    /// brought is long once it forks. While it had the short slices of the poller, the next thread of the poller did
    /// not preempt it; and where it had preempted a more urgent poll, it ran in that poll's place.)
    #[inline]
    fn expect_long(&self, me: Me<'_>, worker: &Worker, level: u8) -> usize {
        let runs = Runs::at_scheduling_point(poll_context::lasts());
        if me.is_urgent() {
            me.set_urgent(false);
            self.take_place(worker);
        }
        if worker.set_runs(runs) {
            self.core.recall_poller();
            self.look_soon_at_overrunning();
        }
        if me.deque.seems_empty() {
            return self.room_to_begin(me, worker, level);
        }
        let news = worker.set_hides_forks(true);
        if self.is_anybody_free(level) {
            if news {
                // A worker that went idle just before saw neither the fork nor that there may be one.
                self.share(me, false);
            }
            me.attention.request(SHARE);
        } else if self.is_anybody_below(level, None) {
            if !me.deque.seems_public() {
                me.attention.request(SHARE);
            } else if self.press_below(me, level) {
                return 0;
            }
        }
        me.deque.room()
    }

    /// How much room for forks `me` has, whose deque is empty: none if a worker is hungry, or relief would not see
    /// forks that `me` keeps (`rescue/hidden.rs`). Then the next fork will look.
    // Each poll comes here, and the call saved five registers for what is cold.
    #[inline(always)]
    fn room_to_begin(&self, me: Me<'_>, worker: &Worker, level: u8) -> usize {
        let hungry = self.may_anybody_be_hungry(level)
            || worker.set_hides_forks(true) && self.may_anybody_be_hungry(level);
        if hungry {
            worker.set_hides_forks(false);
            return 0;
        }
        if self.is_hidden_look_missing() {
            return 0;
        }
        me.deque.room()
    }

    /// The way out to user code, with a reading of the clock in hand, and with so much room for forks. Prompt: if more
    /// urgent work is ready by now, the request for attention is set, and the first scheduling point acts on it.
    #[inline(always)]
    pub(in crate::sched) fn go_at(&self, me: Me<'_>, level: u8, now: u64, room: usize) {
        let worker = me.worker();
        if self.notes_places() {
            self.core.places.goes_to(&worker.place, me.note_cpu());
        }
        chaos::delay();
        let mut room = room;
        if worker.set_level(level) {
            self.shows(worker, level);
            if self.may_anybody_be_hungry(level) {
                // A worker that went idle since the look that gave the room has seen no level here, and asked nobody.
                room = 0;
            }
        }
        self.watch_reserve();
        worker.arrived();
        if let Some(above) = self.drawn_by(worker, level) {
            worker.want(above, now);
            me.attention.request(PREEMPT);
            // The thread that inserted that work may have seen this worker between two pieces of work.
            self.arm_relief();
        } else {
            self.seats.no_longer_wanted(worker, level, now);
        }
        worker.counters.scheduling.add(worker.lap_at(now));
        me.attention().leave(worker.id, room);
    }

    /// The stack comes in from user code, in the middle of its computation, and holds a worker when
    /// this returns. Returns the requests that were pending.
    pub(crate) fn come_in(&self, me: Me<'_>) -> u32 {
        match me.attention().enter() {
            Entered::Holding(requests) => {
                self.no_longer_overruns(me, || me.what());
                self.account_running(me, requests);
                requests
            }
            Entered::Revoked => {
                me.demotion.found_revoked();
                self.no_longer_overruns(me, || me.what());
                self.regain(me);
                0
            }
        }
    }

    /// As `come_in`, at the end of what a thread ran on an empty stack: without a worker there is
    /// nothing to wait for. Returns whether it still holds one.
    #[inline(always)]
    pub(crate) fn finish(&self, me: Me<'_>, what: Name) -> bool {
        match me.attention().enter() {
            Entered::Holding(requests) => {
                self.no_longer_overruns(me, || what);
                self.account_running(me, requests);
                true
            }
            Entered::Revoked => {
                self.finish_overrun(me, what);
                false
            }
        }
    }

    #[cold]
    fn finish_overrun(&self, me: Me<'_>, what: Name) {
        me.demotion.found_revoked();
        self.no_longer_overruns(me, || what);
        self.flush_ring(&me);
    }

    #[inline(always)]
    fn account_running(&self, me: Me<'_>, requests: u32) {
        let worker = me.worker();
        let now = clock::now();
        // Also of a stack that was raised meanwhile: a snapshot may have shown the span at this level.
        let level = worker.announced_level();
        self.at(worker, level).running.add(worker.lap_at(now));
        if requests & CHECK_IN != 0 && self.may_begin_turn_at_end(worker, me.level()) {
            // If the piece of work ends here, and no stack gives a turn.
            worker.begin_turn(me.level(), Runs::Poll);
        }
        if requests & PREEMPT != 0 {
            let behind = self.seats.no_longer_wanted(worker, me.level(), now);
            self.at(worker, me.level()).behind.add(behind);
        }
    }

    /// Takes more urgent work if there is some, and abandons this stack for it.
    pub(crate) fn give_way(&self, me: Me<'_>) {
        while let Some(work) = self.next_above(me, me.level()) {
            if !self.abandon(me, work) {
                return;
            }
        }
    }

    /// Polls a task, or runs a closure on this thread's stack. Returns whether it still holds a worker.
    fn run_task(&self, me: Me<'_>, worker: &Worker, task: TaskRef) -> bool {
        let level = task.level();
        let now = worker.dispatch_time();
        me.runs_from(now);
        me.began.store(now, Ordering::Relaxed);
        let room = if task.is_closure() {
            self.take_place(worker);
            self.expect_long(me, worker, level)
        } else {
            worker.set_runs(Runs::Poll);
            poll_context::begin_poll(now);
            // Most polls fork nothing, and a request is two locked instructions.
            self.room_to_begin(me, worker, level)
        };
        self.begin_at(me, level);
        self.go_at(me, level, now, room);
        let what = task.name();
        me.set_waits_as(task.base_level());
        me.set_task(Some(task.as_raw()));
        let claimed = |task: &_| self.begins_task(me, worker, task, level, now);
        let ran = task.run_then(me.runner(), claimed, |task| me.notes_length(task));
        me.set_task(None);
        let deferred = poll_context::end_poll();
        run_pushed_above(me, 0);
        let holding = self.finish(me, what);
        if deferred && holding && self.pools.rings_are_light {
            self.make_up(me);
        }
        self.tasks.count_cancelled(ran);
        holding
    }

    /// `worker` has claimed the task at this level, and runs it on `me` from now on. An entry does not come here if
    /// another one has run its task before, which was raised, or if that was cancelled: it is no poll, and waited for
    /// nothing.
    #[inline]
    pub(in crate::sched) fn begins_task(
        &self,
        me: Me<'_>,
        worker: &Worker,
        task: &TaskRef,
        level: u8,
        now: u64,
    ) {
        let counters = self.at(worker, level);
        counters
            .latency
            .record(now.saturating_sub(task.ready_since()));
        match task.is_closure() {
            true => counters.closures.add(1),
            false => counters.tasks.add(1),
        }
        // If it was raised since this level of it was read, the stack was not told.
        if task.level() < level {
            self.raise_stack(&me, task);
        }
    }

    /// Runs a stolen fork, and whatever it spawned into the scopes that it belongs to.
    fn run_fork(&self, me: Me<'_>, worker: &Worker, stolen: StolenFork) -> bool {
        self.at(worker, stolen.origin.level).jobs.add(1);
        me.begins_without_task(stolen.origin.level);
        self.take_place(worker);
        me.runs_from(clock::now());
        self.go(me, stolen.origin.level);
        let what = run_stolen(me, stolen);
        self.finish(me, what)
    }
}

impl Worker {
    /// The time of a dispatch. The clock was read when the last poll ended, a few dozen nanoseconds ago, and
    /// a reading costs as much as the rest of a dispatch; so only one dispatch in [`SAMPLE`] reads it again,
    /// and stands for the others in the account of scheduling. The rest counts as running. A dispatch in which the
    /// thread seems to have had no processor is not as the others, and stands for itself.
    #[inline]
    fn dispatch_time(&self) -> u64 {
        let since = self.since();
        if !self.turn().is_multiple_of(SAMPLE) {
            return since;
        }
        let now = clock::now();
        if !seems_preempted(self, now) {
            let others = u64::from(SAMPLE - 1) * now.saturating_sub(since);
            self.counters.scheduling.add(others);
        }
        now
    }
}

/// Calls `f` with the task that the calling thread runs, if it runs one.
#[inline]
pub(crate) fn with_current_task<R>(f: impl FnOnce(Option<&TaskRef>) -> R) -> R {
    Stack::with_current(|me| match me {
        Some(me) => me.with_task(f),
        None => f(None),
    })
}

/// The number of the worker that `me` holds in `job`, as a hint.
pub(crate) fn worker_of(me: Me<'_>, job: &Job) -> usize {
    if me.is_of(job) { me.worker().id } else { 0 }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use crate::{Runtime, sched::machine::claim::Want};
    use std::{thread, time::Duration};

    #[test]
    fn a_dispatch_during_which_the_thread_has_no_processor_stands_for_itself_only() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let worker = runtime.job().claim(Want::Any).unwrap();
        let scheduling = || worker.counters.scheduling.get();
        worker.lap();
        thread::sleep(Duration::from_millis(1));
        let before = scheduling();
        let since = worker.since();
        assert!(worker.dispatch_time() > since, "it is sampled");
        assert_eq!(scheduling(), before);
        runtime.job().release(worker);
    }
}
