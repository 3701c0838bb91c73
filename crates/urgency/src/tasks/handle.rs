//! `JoinHandle<T>`: the right to the result of a task, once. A panic is a result: the error has it as a value.
//!
//! A handle is a future, so it is awaited in async code; in closures `get` blocks instead. It has
//! one owner, which is what makes the waiter slot of the task a plain slot: only the handle
//! writes it, under the bit `WAITER` (state.rs, rule 6). Many waiters share a handle (shared.rs).
//!
//! # A poll
//!
//! 1. Finished? Take the result.
//! 2. The slot holds this very waker? Nothing to do.
//! 3. Otherwise this is the first poll by this waiter: `may_wait` may refuse (inversion, a
//!    task that waits for itself; hooks.rs). Then the task goes to the error, as a [`Right`], and the handle is
//!    empty: its wait is over, as after any other result.
//! 4. Take the slot back, put a clone of the waker in, set `WAITER`. If the task finished
//!    meanwhile, either step fails and the result is taken.
//! 5. `waiting_for` notes that the calling task waits for this one (boost.rs).
//!
//! Code of any level may wait for a task that itself waits for a device and not for the program
//! ([`poll_device`](JoinHandle::poll_device)): the wait is not refused, and the task becomes as urgent as each of its
//! waiters.
//!
//! A waker's clone and drop may be the program's code, and may panic. So the clone is made before step 4 and the old
//! waker is dropped after it: the slot is never half done.
//!
//! Locked instructions: a wait costs 1 beside the clone of the waker, taking the result none, the
//! last reference none, a detach 1.

#[cfg(not(urgency_loom))]
use super::shared::Shared;
use super::{
    AbortHandle, Header, Id, TaskRef, hooks,
    join_error::{JoinError, JoinErrorKind},
    state::Detach,
};
use crate::rank::LevelId;
use std::{
    any::TypeId,
    future::Future,
    marker::PhantomData,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, Waker},
};

/// The result of a task, to be waited for once, anywhere: what `fut-create` returns and `get` takes
/// in the papers (Prompt I-Cilk, section 2).
///
/// Awaiting the handle (it is a future) or calling [`get`](JoinHandle::get) waits and gives
/// `Ok(result)`, or a [`JoinError`]: the task panicked, was cancelled, its runtime was shut down, or the
/// wait itself is refused because the awaited work is less urgent. A panic does not unwind the code that waits;
/// `std::panic::resume_unwind(error.into_panic())` lets it.
///
/// Dropping a handle detaches: the task goes on, and its result is dropped when it ends.
/// Dropping a pending wait (`select`, a timeout) on `&mut handle` leaves the handle usable. A refused one leaves it
/// empty: all its methods panic, and [`JoinError::into_handle`] gives the handle back.
/// Any number of waiters: [`share`](JoinHandle::share).
///
/// ```
/// let sum = urgency::spawn(async { (1..=10).sum::<u32>() });
/// assert_eq!(sum.get().unwrap(), 55);
///
/// // A supervisor outlives what it supervises.
/// urgency::block_on(async {
///     let error = urgency::spawn(async { panic!("once") }).await.unwrap_err();
///     assert!(error.is_panic());
/// });
/// ```
pub struct JoinHandle<T> {
    /// `None`: the error of a wait that was refused has it.
    task: Option<TaskRef>,
    result: PhantomData<T>,
}

// SAFETY: a shared handle gives no access to the result; the rest is atomic.
unsafe impl<T: Send> Sync for JoinHandle<T> {}
impl<T> Unpin for JoinHandle<T> {}
impl<T> UnwindSafe for JoinHandle<T> {}
impl<T> RefUnwindSafe for JoinHandle<T> {}

/// A reference to a task and its one `HANDLE`, without the type of the result: a handle inside of an error.
///
/// It may be dropped on any thread, and the result with it. It is made for the tasks of a runtime only
/// (`Caller::gives_handles_back`), and their results are `Send` ([`super::new`]).
pub(super) struct Right {
    /// Given up in `drop` and `into_handle` only.
    task: ManuallyDrop<TaskRef>,
}

impl Right {
    /// The handle again.
    ///
    /// # Errors
    /// The right itself, if the task's result is no `T`.
    pub(super) fn into_handle<T: 'static>(self) -> Result<JoinHandle<T>, Self> {
        if (self.task.header().vtable.output)() != TypeId::of::<T>() {
            return Err(self);
        }
        let raw = ManuallyDrop::new(self).task.as_raw();
        // SAFETY: the reference and the `HANDLE` are moved, not dropped; the type is the type of the output.
        Ok(unsafe { JoinHandle::from_raw(raw) })
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and nothing uses the field after it.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        give_up(task, |task| {
            // SAFETY: finished, and the result is ours (rule 5); the vtable is the cell's.
            unsafe { (task.header().vtable.discard)(task.as_raw()) };
        });
    }
}

/// Gives up the reference and the `HANDLE` of a task. `drop_result` drops the result, if it is there, and the
/// reference.
fn give_up(task: TaskRef, drop_result: impl FnOnce(TaskRef)) {
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
            let waker = unsafe { task.header().waiter.take() };
            drop(task);
            drop(waker);
        }
        Detach::DropResult => drop_result(task),
    }
}

impl<T> JoinHandle<T> {
    /// # Safety
    /// The caller gives away one reference and the one `HANDLE` of a task whose output is `T`.
    pub(super) unsafe fn from_raw(header: NonNull<Header>) -> Self {
        JoinHandle {
            // SAFETY: the reference is ours by the caller's promise.
            task: Some(unsafe { TaskRef::from_raw(header) }),
            result: PhantomData,
        }
    }

    /// The task itself.
    ///
    /// # Panics
    /// If an error has it.
    pub(crate) fn task(&self) -> &TaskRef {
        self.task.as_ref().expect(
            "the wait for this handle was refused, and the error has the handle: take it by `JoinError::into_handle`",
        )
    }

    /// The result if the task has finished, without waiting. `None`: not yet.
    ///
    /// # Errors
    /// The task panicked, was cancelled, or its runtime was shut down.
    ///
    /// # Panics
    /// If the result was taken before, or an error has it.
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
    pub fn try_get(&mut self) -> Option<Result<T, JoinError>> {
        let seen = self.task().header().state.look();
        seen.is_completed()
            .then(|| self.finish_wait(seen.has_waiter()))
    }

    /// Whether the result is there: the task returned, panicked, or was cancelled.
    pub fn is_finished(&self) -> bool {
        self.task().is_finished()
    }

    /// Asks the task to end. Its future is dropped, by a worker, when the task next suspends or
    /// would next run; a waiter then gets [`JoinErrorKind::Cancelled`](crate::JoinErrorKind).
    /// A task that finishes first keeps its result; a closure that has started runs to its end.
    ///
    /// ```
    /// let endless = urgency::spawn(std::future::pending::<()>());
    /// endless.abort();
    /// assert!(endless.get().unwrap_err().is_cancelled());
    /// ```
    pub fn abort(&self) {
        self.task().cancel();
    }

    /// The right to [abort](Self::abort) the task, for others; it can be cloned.
    ///
    /// ```
    /// let endless = urgency::spawn(std::future::pending::<()>());
    /// let watchdog = endless.abort_handle();
    /// std::thread::spawn(move || watchdog.abort());
    /// assert!(endless.get().unwrap_err().is_cancelled());
    /// ```
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle::new(self.task().clone())
    }

    /// The name of the task, among all that run now.
    pub fn id(&self) -> Id {
        self.task().id()
    }

    /// Lets the task go on without a waiter: the same as dropping the handle, said aloud.
    ///
    /// ```
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// urgency::spawn_fn(move || sender.send("saved")).detach();
    /// assert_eq!(receiver.recv(), Ok("saved"));
    /// ```
    pub fn detach(self) {}

    /// Makes the task as urgent as the caller, and with it what it waits for, and so on. After
    /// that the caller may wait for it. Never makes anything less urgent.
    ///
    /// Levels of two runtimes cannot be compared, and a plain thread has none: called from outside of the task's
    /// runtime it changes nothing, and such a caller may wait for any task.
    pub fn boost(&self) {
        hooks::boost(self.task());
    }

    /// The level at which the task runs now.
    pub fn level(&self) -> LevelId {
        self.task().level_id()
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
    pub(crate) fn poll_device(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, JoinError>> {
        let seen = self.task().header().state.look();
        if seen.is_completed() {
            return self.finish_poll(seen.has_waiter());
        }
        let is_registered = seen.has_waiter() && self.is_registered(cx.waker());
        if !is_registered && self.register(cx.waker()) {
            return self.finish_poll(seen.has_waiter());
        }
        hooks::waiting_for(self.task(), 0);
        Poll::Pending
    }

    /// Puts `waker` into the slot. `true`: the task is finished and the slot of no use.
    pub(crate) fn register(&mut self, waker: &Waker) -> bool {
        let header = self.task().header();
        let new = waker.clone();
        let seen = header.state.look();
        if seen.is_completed() {
            return true;
        }
        let old = if seen.has_waiter() {
            if !header.state.unset_waiter() {
                return true;
            }
            // SAFETY: full, and ours again (rule 6).
            Some(unsafe { header.waiter.take() })
        } else {
            None
        };
        // SAFETY: the slot is ours while `WAITER` is clear (rule 6).
        unsafe { header.waiter.put(new) };
        let finished = !header.state.set_waiter();
        if finished {
            // SAFETY: the bit was not set, the waker is still ours.
            drop(unsafe { header.waiter.take() });
        }
        drop(old);
        finished
    }

    /// Step 2: the slot holds a waker for the same task as `waker`.
    fn is_registered(&self, waker: &Waker) -> bool {
        let slot = &self.task().header().waiter;
        // SAFETY: while `WAITER` is set no thread writes the slot. If the task completes meanwhile, the waker inside
        // may be used up, but only its pointers are compared. A new task at the address of a used up one cannot deceive
        // us: it would have seen `COMPLETED` in step 1.
        unsafe { slot.holds(waker) }
    }

    /// What the finished task left; `None` if it was taken before.
    pub(super) fn take_result(&mut self) -> Option<Result<T, JoinError>> {
        let mut result: Option<Result<T, JoinError>> = None;
        let take = self.task().header().vtable.take;
        // SAFETY: finished, so that the result is the handle's (rule 5); `T` is its type (`from_raw`).
        unsafe { take(self.task().as_raw(), (&raw mut result).cast()) };
        result
    }

    /// The task is finished: ends the wait, if there was one, and takes the result.
    fn finish_wait(&mut self, waited: bool) -> Result<T, JoinError> {
        if waited {
            hooks::waited_for(self.task(), 0);
        }
        hooks::took(self.task());
        self.take_result().unwrap_or_else(|| {
            // A poll before this one took it, and did not tell a task that ends with its runtime.
            assert!(
                hooks::ends_with_runtime(self.task()),
                "a handle gives its result once, and this one has given it already"
            );
            Err(JoinError::shut_down(self.id()))
        })
    }
}

impl<T> JoinHandle<T> {
    /// As [`JoinHandle::finish_wait`], in a poll. A task that ends with its runtime is not told that the awaited one
    /// did.
    fn finish_poll(&mut self, waited: bool) -> Poll<Result<T, JoinError>> {
        let result = self.finish_wait(waited);
        if result.as_ref().is_err_and(JoinError::is_cancelled)
            && hooks::ends_with_runtime(self.task())
        {
            return Poll::Pending;
        }
        Poll::Ready(result)
    }

    /// The wait may not be.
    #[cold]
    fn refuse(&mut self, kind: JoinErrorKind) -> JoinError {
        let id = self.id();
        if !hooks::gives_handle_back(self.task()) {
            return JoinError::refused(id, kind, None);
        }
        let right = self.task.take().map(|task| Right {
            task: ManuallyDrop::new(task),
        });
        JoinError::refused(id, kind, right)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    /// # Panics
    /// If the result was taken before, or an error has it.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let seen = self.task().header().state.look();
        if seen.is_completed() {
            return self.finish_poll(seen.has_waiter());
        }
        if seen.has_waiter() && self.is_registered(cx.waker()) {
            return Poll::Pending;
        }
        if let Err(kind) = hooks::may_wait(self.task()) {
            return Poll::Ready(Err(self.refuse(kind)));
        }
        if self.register(cx.waker()) {
            return self.finish_poll(seen.has_waiter());
        }
        hooks::waiting_for(self.task(), 0);
        Poll::Pending
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else {
            return;
        };
        give_up(task, |task| {
            let mut result: Option<Result<T, JoinError>> = None;
            let take = task.header().vtable.take;
            // SAFETY: as in `take_result`.
            unsafe { take(task.as_raw(), (&raw mut result).cast()) };
            if matches!(&result, Some(Err(error)) if error.is_panic()) {
                // SAFETY: the vtable is the cell's.
                unsafe { (task.header().vtable.unheard)(&task) };
            }
            // The reference first: the result's drop may panic.
            drop(task);
            drop(result);
        });
    }
}

debug_struct!(
    [T] JoinHandle<T>,
    |it| id: it.task.as_ref().map(TaskRef::id), level: it.task.as_ref().map(TaskRef::level_id),
    finished: it.task.as_ref().map(TaskRef::is_finished)
);
