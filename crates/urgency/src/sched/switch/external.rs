//! Plain threads that enter a runtime, and how its end treats them.
//!
//! An *external thread* is a plain thread that borrows a stack for `Runtime::run`, `join` or `scope`. It needs a worker
//! first.
//!
//! # Entering
//!
//! 1. An idle worker that serves the external thread's level goes to the external thread at once, unless more workers
//!    would run than the process may use (`Job::claim_awake`).
//! 2. Otherwise the external thread queues in the pool of its level, as any stack that can go on. Less urgent stacks
//!    leave at their next scheduling point, and relief revokes the worker of a stack that has no scheduling point.
//! 3. A stack of the *same* level leaves only when it waits or ends, which may be never. So the external thread is also
//!    on a list of its own ([`ExternalThreads`]). A stack that comes to a scheduling point where it was asked for
//!    something gives its worker to the first external thread of its level on that list, and queues in turn. The
//!    external thread asks eight of them when it enters, and each expiry of the relief timer asks all that run.
//!
//! 4. An external thread that is inside gives way to more urgent work, but not to other external threads. When it has
//!    lost its worker, it is on the list again: the equals that left for it come before it in the pool.
//!
//! The runtime must not keep a thread from outside: it has other work than waiting. An entry in the list is a hint like
//! each entry in a pool: the claim of the stack's suspension decides which of the two brings the worker.
//!
//! # The end of the runtime
//!
//! A shutdown *refuses* external threads from then on ([`ExternalThreads::refuse`]), and the ones that are inside leave
//! in their own time. They may wait for workers that stacks without scheduling points hold, so relief and the driver
//! must go on: the last external thread that leaves closes the runtime instead of the shutdown.
//!
//! `protocol/door.rs` has how the two find out which of them comes last. Both may: closing twice does nothing.

use crate::protocol::{attention::PREEMPT, door::Door};
use crate::sched::{
    Work,
    forks::hunger::{MOST_ALERTED, turn_now},
    job::Job,
    stack::{Me, Stack},
};
use crate::sys::mutex::Mutex;
use crate::sys::primitives::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{cell::Cell, ptr, sync::Arc};

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct ExternalThreads {
    /// In the order in which they came; each removes itself.
    entering: Mutex<Vec<Arc<Stack>>>,
    /// The length of that list.
    count: AtomicUsize,
    door: Door,
}

impl ExternalThreads {
    /// An external thread queues for a worker; it calls [`ExternalThreads::has_entered`] when it has one.
    pub(crate) fn enters(&self, external: Arc<Stack>) {
        let mut entering = self.entering.lock();
        entering.push(external);
        self.count.store(entering.len(), Relaxed);
    }

    pub(crate) fn has_entered(&self, external: &Stack) {
        let mut entering = self.entering.lock();
        entering.retain(|other| !ptr::eq(&**other, external));
        self.count.store(entering.len(), Relaxed);
    }

    /// Claims the first external thread of this level that still waits.
    fn claim_at(&self, level: u8) -> Option<Arc<Stack>> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let entering = self.entering.lock();
        let mut of_level = entering.iter().filter(|external| external.level() == level);
        of_level
            .find(|external| external.suspension.claim())
            .cloned()
    }

    /// No external thread comes in from now on.
    pub(crate) fn refuse(&self) {
        self.door.refuse();
    }

    /// Whether no external thread is inside.
    pub(crate) fn is_empty(&self) -> bool {
        self.door.is_empty()
    }
}

thread_local! {
    /// The runtime that the calling thread entered last as an external thread; null for other threads.
    static VISITED: Cell<*const Job> = const { Cell::new(ptr::null()) };
}

/// A plain thread is inside of the runtime, or on its way in. It stays on that thread.
pub(crate) struct Visit<'a> {
    job: &'a Job,
    outer: *const Job,
}

impl Job {
    /// Lets a plain thread in, unless the runtime was shut down.
    pub(crate) fn visit(&self) -> Option<Visit<'_>> {
        let is_let_in = self.externals.door.enter();
        let outer = VISITED.replace(self);
        // Leaves in either case.
        let visit = Visit { job: self, outer };
        is_let_in.then_some(visit)
    }

    /// Whether the calling thread is an external thread in this runtime, and no thread of the runtime's own.
    pub(crate) fn is_visited_here(&self) -> bool {
        ptr::eq(VISITED.get(), self)
    }

    /// Rule 3: some workers of equals are asked, others each time.
    pub(crate) fn ask_equals(&self, level: u8) {
        let equals = self.serving_at(level, turn_now()).take(MOST_ALERTED);
        let stacks = equals.filter_map(|worker| self.core.holder(worker));
        stacks.for_each(|stack| stack.attention.request(PREEMPT));
    }

    /// Rule 3, on the side of the stack that leaves.
    pub(crate) fn let_in(&self, me: Me<'_>) {
        if !self.is_visited_here()
            && let Some(external) = self.externals.claim_at(me.level())
        {
            self.abandon(me, Work::Resume(external));
        }
    }

    /// Rule 4: the calling stack, `me`, lost its worker. If its thread is external, it is on the list again.
    pub(crate) fn wait_as_external(&self, me: Me<'_>) {
        if self.is_visited_here() {
            self.externals.enters(me.arc());
            self.ask_equals(me.level());
        }
    }

    /// It has a worker again.
    pub(crate) fn came_back_as_external(&self, me: Me<'_>) {
        if self.is_visited_here() {
            self.externals.has_entered(&me);
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        VISITED.set(self.outer);
        if self.job.externals.door.leave() {
            self.job.close();
        }
    }
}
