//! The thread in the poller: events, timers, relief.
//!
//! A spare thread waits in the poller while the runtime has I/O or timers to wait for, or while relief
//! is armed. It holds no worker there. When it comes out with ready work in hand, it
//!
//! 1. claims an idle worker, if there is one, and runs the work itself: one system call from the event to
//!    the code that waited for it; or
//! 2. takes over the worker of the least urgent running stack, if what became ready is more urgent: the
//!    kernel has preempted a core for this thread already, so nothing is gained by passing the work on; or
//! 3. leaves the work to the busy workers, which serve something at least as urgent, and goes back.
//!
//! Up to two threads wait in the poller: the kernel wakes the one that came last, so the other one is
//! still there while the first runs what it found. Whoever leaves the poller empty calls a spare in.
//!
//! # Relief
//!
//! When work was inserted and no worker was idle, a one-shot timer of one relief period is armed.
//! When it expires and work still waits, every stack that could serve it gets a CHECK_IN request; one that
//! has not answered by the next expiry loses its worker to the thread in the poller, unless the kernel has
//! only given its processor to another process. A stack whose worker was taken and that still has not checked
//! in at an expiry has its jobs made public, and is *demoted* if it runs: its thread goes to the kernel's idle
//! class until its next scheduling point. Nothing expires while nothing waits.

use super::{
    attention::CHECK_IN,
    run,
    shared::{RELIEF_PERIOD, Shared},
    stack::Stack,
    worker::{NO_LEVEL, Worker},
};
use crate::{chaos, io::driver::wake_all, os};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

/// How many threads wait in the poller at most.
const MOST_POLLERS: usize = 2;

/// How a visit to the poller ended.
pub(crate) enum Polled<'a> {
    /// With a worker, and work that waits for it.
    Worker(&'a Worker),
    /// The runtime closes, or nothing has to be waited for any more.
    Look,
    /// Nobody is needed there.
    NotNeeded,
}

/// Stacks whose worker was taken and that have not checked in since.
#[derive(Debug, Default)]
pub(crate) struct Overrunning {
    stacks: Mutex<Vec<Arc<Stack>>>,
    pub(crate) demotions: AtomicU64,
}

impl Shared {
    /// Whether somebody should be in the poller.
    fn needs_poller(&self) -> bool {
        self.threads.relief_armed() || self.driver_if_made().is_some_and(|d| d.has_interest())
    }

    /// Whether somebody should be in the poller, and nobody is.
    pub(crate) fn is_poller_missing(&self) -> bool {
        self.pollers.load(Ordering::SeqCst) == 0 && self.needs_poller()
    }

    /// Calls a spare into the poller if somebody should be there and nobody is: something is to be waited for
    /// now, or whoever was there goes to run what it found.
    pub(crate) fn call_in_poller(&self) {
        if self.is_poller_missing() {
            self.want_poller();
        }
    }

    /// The wait of a spare thread in the poller.
    pub(crate) fn poll_as_spare(&self, me: &Arc<Stack>) -> Polled<'_> {
        if !self.needs_poller() {
            return Polled::NotNeeded;
        }
        let Ok(driver) = self.driver() else {
            return Polled::NotNeeded;
        };
        if self.pollers.fetch_add(1, Ordering::SeqCst) >= MOST_POLLERS {
            self.pollers.fetch_sub(1, Ordering::SeqCst);
            return Polled::NotNeeded;
        }
        me.set_urgent(true);
        let mut ready = Vec::new();
        loop {
            if self.closing.load(Ordering::SeqCst) || !self.needs_poller() {
                self.pollers.fetch_sub(1, Ordering::SeqCst);
                return Polled::Look;
            }
            // An insertion that found a poller in here but no worker in the idle set, because we were
            // not waiting yet, is seen by this look.
            let relief = match driver.wait(true, &mut ready) {
                Ok(outcome) => outcome.relief,
                Err(_) => false,
            };
            chaos::delay();
            let entries = run::in_batch(|| wake_all(&mut ready));
            if relief {
                self.threads.relief_expired();
            }
            chaos::delay();
            let worker = self
                .take_worker_for_ready(me)
                .or_else(|| if relief { self.relieve() } else { None });
            self.batch_inserted(entries, worker.is_some());
            if relief && worker.is_some() {
                // There may be more than this worker can take.
                self.arm_relief();
            }
            if let Some(worker) = worker {
                self.pollers.fetch_sub(1, Ordering::SeqCst);
                debug_assert!(me.deque.seems_empty());
                return Polled::Worker(worker);
            }
        }
    }

    /// A look at the poller by a worker that has nothing to do, if nobody waits there.
    pub(crate) fn poll_without_waiting(&self) {
        if self.pollers.load(Ordering::Relaxed) != 0 {
            return;
        }
        if let Some(driver) = self.driver_if_made()
            && driver.has_interest()
        {
            let mut ready = Vec::new();
            if driver.wait(false, &mut ready).is_ok_and(|o| o.relief) {
                self.threads.relief_expired();
            }
            let entries = run::in_batch(|| wake_all(&mut ready));
            self.batch_inserted(entries, true);
        }
    }

    /// A worker for the work that is ready: an idle one, or that of a less urgent stack.
    fn take_worker_for_ready(&self, me: &Stack) -> Option<&Worker> {
        if let Some(worker) = self.claim_for_personal(me) {
            return Some(worker);
        }
        let level = self.most_urgent_queued()?;
        if let Some(worker) = self.claim_idle() {
            return Some(worker);
        }
        let below = self.workers.iter().filter(|w| {
            let serves = w.level();
            serves != NO_LEVEL && serves > level
        });
        // Of the least urgent ones that whose thread this one has just preempted: it does not run, so it
        // need not even notice.
        let here = os::thread::current_cpu();
        let is_here = |w: &Worker| self.holder(w).is_some_and(|stack| stack.cpu() == here);
        let victim = below.max_by_key(|w| (w.level(), is_here(w)));
        let Some((worker, lender)) = victim.and_then(|victim| self.take_from(victim, 0)) else {
            self.arm_relief();
            return None;
        };
        worker.at(level).promotions.add(1);
        worker.set_lender(lender);
        Some(worker)
    }

    /// Takes the worker of whatever stack holds `worker` now, if it is in user code.
    fn take_from(&self, worker: &Worker, only_if: u32) -> Option<(&Worker, Arc<Stack>)> {
        let stack = self.holder(worker)?;
        // The stack may hold another worker by now than the one we looked at; that is the one we got.
        let taken = &*self.workers[stack.attention.take(only_if)?];
        chaos::delay();
        taken.at(stack.level()).running.add(taken.lap());
        self.flush_ring(stack);
        let stack = stack.arc();
        self.overrunning
            .stacks
            .lock()
            .expect("nothing panics under this lock")
            .push(stack.clone());
        self.arm_relief();
        Some((taken, stack))
    }

    /// The relief timer expired. Returns a worker that its stack did not give up in time.
    fn relieve(&self) -> Option<&Worker> {
        self.demote_overrunning();
        let level = self.most_urgent_queued()?;
        let mut taken = None;
        for worker in &self.workers {
            let serves = worker.level();
            if serves == NO_LEVEL || serves < level {
                continue;
            }
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            let tid = stack.tid.load(Ordering::Relaxed);
            if !stack.attention.is_pending(CHECK_IN) {
                let ran = os::thread::cpu_time(tid).unwrap_or(0);
                stack.asked_at.store(ran, Ordering::Relaxed);
                stack.attention.request(CHECK_IN);
            } else if taken.is_none()
                && (is_overrunning(stack, tid) || chaos::one_in(2))
                && let Some((relieved, _)) = self.take_from(worker, CHECK_IN)
            {
                relieved.at(serves).reliefs.add(1);
                taken = Some(relieved);
            }
        }
        self.arm_relief();
        taken
    }

    fn demote_overrunning(&self) {
        let mut stacks = self
            .overrunning
            .stacks
            .lock()
            .expect("nothing panics under this lock");
        for stack in stacks.drain(..) {
            if !stack.attention.is_taken() {
                continue;
            }
            // It may not come back for long; what it forked must not wait for it.
            if stack.deque.raise_all() {
                self.insert_deque(&stack);
            }
            let tid = stack.tid.load(Ordering::Relaxed);
            // A thread that blocks takes no processor from anybody, and may wake up holding a lock that
            // others wait for.
            if os::thread::is_blocked(tid) || !os::thread::demote(tid) {
                continue;
            }
            self.overrunning.demotions.fetch_add(1, Ordering::Relaxed);
            chaos::delay();
            stack.demoted.store(true, Ordering::SeqCst);
            // It may have checked in meanwhile, and looked at `demoted` before it was set.
            if !stack.attention.is_taken() && stack.demoted.swap(false, Ordering::SeqCst) {
                os::thread::promote(tid);
            }
        }
    }
}

/// A stack was asked to check in and has not: did it run meanwhile, or does it sleep in a call that blocks?
/// Or has the kernel given its processor to another process? Then another thread would not get it either,
/// and relief would only make more threads.
fn is_overrunning(stack: &Stack, tid: i32) -> bool {
    let Some(now) = os::thread::cpu_time(tid) else {
        return true;
    };
    let ran = now.saturating_sub(stack.asked_at.load(Ordering::Relaxed));
    ran >= RELIEF_PERIOD.as_nanos() as u64 / 2 || os::thread::is_blocked(tid)
}
