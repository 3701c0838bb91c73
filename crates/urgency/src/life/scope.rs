//! `task_scope`: tasks that end before the code that started them goes on.
//!
//! The scope counts its tasks and knows each, in a slab. A task's future carries the task's place. When the future is
//! gone, whatever the reason, the place is given back, and the last place notifies. A task is noted in its place before
//! any worker can run it. If the scope is cancelled or over by then, the task is cancelled, too, and never runs.
//!
//! 1. The body returns: the scope waits for all.
//! 2. The body panics, or a task of the scope does: all are cancelled, the scope waits for them, and the panic goes on.
//!    The body of a scope one of whose tasks panicked is dropped: it may wait for what that task would have done. Nor
//!    is it polled again: it would find the siblings cancelled, and a panic of its own would hide the cause.
//! 3. The scope's own future is dropped: all tasks are cancelled, and nothing waits for them.
//!
//! *Rejected*: waiting in case 3, which could be done by suspending the stack that drops. A wave of
//! cancellations would then need a thread for each scope, at the very moment when there is too much work
//! already. So tasks are `'static`, and what they share is counted.

use super::{
    held::Held,
    members::{Members, Waits},
};
use crate::{
    JoinHandle, LevelId,
    sched::doors::caller::is_shut,
    spawn::{At, at},
    sync::Notify,
    sys::{mutex::Mutex, slab::Slab},
    tasks::{TaskRef, message_of},
};
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

/// How a panic goes on whose value is no text.
const NO_TEXT: &str = " with a value that is no text";

#[derive(Default)]
struct Inner {
    tasks: Mutex<Tasks>,
    /// The last task has ended, or one has panicked.
    ended: Notify,
    panicked: AtomicBool,
    /// How the panic of the first task goes on that panicked in a poll or call. The value goes to the task's handle.
    said: Mutex<Option<String>>,
}

#[derive(Default)]
struct Tasks {
    /// `None`: the task is being made.
    places: Slab<Option<TaskRef>>,
    live: usize,
    /// New tasks are cancelled at once: the scope was cancelled, or is over.
    cancelled: bool,
    /// No code waits for the scope any more.
    abandoned: bool,
}

impl Members for Inner {
    fn members(&self) -> Vec<TaskRef> {
        self.tasks.lock().places.iter().flatten().cloned().collect()
    }
}

impl Inner {
    fn reserve(self: &Arc<Self>) -> Ticket {
        let mut tasks = self.tasks.lock();
        tasks.live += 1;
        Ticket {
            inner: self.clone(),
            place: tasks.places.insert(None),
        }
    }

    /// The task of a reserved place is `task`, which nobody can run yet.
    fn note(&self, place: u64, task: &TaskRef) {
        let cancelled = {
            let mut tasks = self.tasks.lock();
            *tasks
                .places
                .get_mut(place)
                .expect("its ticket is in the task") = Some(task.clone());
            tasks.cancelled
        };
        if cancelled {
            task.cancel();
        }
    }

    fn cancel(&self) {
        self.tasks.lock().cancelled = true;
        self.members().iter().for_each(TaskRef::cancel);
    }

    async fn one_panicked(&self) {
        let panicked = || self.panicked.load(Ordering::Acquire).then_some(());
        self.ended.until(panicked).await;
    }

    async fn all_ended(self: &Arc<Self>) {
        let _waits = Waits::begin(|| self.clone());
        let none_left = || {
            let mut tasks = self.tasks.lock();
            // Somebody may have a clone of the scope, and nobody waits any more.
            tasks.cancelled |= tasks.live == 0;
            (tasks.live == 0).then_some(())
        };
        self.ended.until(none_left).await;
    }
}

/// In each task's future: gives its place back.
struct Ticket {
    inner: Arc<Inner>,
    place: u64,
}

impl Ticket {
    /// The task panicked with this value.
    fn saw(&self, payload: &(dyn Any + Send)) {
        let text = message_of(payload);
        let text = text.map_or_else(|| NO_TEXT.into(), |text| format!(": {text}"));
        let tasks = self.inner.tasks.lock();
        if tasks.abandoned {
            return;
        }
        let mut said = self.inner.said.lock();
        if said.is_none() {
            *said = Some(text);
            let task = tasks.places.get(self.place);
            let task = task.and_then(Option::as_ref);
            task.expect("it runs, so it was noted").panic_is_heard();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // What comes later finds the scope cancelled. The end of a runtime unwinds tasks, too.
        let is_first_panic = std::thread::panicking()
            && !is_shut()
            && !self.inner.panicked.swap(true, Ordering::AcqRel);
        let (last, task) = {
            let mut tasks = self.inner.tasks.lock();
            tasks.live -= 1;
            (tasks.live == 0, tasks.places.remove(self.place))
        };
        drop(task);
        if is_first_panic {
            self.inner.cancel();
        }
        if is_first_panic || last {
            self.inner.ended.notify_waiters();
        }
    }
}

/// The tasks of a [`task_scope`]; clones are the same scope, so a task can spawn siblings.
#[derive(Clone)]
pub struct TaskScope {
    inner: Arc<Inner>,
    /// Where it spawns; `None`: at the level of the code that calls.
    at: Option<At>,
}

impl TaskScope {
    /// The same scope, whose tasks start at a level of the calling code's runtime.
    ///
    /// ```
    /// use urgency::{Runtime, current_level, levels, life::task_scope};
    ///
    /// levels! { App: Interactive > Batch }
    ///
    /// let runtime = Runtime::builder().levels::<App>().build()?;
    /// let ended = runtime.block_on(task_scope(async |scope| {
    ///     scope.at(Batch).spawn(async { current_level() })
    /// }));
    /// assert_eq!(ended.get().unwrap(), Batch.id());
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the current runtime has no such level.
    #[track_caller]
    pub fn at(&self, level: impl Into<LevelId>) -> TaskScope {
        TaskScope {
            inner: self.inner.clone(),
            at: Some(at(level)),
        }
    }

    /// As [`spawn`](crate::spawn()), a task of the scope. Its handle may be dropped. If the scope was cancelled, or
    /// is over, the task is cancelled before it runs.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let ticket = self.inner.reserve();
        let place = ticket.place;
        let future = Held::new(future, ticket).run_seen(Ticket::saw);
        let note = |task: &TaskRef| self.inner.note(place, task);
        self.place().spawn_noted(future, note)
    }

    /// As [`spawn_fn`](crate::spawn_fn()), a task of the scope. Once it has started it runs to its end.
    pub fn spawn_fn<F, T>(&self, closure: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let ticket = self.inner.reserve();
        let place = ticket.place;
        let held = Held::new(closure, ticket);
        let note = |task: &TaskRef| self.inner.note(place, task);
        self.place()
            .spawn_fn_noted(move || held.call_seen(Ticket::saw), note)
    }

    fn place(&self) -> At {
        self.at.clone().unwrap_or_else(At::here)
    }

    /// Cancels all tasks of the scope, and the tasks that are spawned in it later.
    ///
    /// ```
    /// use urgency::life::task_scope;
    ///
    /// urgency::block_on(task_scope(async |scope| {
    ///     scope.spawn(std::future::pending::<()>()).detach();
    ///     scope.cancel(); // without it the scope would wait for ever
    /// }));
    /// ```
    pub fn cancel(&self) {
        self.inner.cancel();
    }

    /// How many tasks of the scope are not over.
    pub fn live(&self) -> usize {
        self.inner.tasks.lock().live
    }
}

debug_struct!(TaskScope, |it| live: it.live());

/// Case 3.
struct Owner(Option<TaskScope>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(scope) = &self.0 {
            scope.inner.tasks.lock().abandoned = true;
            scope.cancel();
        }
    }
}

/// Runs `body`, which may spawn tasks, and waits until all of them are over: none outlives the scope, unless
/// the scope itself is dropped.
///
/// # Panics
///
/// If `body` panics, with its panic; if a task of the scope does, with a panic that says so, and what the first of
/// them said. The other tasks are cancelled, and awaited, before. When a task panics, `body` is dropped at the wait in
/// which it is then, or at its next one. The first panic counts: a `body` that panics after a task, since it has found
/// another one cancelled, does not hide the cause.
///
/// # Cancellation
///
/// Dropping the future cancels all tasks of the scope. They end at their next scheduling points; nobody waits for that.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
/// use urgency::life::task_scope;
///
/// let sum = Arc::new(AtomicU32::new(0));
/// let theirs = sum.clone();
/// urgency::block_on(task_scope(async move |scope| {
///     for n in 1..=10 {
///         let sum = theirs.clone();
///         scope.spawn(async move { sum.fetch_add(n, Relaxed) });
///     }
/// }));
/// assert_eq!(sum.load(Relaxed), 55);
/// ```
pub async fn task_scope<R>(body: impl AsyncFnOnce(TaskScope) -> R) -> R {
    let scope = TaskScope {
        inner: Arc::default(),
        at: None,
    };
    let mut owner = Owner(Some(scope.clone()));
    let result = {
        // The call itself is inside, too: it may spawn and then panic before there is a future.
        let mut body = Box::pin(async { body(scope.clone()).await });
        let mut one_panicked = pin!(scope.inner.one_panicked());
        let has_panicked = || scope.inner.panicked.load(Ordering::Acquire);
        poll_fn(|cx| {
            if has_panicked() {
                return Poll::Ready(Ok(None));
            }
            let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx)));
            match polled {
                Ok(Poll::Ready(result)) => Poll::Ready(Ok(Some(result))),
                Ok(Poll::Pending) => one_panicked.as_mut().poll(cx).map(|()| Ok(None)),
                // It may have met a sibling that was cancelled for that.
                Err(_) if has_panicked() => Poll::Ready(Ok(None)),
                Err(panic) => Poll::Ready(Err(panic)),
            }
        })
        .await
    };
    // The body is gone, and with it what its tasks may wait for.
    if result.is_err() {
        scope.cancel();
    }
    scope.inner.all_ended().await;
    owner.0 = None;
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(Some(result)) if !scope.inner.panicked.load(Ordering::Acquire) => result,
        Ok(_) => {
            let said = scope.inner.said.lock().take();
            let said = said.unwrap_or_else(|| NO_TEXT.into());
            panic!("a task of the scope panicked{said}");
        }
    }
}
