//! The thread in the poller: events, timers, relief.
//!
//! A spare thread waits in the poller while the runtime has I/O or timers to wait for, or while relief
//! is armed. It holds no worker there. When it comes out with ready work in hand, it
//!
//! 1. claims an idle worker, if there is one, and runs the work itself: one system call from the event to
//!    the code that waited for it; or
//! 2. takes over the worker of the least urgent running stack, if what became ready is more urgent: the kernel has
//!    preempted a core for this thread already, so nothing is gained by passing the work on. If that stack is inside
//!    the scheduler, where no worker can be revoked, the next one loses its worker; or
//! 3. takes over the worker of a stack that runs long at the same level, for a turn (`rescue/turns.rs`); or
//! 4. leaves the work to the busy workers, which serve something at least as urgent, and goes back.
//!
//! In case 2 the worker may have been revoked on another processor, and the calling thread may have preempted a thread
//! that may be as urgent: it came out of the poller just before, or has a worker. Then a spare thread goes on with the
//! revoked worker, on another processor, and the calling one goes back.
//!
//! # Which threads wait there
//!
//! 1. Up to two threads wait in the poller. The kernel wakes the one that came last, so the other one is still there
//!    while the first runs what it found. A thread that leaves the poller empty calls a spare in.
//! 2. A thread that has computed since it was there goes back only if no other thread is there: the kernel owes it no
//!    time, and lets it wait for its turn when an event comes (3 ms and more in one wake-up of forty; `perf sched`). So
//!    threads take turns.
//! 3. While all workers are brief, the workers look for events themselves, and the thread there waits for notifications
//!    only (`protocol/poll_mode.rs`). It does not count for rule 2: the thread of a worker that runs dry goes in beside
//!    it, whatever it has computed.
//! 4. Where all processors are in use, a thread waits on the processor on which events come in
//!    ([`Core::go_where_events_come_in`]).
//!
//! What becomes of work that waits for long is in `relief.rs`.

use crate::{
    protocol::places::Visit,
    reactor::{
        driver::{Driver, WaitOutcome},
        readiness::wake_all,
    },
    sched::{
        core::{Core, JobList, RELIEF_PERIOD, period},
        job::Job,
        machine::claim::Want,
        poll_context,
        rescue::{revoke::Cause, silence::seems_preempted, turns::can_have_turn},
        stack::{Binding, Delivery, Me},
        worker::{NO_LEVEL, Worker},
    },
    sys::{self, chaos, clock},
};
use std::{
    ptr,
    sync::{Arc, atomic::Ordering},
    task::Waker,
    time::Duration,
};

/// How many threads wait in the poller at most.
const MOST_POLLERS: usize = 2;

impl Core {
    /// Whether a thread should be in the poller.
    fn needs_poller(&self) -> bool {
        self.relief_timer.is_on() || self.driver_if_made().is_some_and(|d| d.has_interest())
    }

    /// Whether a thread should be in the poller, and none is.
    pub(crate) fn is_poller_missing(&self) -> bool {
        !self.pollers.is_any() && self.needs_poller()
    }

    /// Sees to it that a thread waits for events in the poller, if one should: something is to be waited for now, or
    /// the thread that was there goes to run what it found.
    pub(crate) fn call_in_poller(&self) {
        if self.is_poller_missing() {
            self.want_poller();
        } else {
            self.recall_poller();
        }
    }

    /// A worker is no longer brief, or idle: if none looks for events now, the thread in the poller does.
    #[inline]
    pub(crate) fn recall_poller(&self) {
        if self.poll_mode.is_inline() {
            self.recall_poller_cold();
        }
    }

    #[cold]
    fn recall_poller_cold(&self) {
        if !self.does_a_worker_look()
            && self.poll_mode.recall()
            && let Some(driver) = self.driver_if_made()
        {
            driver.notify();
        }
    }

    /// Whether some worker will soon look for events by itself, since it is in a brief poll, or searches; and none
    /// runs what may be long, which an event may have to preempt. (A brief poll that takes long was
    /// preempted, as a rule: then another worker that looks is enough. So was a thread that searches for long. A
    /// lowered one had no processor for a second beside other processes, and events waited for it.)
    fn does_a_worker_look(&self) -> bool {
        let now = clock::now();
        let mut looks = false;
        for worker in &self.workers {
            if self.idle.contains(worker.id) {
                continue;
            }
            if worker.level() != NO_LEVEL && !worker.is_brief() {
                return false;
            }
            looks |= !seems_preempted(worker, now);
        }
        looks
    }

    /// One wait of a thread in the poller, for everything or for notifications only. Until it waits again or has a
    /// worker, it is a visitor to its processor: another thread of the poller may preempt it, and is not to stay there.
    /// `None`: one thread that waits for these is enough.
    fn wait_in_poller(
        &self,
        me: Me<'_>,
        driver: &Driver,
        ready: &mut Vec<Waker>,
    ) -> Option<(WaitOutcome, Visit<'_>)> {
        let visit = || self.places.visit(me.note_cpu());
        let is_inline = self.poll_mode.begin_inline();
        let waited = if !self.does_a_worker_look() {
            if is_inline {
                self.poll_mode.end_inline();
            }
            self.go_where_events_come_in(driver);
            driver.wait_until(true, ready, visit)
        } else if is_inline {
            #[cfg(test)]
            self.rests.fetch_add(1, Ordering::SeqCst);
            let outcome = driver.rest(self.rest_limit(), ready, visit);
            self.poll_mode.end_inline();
            outcome
        } else {
            return None;
        };
        // An error is one of the process's limits, and a wait without events.
        Some(waited.unwrap_or_else(|_| (WaitOutcome::default(), visit())))
    }

    /// For how long a thread leaves events to the workers before it looks whether they are still brief.
    fn rest_limit(&self) -> Duration {
        let limit = RELIEF_PERIOD;
        #[cfg(test)]
        let limit = limit.max(*self.rests_for.lock());
        limit
    }

    /// The wait of a spare thread in the poller. With a worker: there is work that waits for it. To look: the runtime
    /// closes, or nothing has to be waited for any more. `None`: no thread is needed there.
    pub(crate) fn poll_as_spare(&self, binding: &mut Binding) -> Option<Delivery<'_>> {
        if !self.needs_poller() {
            return None;
        }
        let driver = self.driver().ok()?;
        let most = if binding.me().has_computed_since_poll() && !self.poll_mode.is_inline() {
            1
        } else {
            MOST_POLLERS
        };
        // A notification wakes any thread that is there. Where the threads are provided, it may be meant for a certain
        // one.
        let most = if self.threads.are_provided() { 1 } else { most };
        if !self.pollers.enter(most) {
            return self.claim_left(None);
        }
        if self.idle.any()
            && self
                .jobs()
                .iter()
                .any(|job| job.has_pinned_for_spare(binding.me()))
        {
            // A sender that left the fork before this thread was counted here has notified no thread.
            return self.leave_poller(Some(Delivery::Look));
        }
        self.pins.leave(binding.me());
        binding.me().set_urgent(true);
        let mut ready = Vec::new();
        loop {
            if self.closing.load(Ordering::SeqCst) || !self.needs_poller() {
                return self.leave_poller(Some(Delivery::Look));
            }
            if self.is_shared() {
                // While this thread kept the container of a job, no other job could have it.
                binding.leave_job();
            }
            // An insertion that found a poller in here but no worker in the idle set, because we were
            // not waiting yet, is seen by this look.
            let Some((outcome, visit)) = self.wait_in_poller(binding.me(), driver, &mut ready)
            else {
                return self.leave_poller(None);
            };
            chaos::delay();
            let batch = self.wake_batch(binding, &mut ready);
            let me = binding.me();
            // After the wake-ups: a job that got one is alive, and on the list.
            let (jobs, moved) = match outcome.relief {
                true => self.relief_expired(),
                false => (self.jobs(), None),
            };
            chaos::delay();
            if let Some(worker) = self.worker_after_poll(me, &jobs, batch, moved, outcome.relief)
                && !self.goes_to_another(&visit, worker)
            {
                self.pollers.leave();
                // Workers that other threads left to a thread in the poller while they still counted this one.
                for job in jobs.iter() {
                    if let Some(other) = job.claim_unstarted() {
                        job.start(other);
                    }
                }
                debug_assert!(me.deque.seems_empty());
                me.note_left_poller();
                return Some(Delivery::Worker(worker));
            }
        }
    }

    /// The calling thread has come out of the poller with `worker`, and has preempted a thread that may be as urgent as
    /// what it brings, while the worker was revoked on another processor: a thread goes on there, and this one waits
    /// again. (Two timers were due 20 us apart. The thread with the second one preempted the thread with the first,
    /// which had nothing in a queue yet, and computed for 5 ms. The first timer's task waited, however urgent it was,
    /// and nobody waited for events.)
    fn goes_to_another(&self, visit: &Visit<'_>, worker: &Worker) -> bool {
        if !worker.is_to_return() {
            return false;
        }
        let job = worker.job().expect("a worker in hand serves a job");
        let Some(level) = job.most_urgent_offered().filter(|_| job.has_places()) else {
            return false;
        };
        self.is_in_the_way(visit, worker, level) && job.start_elsewhere(worker, level)
    }

    /// Wakes what became ready. A waker may be any code of the program, and that code then runs as code of a job.
    fn wake_batch(&self, binding: &mut Binding, ready: &mut Vec<Waker>) -> poll_context::Woken {
        if ready.is_empty() {
            return poll_context::Woken::default();
        }
        if binding.me().has_no_open_job() {
            let jobs = self.jobs();
            let open = jobs.iter().find(|job| !job.closing.load(Ordering::Relaxed));
            if let Some(open) = open {
                binding.take_up(open.clone());
            }
        }
        poll_context::in_batch(ptr::null(), || wake_all(ready))
    }

    /// The worker with which the calling thread comes out of the poller, if there is one for it; `mine`, if there is.
    fn worker_after_poll<'a>(
        &'a self,
        me: Me<'_>,
        jobs: &JobList,
        batch: poll_context::Woken,
        mut mine: Option<&'a Worker>,
        relief: bool,
    ) -> Option<&'a Worker> {
        for job in jobs.iter() {
            let entries = batch.of(job);
            let worker = job
                .take_worker_for_ready(me, entries > 0, relief)
                .or_else(|| job.claim_unstarted());
            let relieved = relief.then(|| job.relieve(worker.is_some())).flatten();
            let worker = match (worker, relieved) {
                (Some(worker), Some(relieved)) => {
                    job.start(relieved);
                    Some(worker)
                }
                (worker, relieved) => worker.or(relieved),
            };
            job.batch_inserted(entries, worker.is_some());
            let Some(worker) = worker else {
                continue;
            };
            if relief {
                // There may be more than this worker can take.
                job.arm_relief();
            }
            match mine {
                None => mine = Some(&self.workers[worker.id]),
                Some(_) => job.start(worker),
            }
        }
        mine
    }

    /// The calling thread goes out of the poller.
    fn leave_poller<'a>(&'a self, otherwise: Option<Delivery<'a>>) -> Option<Delivery<'a>> {
        self.pollers.leave();
        self.claim_left(otherwise)
    }

    /// A worker that another thread has left to the calling one while that was counted as one in the poller.
    fn claim_left<'a>(&'a self, otherwise: Option<Delivery<'a>>) -> Option<Delivery<'a>> {
        let jobs = self.jobs();
        let claimed = jobs.iter().find_map(|job| job.claim_unstarted());
        let claimed = claimed.map(|claimed| Delivery::Worker(&self.workers[claimed.id]));
        claimed.or(otherwise)
    }

    fn driver_to_look_at(&self) -> Option<&Arc<Driver>> {
        let waiting = self.pollers.count();
        if waiting > usize::from(self.poll_mode.is_inline()) {
            return None;
        }
        self.driver_if_made().filter(|d| d.has_interest())
    }
}

impl Job {
    /// A worker that [`Job::start`] left for a thread in the poller. What it is to look for may be in no pool.
    pub(crate) fn claim_unstarted(&self) -> Option<&Worker> {
        let take = |left: usize| left.checked_sub(1);
        let taken = self
            .unstarted
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
        taken.ok()?;
        // Where seats wait this may not be the one that was meant: it then starts another.
        let claimed = self.claim(Want::Offered).or_else(|| self.claim(Want::Any));
        if claimed.is_none() {
            // The thread that claimed it may have done so for something else, of another job even.
            self.ask_for_worker();
            self.arm_relief();
        }
        claimed
    }

    /// A look at the poller by a worker that has nothing to do, if no thread waits there for everything.
    pub(crate) fn look(&self) {
        if let Some(driver) = self.core.driver_to_look_at() {
            self.look_at_events(driver, true);
        }
    }

    /// As [`Job::look`], by a stack that waits.
    pub(in crate::sched) fn look_without_worker(&self) {
        if let Some(driver) = self.core.driver_to_look_at() {
            self.look_at_events(driver, false);
        }
    }

    /// `takes_one`: the calling thread has a worker, and takes one piece of what became ready itself.
    fn look_at_events(&self, driver: &Driver, takes_one: bool) {
        let core = &self.core;
        let mut ready = Vec::new();
        let relief = driver
            .wait(false, &mut ready)
            .is_ok_and(|outcome| outcome.relief);
        let batch = poll_context::in_batch(self, || wake_all(&mut ready));
        self.batch_inserted(batch.of(self), takes_one);
        if relief {
            let (jobs, moved) = core.relief_expired();
            if let Some((worker, job)) = moved.and_then(|worker| Some((worker, worker.job()?))) {
                job.start(worker);
            }
            for job in jobs.iter() {
                if let Some(relieved) = job.relieve(false) {
                    job.start(relieved);
                }
            }
        }
    }

    /// Between two polls: looks for events, if the workers are to look and none has looked lately.
    #[inline]
    pub(crate) fn look_if_due(&self, worker: &Worker) {
        let mode = &self.core.poll_mode;
        if mode.is_inline()
            && mode.is_due(worker.since(), self.look_period)
            && let Some(driver) = self.core.driver_to_look_at()
        {
            // Only beside a look: without one the timer, and with it relief, is the resting thread's to see.
            if mode.postpones(worker.since(), period() / 4 * 3) {
                driver.postpone(self.core.rest_limit());
            }
            self.look_at_events(driver, true);
        }
    }

    /// A worker for the work that is ready: an idle one, or a less urgent stack's. `by_event`: some of the work is what
    /// the calling thread came out of the poller with; otherwise the work has waited, and this is relief. `relief`:
    /// [`Job::relieve`] follows, and says when the timer is to expire next.
    fn take_worker_for_ready(&self, me: Me<'_>, by_event: bool, relief: bool) -> Option<&Worker> {
        if let Some(worker) = self.claim_for_pinned(me) {
            return Some(worker);
        }
        let level = self.most_urgent_offered()?;
        if let Some(worker) = self.claim_awake(Want::Offered) {
            return Some(worker);
        }
        let below = |w: &&Worker| {
            let serves = w.level();
            serves != NO_LEVEL && self.seats.of(w).is_drawn_by(level, serves) && self.is_settled(w)
        };
        // Of the least urgent workers, the one whose thread the calling thread has just preempted: that thread does not
        // run, so it need not even notice.
        let here = sys::thread::current_cpu();
        let is_here = |w: &&Worker| self.core.holder(w).is_some_and(|stack| stack.cpu() == here);
        let best = |w: &&Worker| (w.level(), is_here(w));
        let first = self.workers().filter(below).max_by_key(best);
        let revoked = first.and_then(|first| {
            let revoked = self.revoke_for_ready(first, level, by_event);
            revoked.or_else(|| {
                // The stack of the first is inside the scheduler. It sees the work there, and passes it on to a thread
                // that has to be woken; this one runs.
                let others = self.workers().filter(|w| w.id != first.id);
                let second = others.filter(below).max_by_key(best)?;
                self.revoke_for_ready(second, level, by_event)
            })
        });
        let revoked = revoked.or_else(|| self.revoke_for_turn(level, here, by_event));
        if revoked.is_none() && !relief {
            self.arm_for(level);
        }
        revoked
    }

    /// A worker for a turn of brief work at `level`, which an event made ready: of a long stack, preferably of the one
    /// whose thread the calling thread has just preempted.
    fn revoke_for_turn(&self, level: u8, here: i32, by_event: bool) -> Option<&Worker> {
        if !by_event {
            return None;
        }
        let is_long = |worker: &&Worker| {
            let holder = self.core.holder(worker);
            holder.is_some_and(|stack| can_have_turn(worker, stack, level))
                && self.wants_turn_for_event(level, worker)
                && self.is_settled(worker)
        };
        let is_here = |w: &&Worker| self.core.holder(w).is_some_and(|stack| stack.cpu() == here);
        let revoke = |worker| self.revoke(worker, None, Cause::Turn);
        let first = self.workers().filter(is_long).max_by_key(is_here);
        let revoked = first.and_then(|first| {
            let mut others = self.workers().filter(|w| w.id != first.id).filter(is_long);
            revoke(first).or_else(|| others.find_map(revoke))
        });
        match revoked {
            Some(worker) => self.at(worker, level).promotions.add(1),
            // The stacks are inside the scheduler, for a moment. They give the turn at their next scheduling point.
            None => self.ask_long(level),
        }
        revoked
    }

    /// Revokes the worker for work at `level`, which an event made ready or which has waited.
    fn revoke_for_ready(&self, victim: &Worker, level: u8, by_event: bool) -> Option<&Worker> {
        if !by_event {
            return self.revoke_counted(victim, None, Cause::Urgency);
        }
        let worker = self.revoke(victim, None, Cause::Urgency)?;
        self.at(worker, level).promotions.add(1);
        Some(worker)
    }
}

#[cfg(test)]
mod tests;
