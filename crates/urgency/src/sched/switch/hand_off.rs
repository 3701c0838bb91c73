//! Hand-off: a worker goes to another thread. One piece of code for every reason.
//!
//! A worker changes threads when a stack waits, is abandoned for more urgent work, resumes, or when an idle worker is
//! started. Always the same three steps: the work (if any) is left in the worker, the worker goes into the receiver's
//! mailbox, the receiver is woken. The giver forgets the worker *before* it wakes the receiver.
//!
//! The receiver is the thread of a stack that was claimed, or a spare thread (`threads.rs`). If no thread can be had
//! (the limit, or the system refuses for longer than a moment), a stack that is to be abandoned simply goes on, and for
//! one that must wait `without_thread.rs` says what becomes of the worker. `Stats::threads_refused` counts it.

use super::threads::First;
use crate::{
    protocol::demotion::USUAL,
    sched::{
        Work,
        core::Core,
        job::Job,
        machine::claim::Want,
        poll_context::{self, Departure},
        stack::{Delivery, Me, Stack},
        worker::Worker,
    },
    sys::{self, chaos},
};
use std::sync::{Arc, atomic::Ordering};

impl Job {
    /// Hands `worker` to the thread of a stack that the caller claimed.
    pub(crate) fn deliver(&self, worker: &Worker, stack: &Stack) {
        stack.deliver(Delivery::Worker(worker));
    }

    /// As [`Job::deliver`] to a spare thread, from `me`, whose thread is about to sleep: its processor is free for the
    /// spare thread. To call a thread here takes three system calls, and the kernel wakes it here anyway if it slept
    /// here and no other processor is free. Not if `me` came from the poller: then its thread has preempted another
    /// thread on the processor, which goes on. (Nor does a stack that resumes come here, as a rule: its caches are
    /// where it was, and requests beside compute had a p50 a quarter higher.)
    ///
    /// Where jobs take turns, workers change threads so often that the kernel finds the other processor idle for a few
    /// microseconds, and wakes the thread there; and it does not look for threads to pull when its idle spans are
    /// short. So two workers' threads came to be on one processor, and stayed there. There each thread is called here,
    /// unless this processor is another worker's: then the kernel has to find one that is free.
    pub(crate) fn hand_over(&self, me: Me<'_>, worker: &Worker, stack: &Stack) {
        let stays = || stack.cpu() == sys::thread::current_cpu();
        let is_placed = if self.core.is_shared() {
            self.core.is_crowded(worker)
        } else {
            me.is_urgent() || self.core.idle.is_each_processor_in_use() && stays()
        };
        if is_placed {
            self.deliver(worker, stack);
        } else {
            stack.deliver_here(worker);
        }
    }

    /// As [`Job::deliver`] to a stack that goes on, from `me`, whose thread is about to sleep. The stack last ran on
    /// any processor. If that is another worker's, it would wait there for a time slice of what runs, beside this
    /// processor, which has nothing to do. Otherwise it stays where its caches are (`place.rs`).
    pub(crate) fn hand_back(&self, me: Me<'_>, worker: &Worker, stack: &Stack) {
        if self.core.is_shared() {
            self.hand_over(me, worker, stack);
        } else if self.sleeps_in_the_way(worker, stack) {
            stack.deliver_here(worker);
        } else {
            self.deliver(worker, stack);
        }
    }

    /// As [`Job::deliver`] to a stack that goes on, from a thread that need not sleep. The kernel wakes the stack's
    /// thread where it slept, or here. Behind another worker's it would wait for a time slice, while a processor has
    /// nothing to do.
    pub(crate) fn deliver_clear(&self, worker: &Worker, stack: &Stack) {
        let slept_here = || stack.cpu() == sys::thread::current_cpu();
        if self.has_places() && slept_here() && self.core.is_crowded(worker) {
            stack.deliver_beside(worker);
        } else {
            self.deliver(worker, stack);
        }
    }

    /// Hands `worker`, with `work` for it, to a spare thread. `sleeps`: the calling thread is about to sleep. Gives the
    /// work back if there is no thread and none can be made.
    pub(crate) fn hand_to_spare(
        &self,
        me: Me<'_>,
        worker: &Worker,
        work: Work,
        sleeps: bool,
    ) -> Result<(), Work> {
        match self.secure_spare(me, work.level()) {
            Some(spare) => {
                worker.hand(Some(work));
                if sleeps {
                    self.hand_over(me, worker, &spare);
                } else {
                    self.deliver(worker, &spare);
                }
                Ok(())
            }
            None if self.leaves_to_poller(me) => {
                self.put_back(worker, work);
                self.start(worker);
                Ok(())
            }
            None => Err(work),
        }
    }

    /// Hands a worker, with the work that the calling thread has found for it, to a thread of the work's class, if this
    /// thread is of another and cannot change that. Returns the work if it is to be run here.
    #[inline]
    pub(crate) fn pass_on(&self, me: Me<'_>, worker: &Worker, work: Work) -> Option<Work> {
        if !self.core.demoted_stacks.any() {
            return Some(work);
        }
        self.pass_on_cold(me, worker, work)
    }

    #[cold]
    fn pass_on_cold(&self, me: Me<'_>, worker: &Worker, work: Work) -> Option<Work> {
        let (level, own) = (work.level(), me.demotion.class());
        let class = self.class_of(level);
        let is_long = match &work {
            Work::Task(task) => task.is_closure(),
            Work::Fork(forked) => !forked.pinned,
            Work::Resume(_) => return Some(work),
        };
        let fits = |spare: &Stack| {
            let spare = spare.demotion.class();
            spare <= class && (own > class || spare > own)
        };
        let passes =
            self.is_too_low(&me, level) || is_long && own < class && !sys::thread::can_raise();
        if !passes || me.number().is_some() {
            return Some(work);
        }
        let Some(spare) = self.core.pop_spare_that(fits, |_| true, |_| true) else {
            return Some(work);
        };
        self.flush_ring(&me);
        self.at(worker, level).hand_offs.add(1);
        worker.hand(Some(work));
        self.deliver(worker, &spare);
        None
    }

    /// Whether the calling thread is lowered, so that a thread that it makes would be lowered, too, while a thread that
    /// is not lowered waits in the poller.
    pub(crate) fn leaves_to_poller(&self, me: Me<'_>) -> bool {
        me.is_too_low_for(USUAL) && self.core.pollers.is_any()
    }

    /// As [`Job::start`], from a thread that is about to sleep: its processor is free for the one that it wakes.
    pub(crate) fn start_here(&self, me: Me<'_>, worker: &Worker) {
        match self.pop_spare_here(self.most_urgent_queued().unwrap_or(0)) {
            Some(spare) => self.hand_over(me, worker, &spare),
            None => self.start(worker),
        }
    }

    /// Starts a worker that the caller claimed and has no work for: it will look by itself.
    pub(crate) fn start(&self, worker: &Worker) {
        if !self.core.process.is_this() {
            // A task was cancelled in a child of `fork`: no thread is there, and the list of threads may be locked for
            // good.
            return;
        }
        let Some(worker) = self.start_with_existing(worker) else {
            return;
        };
        match self.core.spawn_thread(First::Receive) {
            Some(made) => self.deliver(worker, &made),
            None => {
                chaos::delay();
                self.release(worker);
                if !self.core.call_spare() {
                    self.is_without_thread();
                }
            }
        }
    }

    /// As [`Job::start`], without making a thread. The worker, or another one, if there is none to be had.
    pub(super) fn start_with_existing<'a>(&'a self, mut worker: &'a Worker) -> Option<&'a Worker> {
        loop {
            if let Some(spare) = self.pop_spare_for(worker) {
                match self.core.is_for_another_processor() {
                    true => spare.deliver_beside(worker),
                    false => self.deliver(worker, &spare),
                }
                return None;
            }
            if !self.core.pollers.is_any() {
                return Some(worker);
            }
            chaos::delay();
            // A thread in the poller is a spare thread: it claims the worker when it comes out.
            self.unstarted.fetch_add(1, Ordering::SeqCst);
            self.release(worker);
            if let Some(driver) = self.core.driver_if_made() {
                driver.notify();
            }
            // If the thread came out before the release, it did not see the worker.
            if self.core.pollers.is_any() {
                return None;
            }
            worker = self.claim_unstarted()?;
        }
    }

    /// As [`Job::start`], of a worker that was revoked on another processor than this one, for work of `level`.
    /// `false`: no spare thread waits.
    pub(crate) fn start_elsewhere(&self, worker: &Worker, level: u8) -> bool {
        let Some(spare) = self.pop_spare_for(worker) else {
            return false;
        };
        self.at(worker, level).hand_offs.add(1);
        // The kernel often wakes it here, also if it slept elsewhere.
        spare.deliver_beside(worker);
        true
    }

    /// Has a provided thread look for pinned work: wakes it if it waits for anything.
    pub(crate) fn nudge(&self, number: usize) {
        let stack = {
            let stacks = self.core.threads.stacks();
            stacks.iter().find(|s| s.number() == Some(number)).cloned()
        };
        let Some(stack) = stack else {
            return;
        };
        if self.core.unlist(&stack) {
            stack.deliver(match self.claim(Want::Any) {
                Some(worker) => Delivery::Worker(worker),
                None => Delivery::Look,
            });
        } else if stack.suspension.wake() {
            stack.resume();
        } else if self.core.pollers.is_any()
            && let Some(driver) = self.core.driver_if_made()
        {
            driver.notify();
        }
    }

    /// A spare thread for an idle worker that the calling thread starts: where the worker was left, and not on the
    /// processor of a caller that goes on.
    fn pop_spare_for(&self, worker: &Worker) -> Option<Arc<Stack>> {
        let (left, here) = (worker.cpu(), sys::thread::current_cpu());
        let (class, core) = (
            self.class_of(self.most_urgent_queued().unwrap_or(0)),
            &self.core,
        );
        match poll_context::departure() {
            Departure::None | Departure::Stays => {
                core.pop_spare_seen(class, |cpu| cpu == left && cpu != here, |cpu| cpu != here)
            }
            Departure::Short => core.pop_spare_seen(class, |cpu| cpu == here, |_| true),
            Departure::Long => core.pop_spare_seen(class, |cpu| cpu == left, |_| true),
        }
    }

    /// A spare thread to which the caller, which is about to sleep, will deliver its worker with work of `level`. If
    /// there is none and the caller's thread is not lowered, a thread is made.
    pub(crate) fn secure_spare(&self, me: Me<'_>, level: u8) -> Option<Arc<Stack>> {
        let found = self.pop_spare_here(level);
        if found.is_some() || self.leaves_to_poller(me) {
            return found;
        }
        self.core.spawn_thread(First::Receive)
    }

    /// A spare thread for work of `level`, rather one that was last seen on this processor.
    fn pop_spare_here(&self, level: u8) -> Option<Arc<Stack>> {
        let (here, class) = (sys::thread::current_cpu(), self.class_of(level));
        self.core.pop_spare_seen(class, |cpu| cpu == here, |_| true)
    }

    /// Whether work waits that an idle worker would take. A job that has as many workers as it may has none: a spare
    /// thread that found its work unserved, and got no worker, looked again without an end.
    pub(super) fn is_work_unserved(&self, me: Me<'_>) -> bool {
        let may_have_more = || self.crew.has_room(|| self.workers().count());
        self.core.idle.is_any_hungry() && self.is_offered_to_idle() && may_have_more()
            || self.has_pinned_for_spare(me)
    }

    /// An idle worker, if work waits for one.
    pub(super) fn claim_for_queued(&self, me: Me<'_>) -> Option<&Worker> {
        self.claim_for_pinned(me).or_else(|| {
            let is_wanted = self.core.idle.is_any_hungry()
                && (self.seats.waits() || self.most_urgent_offered().is_some());
            is_wanted.then(|| self.claim(Want::Offered)).flatten()
        })
    }
}

impl Core {
    /// Whether the thread that gets the worker is to help the calling one with its forks, while another processor has
    /// no worker. The kernel often wakes it on the processor where the calling one goes on computing, also if it slept
    /// on another.
    fn is_for_another_processor(&self) -> bool {
        poll_context::departure() == Departure::Stays && self.idle.has_each_a_processor()
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(urgency_loom)))]
mod tests {
    use crate::{
        Runtime, block_on, join,
        sched::{machine::claim::Want, tests::show_place},
        sync::oneshot,
        sys::thread as sys_thread,
    };
    use rustix::thread::sched_getaffinity;
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicI32, Ordering},
        },
        thread,
        time::{Duration, Instant},
    };

    /// Forks, and computes until the fork has begun elsewhere. The processors of both; `None`: no worker has come.
    fn processors_of_both() -> Option<(i32, i32)> {
        let theirs = AtomicI32::new(-1);
        let begun = || theirs.load(Ordering::SeqCst) != -1;
        let computes = || {
            let mine = sys_thread::current_cpu();
            let limit = Instant::now() + Duration::from_secs(1);
            while !begun() && Instant::now() < limit {
                // It comes to scheduling points.
                join(|| (), || ());
            }
            begun().then_some(mine)
        };
        let begins = || theirs.store(sys_thread::current_cpu(), Ordering::SeqCst);
        let (mine, ()) = join(computes, begins);
        Some((mine?, theirs.into_inner()))
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the threads that run")]
    fn a_thread_that_is_woken_for_a_fork_begins_on_another_processor() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        if runtime.job().core.idle.may_hold_back() {
            // There are not two processors.
            return;
        }
        let both = |_| {
            // The other worker has gone to sleep by then.
            thread::sleep(Duration::from_millis(10));
            runtime.spawn_fn(processors_of_both).get().unwrap()
        };
        let seen: Vec<_> = (0..20).filter_map(both).collect();
        let apart = seen.iter().filter(|(mine, theirs)| mine != theirs).count();
        // The kernel may move either thread at any moment.
        assert!(apart * 4 >= 20 * 3, "{seen:?}");
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos ends spare threads")]
    fn a_thread_that_gets_a_pinned_worker_is_called_to_no_other_processor() {
        // The threads without a worker may run on all the workers' processors.
        let Ok(runtime) = Runtime::builder().workers(2).pin_workers().build() else {
            return;
        };
        let job = runtime.job();
        let [worker, other] = [(); 2].map(|()| job.claim(Want::Any).unwrap());
        job.core.prepare_thread().unwrap();
        let spare = loop {
            match job.core.pop_spare() {
                Some(spare) => break spare,
                None => thread::yield_now(),
            }
        };
        let may_run_on = runtime.spawn_fn(|| sched_getaffinity(None).unwrap().count());
        spare.deliver_beside(worker);
        assert_eq!(may_run_on.get().unwrap(), 1);
        job.release(other);
    }

    /// A stack slept on a processor where another worker computes, and is woken from there.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the threads that run")]
    fn a_stack_does_not_go_on_behind_another_worker() {
        let all = sched_getaffinity(None).unwrap();
        let runtime = Runtime::builder().workers(2).build().unwrap();
        if runtime.job().core.idle.may_hold_back() {
            return;
        }
        let cpu = sys_thread::current_cpu();
        let here = move || sys_thread::pin(0, cpu as usize);
        let [ends, begins] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (ended, begun) = (ends.clone(), begins.clone());
        let computes = runtime.spawn_fn(move || {
            here();
            show_place(cpu);
            begun.store(true, Ordering::SeqCst);
            while !ended.load(Ordering::SeqCst) {
                crate::scheduling_point();
            }
        });
        while !begins.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        let goes_on_there = |_: &usize| {
            let (ends_wait, wait) = oneshot::channel::<()>();
            let waits = runtime.spawn_fn(move || {
                here();
                sys_thread::send_home(&all);
                block_on(wait).unwrap();
                sys_thread::current_cpu() == cpu
            });
            let wakes = || {
                here();
                // It has gone to sleep by then.
                thread::sleep(Duration::from_millis(2));
                ends_wait.send(()).unwrap();
            };
            thread::scope(|threads| threads.spawn(wakes).join().unwrap());
            waits.get().unwrap()
        };
        let there = (0..50).filter(goes_on_there).count();
        ends.store(true, Ordering::SeqCst);
        computes.get().unwrap();
        // The kernel may move either thread at any moment.
        assert!(there < 10, "{there} of 50 go on behind the other worker");
    }
}
