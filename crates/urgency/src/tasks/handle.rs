//! `Handle<T>`: the right to the result of a task, once.
//!
//! A handle is a future, so it is awaited in async code; in closures `get` blocks instead. It has
//! one owner, which is what makes the waiter slot of the task a plain slot: only the handle
//! writes it, under the bit `WAITER` (state.rs, rule 6). Many waiters share a handle (shared.rs).
//!
//! # A poll
//!
//! 1. Finished? Take the result; a panic is resumed here.
//! 2. The slot holds this very waker? Nothing to do.
//! 3. Otherwise this is the first poll by this waiter: `may_wait` may refuse (inversion, a
//!    task that waits for itself; hooks.rs).
//! 4. Take the slot back, put a clone of the waker in, set `WAITER`. If the task finished
//!    meanwhile, either step fails and the result is taken.
//! 5. `waiting_for` notes who waits for what (boost.rs).
//!
//! What waits for a device and not for the program ([`poll_device`](Handle::poll_device)) is waited for from
//! any level: no refusal, and it becomes as urgent as each task that waits.
//!
//! A waker's clone and drop are anybody's code and may panic: the clone is made before step 4 and the
//! old waker is dropped after it, so that the slot is never half done.
//!
//! Locked instructions: a wait costs 1 beside the clone of the waker, taking the result none, the
//! last reference none, a detach 1.

#[cfg(not(urgency_loom))]
use super::shared::Shared;
use super::{Header, TaskRef, cell::Outcome, error::WaitError, hooks, state::Detach};
use crate::rank::LevelId;
use std::{
    fmt,
    future::Future,
    marker::PhantomData,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe, resume_unwind},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

/// The result of a task, to be waited for once, anywhere: what `fut-create` returns and `get` takes
/// in the papers (Prompt I-Cilk, section 2).
///
/// Awaiting the handle (it is a future) or calling [`get`](Handle::get) waits and gives
/// `Ok(result)`, or a [`WaitError`] if the task was cancelled, if its runtime was shut down, or if the
/// wait itself is refused because the awaited work is less urgent. If the task panicked, the panic
/// is resumed in whoever waits.
///
/// Dropping a handle detaches: the task goes on, and its result is dropped when it ends.
/// Dropping a pending wait (`select`, a timeout) on `&mut handle` leaves the handle usable.
/// Any number of waiters: [`share`](Handle::share).
///
/// ```
/// let sum = urgency::spawn(async { (1..=10).sum::<u32>() });
/// assert_eq!(sum.get(), Ok(55));
/// ```
pub struct Handle<T: 'static> {
    /// Given up in `drop` only.
    task: ManuallyDrop<TaskRef>,
    result: PhantomData<T>,
}

// SAFETY: a shared handle gives no access to the result; the rest is atomic.
unsafe impl<T: Send> Sync for Handle<T> {}
impl<T> Unpin for Handle<T> {}
impl<T> UnwindSafe for Handle<T> {}
impl<T> RefUnwindSafe for Handle<T> {}

impl<T: 'static> Handle<T> {
    /// # Safety
    /// The caller gives away one reference and the one `HANDLE` of a task whose output is `T`.
    pub(super) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        Handle {
            // SAFETY: the reference is ours by the caller's promise.
            task: ManuallyDrop::new(unsafe { TaskRef::from_raw(header) }),
            result: PhantomData,
        }
    }

    /// The task itself.
    pub(crate) fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The result if the task has finished, without waiting. `None`: not yet.
    ///
    /// # Errors
    /// The task was cancelled or its runtime was shut down.
    ///
    /// # Panics
    /// With the panic of the task, if it panicked; and if the result was taken before.
    ///
    /// ```
    /// let mut job = urgency::spawn(async { 1 });
    /// let one = loop {
    ///     match job.try_get() {
    ///         Some(result) => break result.unwrap(),
    ///         None => std::thread::yield_now(), // or something useful
    ///     }
    /// };
    /// assert_eq!(one, 1);
    /// ```
    pub fn try_get(&mut self) -> Option<Result<T, WaitError>> {
        let seen = self.task.header().state.look();
        seen.is_completed()
            .then(|| self.finish_wait(seen.has_waiter()))
    }

    /// Whether the result is there: the task returned, panicked, or was cancelled.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Asks the task to end. Its future is dropped, by a worker, when the task next suspends or
    /// would next run; a waiter then gets [`WaitErrorKind::Cancelled`](crate::WaitErrorKind).
    /// A task that finishes first keeps its result; a closure that has started runs to its end.
    ///
    /// ```
    /// let endless = urgency::spawn(std::future::pending::<()>());
    /// endless.cancel();
    /// assert!(endless.get().is_err());
    /// ```
    pub fn cancel(&self) {
        self.task.cancel();
    }

    /// Lets the task go on without anybody to wait for it: the same as dropping the handle, said
    /// aloud.
    pub fn detach(self) {}

    /// Makes the task as urgent as the caller, and with it what it waits for, and so on. After
    /// that the caller may wait for it. Never makes anything less urgent.
    ///
    /// Levels of two runtimes cannot be compared, and a plain thread has none: called from outside of the task's
    /// runtime it changes nothing, and such a caller may wait for any task.
    pub fn boost(&self) {
        hooks::boost(&self.task);
    }

    /// The level at which the task runs now.
    pub fn level(&self) -> LevelId {
        self.task.level_id()
    }

    /// A handle that can be cloned and waited for by any number of waiters; each gets a clone of
    /// the result. They are woken in the order in which they began to wait.
    ///
    /// ```
    /// let config = urgency::spawn(async { String::from("verbose") }).share();
    /// let other = config.clone();
    /// assert_eq!(config.get().unwrap(), other.get().unwrap());
    /// ```
    #[cfg(not(urgency_loom))]
    pub fn share(self) -> Shared<T>
    where
        T: Clone + Send + Sync,
    {
        Shared::new(self)
    }

    /// As `poll` without a refusal, for a task that waits for nothing but a device. It becomes as urgent as
    /// the calling task, also where several tasks share a waker.
    #[cfg(not(urgency_loom))]
    pub(crate) fn poll_device(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, WaitError>> {
        let seen = self.task.header().state.look();
        if seen.is_completed() {
            return self.finish_poll(seen.has_waiter());
        }
        let is_registered = seen.has_waiter() && self.is_registered(cx.waker());
        if !is_registered && self.register(cx.waker()) {
            return self.finish_poll(seen.has_waiter());
        }
        hooks::waiting_for(&self.task, 0);
        Poll::Pending
    }

    /// Puts `waker` into the slot. `true`: the task is finished and the slot of no use.
    pub(super) fn register(&mut self, waker: &Waker) -> bool {
        let header = self.task.header();
        let new = waker.clone();
        let seen = header.state.look();
        if seen.is_completed() {
            return true;
        }
        let old = if seen.has_waiter() {
            if !header.state.unset_waiter() {
                return true;
            }
            // SAFETY: full, and ours again (rule 6); reading it out moves it.
            Some(
                header
                    .waiter
                    .with(|slot| unsafe { slot.read().assume_init() }),
            )
        } else {
            None
        };
        // SAFETY: the slot is ours while `WAITER` is clear (rule 6).
        header.waiter.with_mut(|slot| unsafe {
            (*slot).write(new);
        });
        let finished = !header.state.set_waiter();
        if finished {
            // SAFETY: the bit was not set, the waker is still ours.
            drop(
                header
                    .waiter
                    .with(|slot| unsafe { slot.read().assume_init() }),
            );
        }
        drop(old);
        finished
    }

    /// Step 2: the slot holds a waker for the same task as `waker`.
    fn is_registered(&self, waker: &Waker) -> bool {
        let slot = &self.task.header().waiter;
        // SAFETY: while `WAITER` is set nobody writes the slot. If the task completes meanwhile, the
        // waker inside may be used up, but only its pointers are compared. A new task at the address
        // of a used up one cannot deceive us: it would have seen `COMPLETED` in step 1.
        slot.with(|slot| unsafe { (*slot).assume_init_ref() }.will_wake(waker))
    }

    /// What the finished task left; `None` if it was taken before.
    pub(super) fn take_outcome(&mut self) -> Option<Outcome<T>> {
        let mut outcome: Option<Outcome<T>> = None;
        let take = self.task.header().vtable.take;
        // SAFETY: finished, so that the result is the handle's (rule 5); `T` is its type (`from_raw`).
        unsafe { take(self.task.as_raw(), (&raw mut outcome).cast()) };
        outcome
    }

    /// The task is finished: ends the wait, if there was one, and takes the result.
    fn finish_wait(&mut self, waited: bool) -> Result<T, WaitError> {
        if waited {
            hooks::waited_for(&self.task, 0);
        }
        hooks::took(&self.task);
        match self.take_outcome() {
            Some(Outcome::Finished(result)) => Ok(result),
            Some(Outcome::Panicked(payload)) => resume_unwind(payload.0),
            Some(Outcome::Abandoned(kind)) => Err(WaitError::new(kind)),
            None => panic!("a handle gives its result once, and this one has given it already"),
        }
    }
}

impl<T> Handle<T> {
    /// As [`Handle::finish_wait`], in a poll. A task that ends with its runtime is not told that the awaited one did.
    fn finish_poll(&mut self, waited: bool) -> Poll<Result<T, WaitError>> {
        let result = self.finish_wait(waited);
        if result.is_err() && hooks::ends_with_runtime(&self.task) {
            return Poll::Pending;
        }
        Poll::Ready(result)
    }
}

impl<T> Future for Handle<T> {
    type Output = Result<T, WaitError>;

    /// # Panics
    /// With the panic of the task, if it panicked; and if the result was taken before.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let seen = self.task.header().state.look();
        if seen.is_completed() {
            return self.finish_poll(seen.has_waiter());
        }
        if seen.has_waiter() && self.is_registered(cx.waker()) {
            return Poll::Pending;
        }
        hooks::may_wait(&self.task)?;
        if self.register(cx.waker()) {
            return self.finish_poll(seen.has_waiter());
        }
        hooks::waiting_for(&self.task, 0);
        Poll::Pending
    }
}

impl<T: 'static> Drop for Handle<T> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the field after it.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        let state = &task.header().state;
        let waited = state.look().has_waiter();
        if waited {
            hooks::waited_for(&task, 0);
        }
        match state.drop_handle() {
            Detach::Done => std::mem::forget(task),
            Detach::DropRef => drop(task),
            Detach::DropWaiter => {
                // SAFETY: the bit is cleared, so the waker inside is ours (rule 6).
                let waker = task
                    .header()
                    .waiter
                    .with(|slot| unsafe { slot.read().assume_init() });
                drop(task);
                drop(waker);
            }
            Detach::DropResult => {
                let mut outcome: Option<Outcome<T>> = None;
                let take = task.header().vtable.take;
                // SAFETY: as in `take_outcome`.
                unsafe { take(task.as_raw(), (&raw mut outcome).cast()) };
                // The reference first: the result's drop may panic.
                drop(task);
                drop(outcome);
            }
        }
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("level", &self.level())
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
