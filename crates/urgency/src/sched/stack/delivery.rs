//! What a stack's thread receives while it waits, and from which processor it is woken.
//!
//! `protocol/mailbox.rs` has how a delivery comes, and `protocol/home.rs` what it means to call a thread here or away.

use super::Stack;
use crate::{
    sched::{core::Core, worker::Worker},
    sys::{self, primitives::atomic::Ordering, wake_up::Call},
};
use std::num::NonZero;

/// What a thread receives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Delivery<'a> {
    /// A worker to serve with.
    Worker(&'a Worker),
    /// Look around again: a thread should be in the poller.
    Look,
}

/// In a mailbox. The numbers above it are workers.
const LOOK: NonZero<usize> = NonZero::<usize>::MIN;

impl<'a> Delivery<'a> {
    fn number(self) -> NonZero<usize> {
        match self {
            Delivery::Worker(worker) => LOOK.saturating_add(1 + worker.id),
            Delivery::Look => LOOK,
        }
    }

    pub(super) fn of_number(number: NonZero<usize>, core: &'a Core) -> Self {
        match number.get().checked_sub(LOOK.get() + 1) {
            Some(id) => Delivery::Worker(&core.workers[id]),
            None => Delivery::Look,
        }
    }
}

impl Stack {
    /// Gives this stack's thread a worker of its core set. The caller has the right to (see `Mailbox`, rule 1).
    pub(crate) fn deliver(&self, delivery: Delivery<'_>) {
        let tid = self.tid.load(Ordering::Relaxed);
        if let Delivery::Worker(worker) = delivery
            && tid != 0
        {
            self.pinned_to.follow(worker, tid);
        }
        // Not under the lock: the woken thread may preempt this one. A lowered thread then has no processor while other
        // processes compute, and the next thread that delivers here waited for the lock, for 0.26 s.
        let thread = self.thread.lock().clone();
        let thread = thread.expect("a stack that parks has a thread");
        self.mailbox.deliver(delivery.number(), &thread);
    }

    /// As [`Stack::deliver`], from a thread that is about to sleep: the receiver's runs on this processor next.
    pub(crate) fn deliver_here(&self, worker: &Worker) {
        // A worker that is pinned is pinned to this processor.
        if !worker.is_pinned() {
            self.home
                .call(|| Call::here(self.tid.load(Ordering::Relaxed)));
            self.cpu
                .store(sys::thread::current_cpu(), Ordering::Relaxed);
        }
        self.deliver(Delivery::Worker(worker));
    }

    /// As [`Stack::deliver`], from a thread that goes on computing: the receiver's runs on another processor, or on the
    /// one to which the worker is pinned.
    pub(crate) fn deliver_beside(&self, worker: &Worker) {
        if !worker.is_pinned() {
            self.home
                .call(|| Call::away(self.tid.load(Ordering::Relaxed)));
        }
        self.deliver(Delivery::Worker(worker));
    }

    /// Calls `make`, which makes a thread. The new thread inherits the processors that the calling one may use, so the
    /// calling one is not bound to one of them meanwhile: `protocol/home.rs`, rule 3.
    pub(crate) fn at_home<R>(make: impl FnOnce() -> R) -> R {
        Stack::with_current(|me| match me {
            Some(me) => me.home().stay(Call::free, make),
            None => make(),
        })
    }
}
