//! A worker has work, and no thread can be had for it: the limit of threads is reached, or the system refuses one.
//!
//! All threads of the runtime are in use then. Some run, and the others wait. Work can run on top of a stack that
//! waits. It ends before the stack goes on, so what waits for the stack's own code would wait for ever there. Nobody
//! knows for what work will wait. So it runs on top of a stack as late as possible:
//!
//! 1. A stack that waits has found the work. While another thread runs, the stack leaves it in the pool: that thread
//!    looks for work when it has ended what it runs, or waits. (Three closures began at one moment at a limit of three
//!    threads, two of which waited for the third. The last thread came back from the poller. In one of 26 to 202
//!    programs a closure ran on top of the one for which it waited.)
//! 2. The thread that runs may be in code of the program that never comes back, or only after this work. So one of the
//!    stacks that wait *asks* once in a relief period whether the work is still there. If it is, and no thread is on
//!    its way to it, the work goes on top of a stack. So it does at once if no other thread runs.
//! 3. Of all that wait it is the stack that began its task last, but for stacks that wait for forks. What waits began
//!    later than what it waits for, as a rule: the older code holds the lock, or will send. A thief that was stopped is
//!    no reason to run anything on top of the code that forked.
//! 4. The stack that asks looks for events as well, while no thread is in the poller: there may be no other that could.
//!    (At the limit, the last thread came out of the poller with a closure that waited for another one's timer, and
//!    nobody saw that.)
//!
//! Rule 3 is a guess. A program whose work waits for older work, for which all stacks wait, hangs at its limit.
//!
//! If the runtime has no thread at all, a plain thread gets the worker, and what is queued ends with an error.

use crate::protocol::asking::Asking;
use crate::sched::{
    core::{Core, RELIEF_PERIOD},
    job::Job,
    machine::claim::Want,
    stack::{Delivery, Me, Stack},
    worker::Worker,
};
use crate::sys::primitives::atomic::{AtomicUsize, Ordering};
use std::{cmp::Reverse, ptr, sync::Arc};

/// See the module's text.
#[derive(Debug)]
pub(super) struct WithoutThread {
    /// Rules 2 and 4: a stack that waits asks (`protocol/asking.rs`).
    asking: Asking,
    /// The number of the stack that is to run on top of itself what it finds; 0 if there is none.
    chosen: AtomicUsize,
}

impl WithoutThread {
    pub(super) fn new() -> Self {
        WithoutThread {
            asking: Asking::new(),
            chosen: AtomicUsize::new(0),
        }
    }
}

/// A stack whose number does not fit (`tasks/state.rs`) is always the chosen one.
fn number(stack: &Stack) -> usize {
    stack.runner().number().unwrap_or(0)
}

impl Core {
    /// Rule 1: whether a thread of the runtime runs, beside the one of `me`, or has become a spare one meanwhile.
    fn does_another_run(&self, me: Option<Me<'_>>) -> bool {
        let is_own = |stack: &Stack| me.is_some_and(|me| ptr::eq(me.shared(), stack));
        self.threads_but(|stack| is_own(stack) || stack.suspension.is_suspended()) != 0
    }

    /// Rule 2: whether a thread is on its way to look for work, and in no code of the program.
    fn does_any_come(&self) -> bool {
        let has_code = |stack: &Stack| stack.task().is_some() || stack.forked().is_some();
        self.threads_but(|stack| has_code(stack) || stack.suspension.is_suspended()) > self.spares()
    }

    /// Has a spare thread look around, if there is one: it came into the list meanwhile, and may have seen no idle
    /// worker.
    pub(super) fn call_spare(&self) -> bool {
        let spare = self.pop_spare();
        if let Some(spare) = &spare {
            spare.deliver(Delivery::Look);
        }
        spare.is_some()
    }

    /// How many threads the runtime has, but for these.
    fn threads_but(&self, these: impl Fn(&Stack) -> bool) -> usize {
        let stacks = self.threads.stacks();
        let own = stacks.iter().filter(|stack| !stack.pinned_to.is_never());
        let these = own.filter(|stack| these(stack)).count();
        self.threads.alive().saturating_sub(these)
    }
}

impl Job {
    /// Whether the work that this stack has found, which waits, is not to run on top of it now.
    #[cold]
    pub(super) fn is_for_another(&self, me: Me<'_>) -> bool {
        let threads = &self.core.threads;
        let chosen = &threads.without.chosen;
        let is_chosen = || {
            let own = number(me.shared());
            let swapped = chosen.compare_exchange(own, 0, Ordering::SeqCst, Ordering::SeqCst);
            swapped.is_ok()
        };
        !threads.are_provided()
            && !is_chosen()
            && (self.core.does_another_run(Some(me))
                || self
                    .waiting_stacks()
                    .first()
                    .is_some_and(|it| !ptr::eq(&**it, me.shared())))
    }

    /// Leaves the work in the pool, where it is, and the worker to another thread. The caller waits for one that asks.
    #[cold]
    pub(super) fn leave_without_thread(&self, me: Me<'_>, worker: &Worker) {
        let Some(worker) = self.start_with_existing(worker) else {
            return;
        };
        self.release(worker);
        if !self.core.call_spare() && !self.core.does_another_run(Some(me)) {
            self.choose();
        }
    }

    /// No thread can be had for a worker, which the caller has released.
    #[cold]
    pub(super) fn is_without_thread(&self) {
        if self.core.threads.alive() == 0 {
            self.refuse_queued();
            self.pass_to_external();
        } else if self.give_to_resumable() || self.core.threads.without.asking.is_any() {
            // The stack that asks looks for idle workers after this.
        } else if self.core.does_another_run(None) {
            // It finds the work, and asks.
            self.rouse(|_| ());
        } else {
            self.choose();
        }
    }

    /// Rule 3.
    fn choose(&self) {
        let chosen = &self.core.threads.without.chosen;
        self.rouse(|stack| chosen.store(number(stack), Ordering::SeqCst));
    }

    /// Ends the wait of the first stack of rule 3, for which the caller has an idle worker.
    fn rouse(&self, before: impl Fn(&Stack)) {
        let mut waiting = self.waiting_stacks().into_iter();
        let woken = waiting.find(|stack| {
            before(stack);
            stack.suspension.wake()
        });
        if let Some(woken) = woken {
            woken.resume();
        }
    }

    /// The stacks of this job that wait, in the order of rule 3.
    fn waiting_stacks(&self) -> Vec<Arc<Stack>> {
        // None is acted on under the lock of the list.
        let mut own = self.core.threads.stacks_of(self);
        own.retain(|stack| stack.suspension.is_suspended());
        own.sort_by_key(|stack| {
            let began = stack.began.load(Ordering::Relaxed);
            (stack.awaited_forks.is_any(), Reverse(began))
        });
        own
    }

    /// A stack whose wait ended while a worker was in hand saw no idle worker: it gets one. Whether there is such a
    /// stack.
    fn give_to_resumable(&self) -> bool {
        // In the pool it is already, and stays. (It was put there again. That claimed the worker anew, which did not
        // serve the stack's level, started it, and came here, until the thread's stack was full.)
        let gets = |stack: &Arc<Stack>| {
            stack.suspension.is_resumable_after_writes() && self.resume_with_idle(stack)
        };
        self.core.threads.stacks_of(self).iter().any(gets)
    }

    /// Waits for a delivery, and asks meanwhile if no other stack does: rules 2 and 4.
    #[cold]
    pub(super) fn receive_without_thread<'a>(&'a self, me: Me<'a>) -> Delivery<'a> {
        let (core, asking) = (&self.core, &self.core.threads.without.asking);
        while (core.is_poller_missing() || self.is_work_unserved(me)) && asking.begin() {
            let received = me.receive_within(core, RELIEF_PERIOD);
            asking.end();
            if received.is_none() && core.is_poller_missing() {
                self.look_without_worker();
            }
            let is_unserved = self.is_work_unserved(me) && !self.give_to_resumable();
            if let Some(delivery) = received {
                if is_unserved {
                    // Another stack asks: this one may run for long.
                    self.rouse(|_| ());
                }
                return delivery;
            }
            if is_unserved && !core.call_spare() && !core.does_any_come() {
                self.choose();
            }
        }
        me.receive(core)
    }

    /// The runtime has no thread and cannot get one: what is queued ends with an error.
    fn refuse_queued(&self) {
        for (level, pool) in self.pools.iter() {
            // What is dropped is the program's.
            pool.drain_tasks(|task| Stack::outside_scheduler(|| self.tasks.seize(task)));
            // The rest was out of it for a moment.
            if !pool.is_first_empty() {
                self.pools.announce_group(0, level, || true);
            }
            for group in (1..pool.shards()).filter(|&group| pool.is_in_other(group)) {
                self.pools.announce_group(group, level, || true);
            }
        }
    }

    /// The runtime has no thread: a plain thread that waits for a worker gets the one that no other thread will use.
    fn pass_to_external(&self) {
        while let Some(worker) = self.claim(Want::Any) {
            let seat = self.seats.of(worker);
            let serves = |stack: &Stack| stack.is_of(self) && seat.serves_any(1 << stack.level());
            let claimed = {
                let stacks = self.core.threads.stacks();
                let mut served = stacks.iter().filter(|stack| serves(stack));
                served.find(|stack| stack.suspension.claim()).cloned()
            };
            if let Some(external) = claimed {
                return self.deliver(worker, &external);
            }
            self.release(worker);
            // One that came while the worker was in hand found none.
            let stacks = self.core.threads.stacks();
            let mut served = stacks.iter().filter(|stack| serves(stack));
            if !served.any(|stack| stack.suspension.is_resumable_after_writes()) {
                return;
            }
        }
    }
}
