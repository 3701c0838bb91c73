//! `TaskRef`: a counted reference to a task, and all that a scheduler does with one.
//!
//! Each entry of a ready queue is one `TaskRef`; running consumes it.
//!
//! # The life of a task, as a scheduler sees it
//!
//! 1. `new` (`tasks/mod.rs`) makes it scheduled; the spawner puts the entry into a queue.
//! 2. A worker takes the entry and calls `run`. The entry claims the task (state.rs, rule 3) and
//!    polls the future once, with a waker that is borrowed, not counted.
//! 3. Pending: the runner's reference goes away with the same step that makes the task idle. If it
//!    was woken meanwhile, the reference becomes an entry again instead (`Ran::Rescheduled`).
//! 4. A wake-up turns the waker's reference into an entry: `Schedule::schedule`.
//! 5. Ready, panicked or cancelled: the future ends (cell.rs), the result is published, the waiter
//!    is woken.
//!
//! Locked instructions, without the queue's and the clock's: claim 1, suspend 1, wake-up 1 by value and 1 by reference,
//! clone of the waker 1: a cycle of suspension and wake-up costs 4, a yield 3. Completion costs 1 while the handle's
//! owner does not wait yet, 2 if it waits, none when detached.
//!
//! # What happens on whose thread
//!
//! A future is dropped by the worker that polled it last, or by the one that claims it after
//! `cancel`; never in the canceller. A suspended task that nothing can wake any more is scheduled
//! once, so that a worker drops it. Exceptions: `shut_down`, and an entry that is thrown away
//! without having been run; both drop the future on the spot, because no worker may be left.

use super::{
    Header, Id,
    cell::{CLOSURE, COMPUTES, HEARD, contained},
    state::{Claim, Complete, Dropped, Runner, Suspend},
    waker,
};
use crate::{rank::LevelId, sys::primitives::atomic::Ordering::Relaxed};
use std::{
    mem::{self, ManuallyDrop},
    ptr::NonNull,
    task::Context,
};

/// A counted reference to a task.
///
/// Dropping an entry of a queue without running it gives up the task only if no other reference
/// is left: an entry that cannot be run must go to [`shut_down`](TaskRef::shut_down).
pub(crate) struct TaskRef(NonNull<Header>);

// SAFETY: the future and its output are `Send` (bounds of `new`), or its scheduler keeps them on their thread
// (`new_local`), and a handle of an output that is not `Send` is not `Send` either, nor in an error, which is
// (`Caller::gives_handles_back`). All that is reachable through a
// shared reference is atomic or locked; see the rules in state.rs.
unsafe impl Send for TaskRef {}
// SAFETY: as above.
unsafe impl Sync for TaskRef {}

/// How a run went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// The future is gone: it returned or panicked.
    Finished,
    /// The task waits for a wake-up.
    Suspended,
    /// The task was woken while it ran, and is in a queue again.
    Rescheduled,
    /// Another entry had run the task before: nothing was done.
    Stale,
    /// The future was dropped without an end of its own.
    Cancelled,
}

impl TaskRef {
    /// # Safety
    /// `header` is a task's, and with it the caller gives away one counted reference; or the result is kept in a
    /// `ManuallyDrop` that is never dropped, while another reference lives.
    pub(crate) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        TaskRef(header)
    }

    /// The address, for comparisons and for a borrow through `from_raw`. While `run` executes any
    /// code of the user, the address of the running task is valid.
    pub(crate) fn as_raw(&self) -> NonNull<Header> {
        self.0
    }

    /// The name of the type of its future or closure.
    #[inline]
    pub(crate) fn name(&self) -> fn() -> &'static str {
        self.header().vtable.name
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: alive while counted, and never lent mutably.
        unsafe { self.0.as_ref() }
    }

    /// Names the task for as long as it is referenced.
    pub(crate) fn id(&self) -> Id {
        Id(self.0.as_ptr().addr())
    }

    /// The number of the task's slot in the table of live tasks.
    pub(crate) fn live_slot(&self) -> u32 {
        self.header().live_slot.load(Relaxed)
    }

    /// Whether the task belongs to this scheduler. Of two schedulers the levels cannot be compared.
    pub(crate) fn is_of<S>(&self, scheduler: &S) -> bool {
        // SAFETY: the vtable is the cell's, and this is a reference.
        let own = unsafe { (self.header().vtable.scheduler)(self.0) };
        std::ptr::eq(own, std::ptr::from_ref(scheduler).cast())
    }

    /// The level whose queue the task belongs into; may be raised at any time.
    pub(crate) fn level(&self) -> u8 {
        self.header().level.load(Relaxed)
    }

    /// As [`TaskRef::level`], with the name that it has in the task's scheduler.
    pub(crate) fn level_id(&self) -> LevelId {
        let level = self.level();
        // SAFETY: the vtable is the cell's, and this is a reference.
        LevelId::named(level, unsafe {
            (self.header().vtable.name_of)(self.0, level)
        })
    }

    /// The level at which the task was created, boosts aside: what inversions are judged by.
    pub(crate) fn base_level(&self) -> u8 {
        self.header().base_level
    }

    /// Made by `new_fn`: its run lasts until the closure returns, on a stack of its own.
    pub(crate) fn is_closure(&self) -> bool {
        self.header().flags.load(Relaxed) & CLOSURE != 0
    }

    /// Its last poll took long.
    #[inline]
    pub(crate) fn computes(&self) -> bool {
        self.header().flags.load(Relaxed) & COMPUTES != 0
    }

    /// Whether the poll that its runner ends now took long.
    pub(crate) fn set_computes(&self, computes: bool) {
        if self.computes() != computes {
            self.header().flags.fetch_xor(COMPUTES, Relaxed);
        }
    }

    /// The task panics, and code hears of it that does not have it from the handle. To be called by the task's thread.
    pub(crate) fn panic_is_heard(&self) {
        self.header().flags.fetch_or(HEARD, Relaxed);
    }

    /// Whether code has heard so of the panic.
    pub(crate) fn is_panic_heard(&self) -> bool {
        self.header().flags.load(Relaxed) & HEARD != 0
    }

    /// Clock ticks at which the task became ready.
    pub(crate) fn ready_since(&self) -> u64 {
        self.header().ready_since.load(Relaxed)
    }

    /// Stores the clock's ticks; `Schedule::schedule` calls it before it pushes the entry.
    pub(crate) fn set_ready_since(&self, ticks: u64) {
        self.header().ready_since.store(ticks, Relaxed);
    }

    /// There is no handle.
    pub(crate) fn is_detached(&self) -> bool {
        self.header().state.look().is_detached()
    }

    /// The future is gone and the result is stored.
    pub(crate) fn is_finished(&self) -> bool {
        self.header().state.look().is_completed()
    }

    /// Whether it is ready, and no entry has claimed it.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        self.header().state.look().is_queued()
    }

    /// Claims the task and polls it once; the protocol is in the module text.
    pub(crate) fn run(self) -> Ran {
        self.run_then(Runner::UNNAMED, |_| (), |_| ())
    }

    /// As [`run`](Self::run), under the name of the calling runner, and with something to do once the task is claimed:
    /// a thread that raises the task from then on finds it running there. And with something to do when the poll was
    /// pending, before another thread may run the task.
    #[inline]
    pub(crate) fn run_then(
        self,
        runner: Runner,
        claimed: impl FnOnce(&TaskRef),
        pending: impl FnOnce(&TaskRef),
    ) -> Ran {
        let header = self.header();
        match header.state.claim(runner) {
            Claim::Poll => claimed(&self),
            Claim::Abandon => {
                self.abandon();
                return Ran::Cancelled;
            }
            Claim::Stale => return Ran::Stale,
        }
        // SAFETY: our reference outlives the borrowed waker.
        let waker = unsafe { waker::borrowed(self.0) };
        // SAFETY: the claim made the future ours (rule 1); the vtable is the cell's.
        let polled = unsafe { (header.vtable.poll)(self.0, &mut Context::from_waker(&waker)) };
        if polled.is_ready() {
            self.complete();
            return Ran::Finished;
        }
        pending(&self);
        match header.state.suspend() {
            Suspend::Idle => {
                mem::forget(self);
                Ran::Suspended
            }
            Suspend::Again => {
                self.schedule();
                Ran::Rescheduled
            }
            Suspend::Abandon => {
                self.abandon();
                Ran::Cancelled
            }
        }
    }

    /// Asks for the end of the task: its future is dropped at its next scheduling point, by a
    /// worker. No effect on a finished task, and on a closure that has started.
    pub(crate) fn cancel(&self) {
        if self.header().state.cancel() {
            // SAFETY: `cancel` has counted this reference.
            unsafe { TaskRef::from_raw(self.0) }.schedule();
        }
    }

    /// Drops the future here and now; the waiter is told of the shutdown. A running task is marked instead, and dropped
    /// by its runner when it suspends. `true`: dropped here.
    pub(crate) fn shut_down(self) -> bool {
        let seized = self.header().state.seize();
        if seized {
            self.abandon();
        }
        seized
    }

    /// Pushes this reference as an entry.
    pub(super) fn schedule(self) {
        let schedule = self.header().vtable.schedule;
        // SAFETY: the vtable is the cell's.
        unsafe { schedule(self) };
    }

    /// Puts this entry, which came out of a queue, where its own scheduler queues it.
    pub(crate) fn put_back(self) {
        let promote = self.header().vtable.promote;
        // SAFETY: the vtable is the cell's.
        unsafe { promote(self) };
    }

    /// Drops the future, which is ours, and completes.
    fn abandon(self) {
        let header = self.header();
        // SAFETY: the caller owns the future (rule 1); the vtable is the cell's.
        unsafe { (header.vtable.abandon)(self.0, header.state.reason()) };
        self.complete();
    }

    /// Publishes the result, which is stored.
    fn complete(self) {
        let header = self.header();
        match header.state.complete() {
            Complete::Done => mem::forget(self),
            Complete::WakeWaiter => {
                self.end_loans();
                // SAFETY: the waker is ours (rule 6).
                let waker = unsafe { header.waiter.take() };
                // A waker may be the program's code; its panic must not end the worker.
                contained(|| waker.wake());
            }
            Complete::Detached => {
                // SAFETY: no handle wants the result (rule 5); the vtable is the cell's.
                unsafe { (header.vtable.discard)(self.0) };
                if header.state.complete_detached() {
                    // SAFETY: the last reference, and no handle (rule 7).
                    unsafe { (header.vtable.free)(self.0) };
                }
                mem::forget(self);
            }
        }
    }

    #[cold]
    fn drop_cold(&mut self, dropped: Dropped) {
        // SAFETY: `drop_ref` left the reference to us in these cases.
        let task = ManuallyDrop::new(unsafe { TaskRef::from_raw(self.0) });
        match dropped {
            Dropped::Gone => {}
            // SAFETY: the last reference of a finished task (rule 7).
            Dropped::Free => unsafe { (task.header().vtable.free)(task.0) },
            Dropped::Schedule => ManuallyDrop::into_inner(task).schedule(),
            Dropped::Claimed => ManuallyDrop::into_inner(task).abandon(),
        }
    }

    /// Acts on what became of this reference.
    pub(super) fn dropped(self, dropped: Dropped) {
        let mut task = ManuallyDrop::new(self);
        if dropped != Dropped::Gone {
            task.drop_cold(dropped);
        }
    }
}

impl Clone for TaskRef {
    fn clone(&self) -> Self {
        self.header().state.clone_ref();
        TaskRef(self.0)
    }
}

impl Drop for TaskRef {
    fn drop(&mut self) {
        let dropped = self.header().state.drop_ref();
        if dropped != Dropped::Gone {
            self.drop_cold(dropped);
        }
    }
}

debug_struct!(TaskRef, |it| id: it.id(), level: it.level(), state: it.header().state.look());
