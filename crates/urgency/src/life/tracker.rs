//! `TaskTracker`: the end of a number of tasks whose results nobody needs.
//!
//! One word counts the tokens, in twos, and has the bit `CLOSED`. A wait ends when the word is exactly `CLOSED`: the
//! tracker is closed and nothing is tracked. The step that makes the word so notifies all that wait, and a waiter
//! registers before it looks at the word, so no end is missed.
//!
//! It has no loom model: each step is one read-modify-write of that word, whose result tells the step's own thread
//! whether it ended anything. And what registers and notifies has models (`sync/notify.rs`).

use super::{LocalSet, held::Held, spawn_local};
use crate::{
    JoinHandle,
    runtime::Handle,
    sync::{Notified, Notify},
};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

const CLOSED: usize = 1;
const ONE: usize = 2;

#[derive(Default)]
struct Inner {
    state: AtomicUsize,
    over: Notify,
}

impl Inner {
    fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) == CLOSED
    }

    /// The word is `now`.
    fn changed(&self, now: usize) {
        if now == CLOSED {
            self.over.notify_waiters();
        }
    }
}

/// Counts tasks, and lets others wait until all have ended: for a shutdown that lets the tasks finish, together with a
/// [`CancellationToken`](crate::life::CancellationToken). Clones are the same tracker.
///
/// Unlike a [`JoinSet`](crate::task::JoinSet) it keeps no results: a task that has ended takes no memory. Dropping a
/// tracker ends nothing. [`task_scope`](crate::life::task_scope) is the form that also cancels.
///
/// ```
/// use urgency::{life::CancellationToken, task::TaskTracker};
///
/// let (tracker, token) = (TaskTracker::new(), CancellationToken::new());
/// for _ in 0..10 {
///     tracker.spawn(token.clone().cancelled_owned());
/// }
/// token.cancel();
/// tracker.close();
/// urgency::block_on(tracker.wait());
/// assert!(tracker.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct TaskTracker {
    inner: Arc<Inner>,
}

impl TaskTracker {
    /// Open, without tasks.
    pub fn new() -> Self {
        TaskTracker::default()
    }

    /// As [`spawn`](crate::spawn), and tracked until the task's future is gone.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        crate::spawn(self.track_future(future))
    }

    /// As [`spawn_fn`](crate::spawn_fn), and tracked until the closure is gone.
    ///
    /// ```
    /// let tracker = urgency::task::TaskTracker::new();
    /// let sum = tracker.spawn_fn(|| urgency::join(|| 1, || 2));
    /// tracker.close();
    /// urgency::block_on(tracker.wait());
    /// assert_eq!(sum.get().unwrap(), (1, 2));
    /// ```
    pub fn spawn_fn<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let held = Held::new(closure, self.token());
        crate::spawn_fn(move || held.call())
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), and tracked until the closure is gone.
    pub fn spawn_blocking<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let held = Held::new(closure, self.token());
        crate::spawn::spawn_blocking(move || held.call())
    }

    /// As [`Handle::spawn`], and tracked until the task's future is gone.
    pub fn spawn_on<F>(&self, future: F, runtime: &Handle) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        runtime.spawn(self.track_future(future))
    }

    /// As [`Handle::spawn_blocking`], and tracked until the closure is gone.
    pub fn spawn_blocking_on<F, T>(&self, closure: F, runtime: &Handle) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let held = Held::new(closure, self.token());
        runtime.spawn_blocking(move || held.call())
    }

    /// As [`spawn_local`], and tracked until the task's future is gone.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use urgency::task::{LocalSet, TaskTracker};
    ///
    /// let (local, tracker) = (LocalSet::new(), TaskTracker::new());
    /// let sum = urgency::block_on(local.run_until(async {
    ///     let (one, two) = (Rc::new(1), Rc::new(2));
    ///     let one = tracker.spawn_local(async move { *one });
    ///     let two = tracker.spawn_local_on(async move { *two }, &local);
    ///     tracker.close();
    ///     tracker.wait().await;
    ///     one.await.unwrap() + two.await.unwrap()
    /// }));
    /// assert_eq!(sum, 3);
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet`.
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn_local(self.track_future(future))
    }

    /// As [`TaskTracker::spawn_local`], in that set of tasks.
    pub fn spawn_local_on<F>(&self, future: F, local: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        local.spawn_local(self.track_future(future))
    }

    /// Whether both are the same tracker.
    pub fn ptr_eq(left: &TaskTracker, right: &TaskTracker) -> bool {
        Arc::ptr_eq(&left.inner, &right.inner)
    }

    /// `future`, tracked until it is dropped, wherever it is spawned or awaited.
    ///
    /// ```
    /// let tracker = urgency::task::TaskTracker::new();
    /// let tracked = urgency::spawn(tracker.track_future(async { 1 }));
    /// tracker.close();
    /// urgency::block_on(tracker.wait());
    /// assert_eq!(tracked.get().unwrap(), 1);
    /// assert!(tracker.reopen());
    /// ```
    pub fn track_future<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        Held::new(future, self.token()).run()
    }

    /// Tracks something until the token is dropped.
    pub fn token(&self) -> TaskTrackerToken {
        self.inner.state.fetch_add(ONE, Ordering::Relaxed);
        TaskTrackerToken {
            tracker: self.clone(),
        }
    }

    /// Lets [`wait`](Self::wait) end once nothing is tracked. What is spawned after that is tracked too. Whether it was
    /// open before.
    pub fn close(&self) -> bool {
        let before = self.inner.state.fetch_or(CLOSED, Ordering::AcqRel);
        self.inner.changed(before | CLOSED);
        before & CLOSED == 0
    }

    /// Keeps [`wait`](Self::wait) from ending until it is closed again. Whether it was closed before.
    pub fn reopen(&self) -> bool {
        self.inner.state.fetch_and(!CLOSED, Ordering::AcqRel) & CLOSED != 0
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// How many tasks and tokens are tracked.
    pub fn len(&self) -> usize {
        self.inner.state.load(Ordering::Acquire) / ONE
    }

    /// Whether nothing is tracked.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the tracker is closed and nothing is tracked, both at one moment from this call on, whatever comes
    /// before the future is polled.
    ///
    /// # Cancellation
    ///
    /// Dropping the future costs nothing.
    pub fn wait(&self) -> TaskTrackerWait<'_> {
        TaskTrackerWait {
            over: self.inner.over.notified(),
            is_over: self.inner.is_over(),
            inner: &self.inner,
        }
    }
}

debug_struct!(TaskTracker, |it| len: it.len(), is_closed: it.is_closed());

/// Tracks something until it is dropped; made by [`TaskTracker::token`].
#[derive(Debug)]
#[must_use = "it tracks until it is dropped"]
pub struct TaskTrackerToken {
    tracker: TaskTracker,
}

impl TaskTrackerToken {
    /// The tracker.
    pub fn task_tracker(&self) -> &TaskTracker {
        &self.tracker
    }
}

impl Clone for TaskTrackerToken {
    /// One more that is tracked.
    fn clone(&self) -> Self {
        self.tracker.token()
    }
}

impl Drop for TaskTrackerToken {
    fn drop(&mut self) {
        let inner = &self.tracker.inner;
        let before = inner.state.fetch_sub(ONE, Ordering::AcqRel);
        inner.changed(before - ONE);
    }
}

/// The future of [`TaskTracker::wait`].
#[must_use = "futures do nothing unless awaited"]
pub struct TaskTrackerWait<'a> {
    /// Made before the word is looked at.
    over: Notified<'a>,
    /// The word said so when the wait began.
    is_over: bool,
    inner: &'a Inner,
}

impl Future for TaskTrackerWait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_over || self.inner.is_over() {
            return Poll::Ready(());
        }
        Pin::new(&mut self.over).poll(cx)
    }
}

debug_struct!(TaskTrackerWait<'_>);
