//! `LocalSet`: tasks that never leave their thread, so that their futures need not be `Send`.
//!
//! A local task is a task as any other (`tasks/`: its state word, handle, wakers), with the set's *queue* as its
//! scheduler. The queue may be reached from any thread: a wake-up and a cancellation push an entry. The *set* is not
//! `Send`, and it alone takes entries out. So
//!
//! 1. a local task is made, polled and dropped on the thread of its set, and on no other;
//! 2. code that polls the set ([`LocalSet::run_until`], or the set itself as a future) runs what was ready when its
//!    poll began, and then gives way, as a task does;
//! 3. each place that polls the set leaves a waker with the queue, and the next entry wakes them all. A place that ends
//!    takes its waker back: the set may be polled by several places, and none of them is the one that must go on;
//! 4. the set's end drops all futures, on its thread, before it closes the queue. From then on no task of it has a
//!    future, so an entry that comes late is dropped wherever it is pushed.
//!
//! A task inherits locals and the deadline of the code that spawns it. The deadline does not cancel it. Work of a set
//! is recorded as part of the task that polls the set.

use crate::{
    JoinHandle,
    inherit::{Inherited, inherited},
    runtime::Handle,
    sched::inherit::inheriting::run_as,
    scheduling_point,
    spawn::{as_local, carried::Within, try_id},
    sys::mutex::Mutex,
    tasks::{self, Caller, JoinErrorKind, LiveTasks, PanicPolicy, Schedule, TaskRef, contained},
};
use std::{
    cell::Cell,
    collections::VecDeque,
    future::{Future, poll_fn},
    marker::PhantomData,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// The scheduler of a set's tasks.
struct Queue {
    live: LiveTasks,
    ready: Mutex<Ready>,
}

#[derive(Default)]
struct Ready {
    entries: VecDeque<TaskRef>,
    /// Of the places that poll the set, with their numbers. Empty from the first entry until the next poll.
    wakers: Vec<(u64, Waker)>,
    /// Rule 4.
    closed: bool,
}

impl Ready {
    /// The waker of the place of this number. It may be the last reference to a task, so it is dropped outside of the
    /// lock.
    fn take_waker(&mut self, number: u64) -> Option<Waker> {
        let own = self.wakers.iter().position(|(of, _)| *of == number)?;
        Some(self.wakers.swap_remove(own).1)
    }
}

/// Code that waits for a local task is on the task's thread.
struct OnItsThread;

impl Caller for OnItsThread {
    fn may_wait(&self, awaited: &TaskRef) -> Result<(), JoinErrorKind> {
        match try_id() == Some(awaited.id()) {
            true => Err(JoinErrorKind::WaitsForItself),
            false => Ok(()),
        }
    }

    /// The result need not be `Send`.
    fn gives_handles_back(&self) -> bool {
        false
    }
}

impl Schedule for Queue {
    const CALLER: &'static dyn Caller = &OnItsThread;

    fn schedule(&self, task: TaskRef) {
        let (late, wakers) = {
            let mut ready = self.ready.lock();
            if ready.closed {
                (Some(task), Vec::new())
            } else {
                ready.entries.push_back(task);
                (None, std::mem::take(&mut ready.wakers))
            }
        };
        drop(late);
        // A panic of one must not keep the others from it.
        for (_, waker) in wakers {
            contained(|| waker.wake());
        }
    }

    fn released(&self, task: &TaskRef) {
        self.live.remove(task);
    }

    fn unheard(&self, task: &TaskRef) {
        PanicPolicy::propagate().unheard(task);
    }

    fn name_of(&self, _level: u8) -> &'static str {
        "local"
    }
}

thread_local! {
    /// The set of [`spawn_local`].
    static CURRENT: Cell<Option<Arc<Queue>>> = const { Cell::new(None) };
}

/// The queue of the calling code's set, if it has one.
fn current() -> Option<Arc<Queue>> {
    let clone = |current: &Cell<Option<Arc<Queue>>>| {
        let queue = current.take();
        current.set(queue.clone());
        queue
    };
    CURRENT.try_with(clone).ok().flatten()
}

/// Makes `queue` the one of [`spawn_local`], and gives the one before.
fn replace(queue: Option<Arc<Queue>>) -> Option<Arc<Queue>> {
    CURRENT
        .try_with(|current| current.replace(queue))
        .ok()
        .flatten()
}

/// Makes a task of `future` for the thread of `queue`'s set, which is the calling one.
fn spawn_on<F>(queue: &Arc<Queue>, future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    // SAFETY: the set, its guards and its polls have the queue, and none of them leaves the set's thread. That thread
    // alone takes entries out of the queue (rule 1), and the queue drops entries of ended tasks only (rule 4).
    let (task, handle) = unsafe {
        match inherited() {
            None => tasks::new_local(future, queue.clone(), 0),
            Some(inherited) => {
                let mut inherited = Inherited::clone(&inherited);
                inherited.recorded = None;
                tasks::new_local(Within::new(future, Arc::new(inherited)), queue.clone(), 0)
            }
        }
    };
    if queue.live.insert(&task, 0) {
        queue.schedule(task);
    } else {
        // The set has ended, and a guard is left of it.
        task.cancel();
        task.shut_down();
    }
    handle
}

/// Starts a task on the calling thread, in the [`LocalSet`] whose task or [`run_until`](LocalSet::run_until) calls
/// this, or in the [`LocalRuntime`](crate::runtime::LocalRuntime). The future need not be `Send`.
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use urgency::task::{LocalSet, spawn_local};
///
/// let count = Rc::new(Cell::new(0));
/// let theirs = count.clone();
/// urgency::block_on(LocalSet::new().run_until(async move {
///     spawn_local(async move { theirs.set(theirs.get() + 1) }).await.unwrap();
/// }));
/// assert_eq!(count.get(), 1);
/// ```
///
/// # Panics
///
/// Outside of both.
#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    match current() {
        Some(queue) => spawn_on(&queue, future),
        None => panic!(
            "`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`: call it in a task of \
             one of them, inside of `run_until` or `block_on`, or while a guard of `enter` lives"
        ),
    }
}

/// Tasks whose futures need not be `Send`: all of them run on the thread of the set, when the set is polled.
///
/// The set is polled by [`run_until`](Self::run_until), or as a future, which ends when all its tasks have. Both run on
/// the thread that made the set, inside [`block_on`](crate::block_on()) for instance. One poll runs what was ready when
/// it began. Dropping the set cancels its tasks.
///
/// Tasks of a set take turns on one thread. A task of it that waits by [`JoinHandle::get`] for another one of the same
/// set waits for ever; it awaits it instead. Work that can run elsewhere is spawned as usual, from inside as well.
///
/// ```
/// use std::rc::Rc;
/// use urgency::task::LocalSet;
///
/// let set = LocalSet::new();
/// let name = Rc::new("local");
/// let length = set.spawn_local(async move { name.len() }); // an `Rc` is not `Send`
/// urgency::block_on(set);
/// assert_eq!(length.get().unwrap(), 5);
/// ```
pub struct LocalSet {
    queue: Arc<Queue>,
    /// The number of the next place that polls; see `Place`.
    places: Cell<u64>,
    /// Neither `Send` nor `Sync` (rule 1).
    thread: PhantomData<*const ()>,
}

impl LocalSet {
    /// Without tasks.
    pub fn new() -> Self {
        let queue = Queue {
            live: LiveTasks::new(1),
            ready: Mutex::default(),
        };
        LocalSet {
            queue: Arc::new(queue),
            places: Cell::new(1),
            thread: PhantomData,
        }
    }

    /// Starts a task of the set. It runs when the set is polled.
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        spawn_on(&self.queue, future)
    }

    /// Polls `future`, and the set beside it, until `future` is ready. What it calls may [`spawn_local`].
    ///
    /// ```
    /// use urgency::{task::{LocalSet, spawn_local}, yield_now};
    ///
    /// let set = LocalSet::new();
    /// let three = urgency::block_on(set.run_until(async {
    ///     let one = spawn_local(async { 1 });
    ///     let two = spawn_local(async { yield_now().await; 2 });
    ///     one.await.unwrap() + two.await.unwrap()
    /// }));
    /// assert_eq!(three, 3);
    /// ```
    ///
    /// # Cancellation
    ///
    /// Dropping the future drops `future`. The set's tasks stay, and go on when the set is polled again.
    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let place = Place {
            number: self.places.replace(self.places.get() + 1),
            queue: &self.queue,
        };
        poll_fn(|cx| {
            {
                let _inside = self.enter();
                if let Poll::Ready(output) = future.as_mut().poll(cx) {
                    return Poll::Ready(output);
                }
            }
            self.run_ready(place.number, cx);
            Poll::Pending
        })
        .await
    }

    /// Waits on `runtime`, on the calling thread, until `future` is ready, and runs the set meanwhile.
    ///
    /// ```
    /// use urgency::{Runtime, task::{LocalSet, spawn_local}};
    ///
    /// let runtime = Runtime::builder().workers(2).build()?;
    /// let set = LocalSet::new();
    /// assert_eq!(set.block_on(&runtime, async { spawn_local(async { 2 }).await }).unwrap(), 2);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Handle::block_on`].
    pub fn block_on<F: Future>(&self, runtime: &Handle, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    /// Until the guard is dropped, [`spawn_local`] on this thread starts tasks of this set.
    ///
    /// ```
    /// use urgency::task::{LocalSet, spawn_local};
    ///
    /// let set = LocalSet::new();
    /// let guard = set.enter();
    /// let two = spawn_local(async { 2 });
    /// drop(guard);
    /// assert_eq!(urgency::block_on(set.run_until(two)).unwrap(), 2);
    /// ```
    pub fn enter(&self) -> LocalEnterGuard {
        LocalEnterGuard {
            queue: self.queue.clone(),
            before: replace(Some(self.queue.clone())),
            thread: PhantomData,
        }
    }

    /// Runs what is ready now, for the place of this number. Whatever comes later wakes it.
    fn run_ready(&self, number: u64, cx: &mut Context<'_>) {
        let (waker, count) = {
            let mut ready = self.queue.ready.lock();
            (ready.take_waker(number), ready.entries.len())
        };
        drop(waker);
        {
            let _inside = Inside(replace(Some(self.queue.clone())));
            run_as(None, || {
                for _ in 0..count {
                    let Some(task) = self.queue.ready.lock().entries.pop_front() else {
                        break; // A task has polled the set, too.
                    };
                    as_local(task.id(), || task.run());
                    scheduling_point();
                }
            });
        }
        let waker = cx.waker().clone();
        let mut ready = self.queue.ready.lock();
        if ready.entries.is_empty() {
            ready.wakers.push((number, waker));
        } else {
            drop(ready);
            waker.wake();
        }
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.run_ready(0, cx);
        if self.queue.live.len() == 0 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        run_as(None, || {
            for task in self.queue.live.close() {
                task.cancel();
                as_local(task.id(), || task.shut_down());
            }
        });
        let closed = Ready {
            closed: true,
            ..Ready::default()
        };
        let ended = std::mem::replace(&mut *self.queue.ready.lock(), closed);
        drop(ended);
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        LocalSet::new()
    }
}

debug_struct!(LocalSet, |it| live: it.queue.live.len());

/// One of the places that poll a set.
struct Place<'a> {
    number: u64,
    queue: &'a Queue,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let waker = self.queue.ready.lock().take_waker(self.number);
        drop(waker);
    }
}

/// A poll is inside its set, whatever guards its tasks keep.
struct Inside(Option<Arc<Queue>>);

impl Drop for Inside {
    fn drop(&mut self) {
        drop(replace(self.0.take()));
    }
}

/// The calling thread is inside a [`LocalSet`] until this is dropped; see [`LocalSet::enter`].
///
/// # Panics
///
/// The drop panics if a guard that was made later on this thread has not been dropped before. Then the thread is in no
/// set any more.
#[must_use = "the set is left when the guard is dropped"]
pub struct LocalEnterGuard {
    queue: Arc<Queue>,
    before: Option<Arc<Queue>>,
    thread: PhantomData<*const ()>,
}

impl Drop for LocalEnterGuard {
    fn drop(&mut self) {
        let inner = replace(self.before.take());
        let is_own = |inner: &Arc<Queue>| Arc::ptr_eq(inner, &self.queue);
        if inner.as_ref().is_some_and(is_own) {
            return;
        }
        drop(replace(None));
        assert!(
            inner.is_none() || std::thread::panicking(),
            "a guard of `LocalSet::enter` was dropped before one that was made later: drop them in the reverse of the \
             order in which they were made"
        );
    }
}

debug_struct!(LocalEnterGuard);
