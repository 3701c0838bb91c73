//! `JoinSet`: a number of tasks whose results are taken as they end.
//!
//! A task of the set carries a *bell*: it is dropped with the task's future, whether that returned, panicked or was
//! cancelled, and leaves the task's number in the set's queue. So the set knows which handle to ask, and asks it when
//! the task has nothing left to wait for.
//!
//! Unlike a [`task_scope`](super::task_scope) the set cancels nothing when a task panics: the panic is that task's
//! result.

use super::{
    LocalSet,
    held::Held,
    members::{Members, Waits},
    spawn_local,
};
use crate::{
    runtime::Handle,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    sys::{mutex::Mutex, slab::Slab},
    tasks::{AbortHandle, Id, JoinError, JoinHandle, TaskRef},
};
use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    sync::Arc,
    task::{Context, Poll, ready},
};

mod at;

pub use at::JoinSetAt;

/// Tasks whose results are taken in the order in which they end.
///
/// Dropping the set cancels them all.
///
/// ```
/// use urgency::task::JoinSet;
///
/// urgency::block_on(async {
///     let mut tasks = JoinSet::new();
///     for n in 0..3 {
///         tasks.spawn(async move { if n == 1 { panic!("one") } else { n } });
///     }
///     let (mut sum, mut panics) = (0, 0);
///     while let Some(result) = tasks.join_next().await {
///         match result {
///             Ok(n) => sum += n,
///             Err(error) => panics += u32::from(error.is_panic()),
///         }
///     }
///     assert_eq!((sum, panics), (2, 1));
/// });
/// ```
pub struct JoinSet<T> {
    /// By their numbers. `None`: the task is not spawned yet, or could not be.
    tasks: Slab<Option<JoinHandle<T>>>,
    /// How many of them are spawned.
    count: usize,
    /// A task whose future is gone, and whose result is taken next.
    ending: Option<JoinHandle<T>>,
    /// The number of the bell that was made last.
    newest: u64,
    ended: UnboundedReceiver<u64>,
    bell: UnboundedSender<u64>,
    /// The tasks for a task that waits for them and may be raised; made when the first such task waits.
    noted: Option<Arc<Noted>>,
    /// Until the next result, also if the future that waited is dropped: at worst the tasks are raised for nothing.
    waits: Option<Waits>,
}

/// Tasks by their numbers in the set.
struct Noted(Mutex<HashMap<u64, TaskRef>>);

impl Members for Noted {
    fn members(&self) -> Vec<TaskRef> {
        self.0.lock().values().cloned().collect()
    }
}

/// See the module's text.
struct Bell {
    number: u64,
    ended: UnboundedSender<u64>,
}

impl Drop for Bell {
    fn drop(&mut self) {
        // An error: the set is gone, and nobody wants to know.
        let _ = self.ended.send(self.number);
    }
}

impl<T> JoinSet<T> {
    /// Without tasks.
    pub fn new() -> Self {
        let (bell, ended) = mpsc::unbounded_channel();
        JoinSet {
            tasks: Slab::new(),
            count: 0,
            ending: None,
            newest: 0,
            ended,
            bell,
            noted: None,
            waits: None,
        }
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// As [`spawn`](crate::spawn), as a task of the set.
    pub fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        self.here().spawn(future)
    }

    /// As [`spawn_fn`](crate::spawn_fn), as a task of the set.
    pub fn spawn_fn(&mut self, closure: impl FnOnce() -> T + Send + 'static) -> AbortHandle {
        self.here().spawn_fn(closure)
    }

    /// As [`spawn_blocking`](crate::task::spawn_blocking), as a task of the set.
    pub fn spawn_blocking(&mut self, closure: impl FnOnce() -> T + Send + 'static) -> AbortHandle {
        self.spawn_fn(move || crate::blocking(closure))
    }

    /// As [`Handle::spawn`], as a task of the set: it runs on that runtime.
    pub fn spawn_on(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
        runtime: &Handle,
    ) -> AbortHandle {
        let held = Held::new(future, self.bell());
        self.add(runtime.spawn(held.run()))
    }

    /// As [`Handle::spawn_blocking`], as a task of the set: it runs on that runtime.
    pub fn spawn_blocking_on(
        &mut self,
        closure: impl FnOnce() -> T + Send + 'static,
        runtime: &Handle,
    ) -> AbortHandle {
        let held = Held::new(closure, self.bell());
        self.add(runtime.spawn_blocking(move || held.call()))
    }
}

impl<T: 'static> JoinSet<T> {
    /// As [`spawn_local`](crate::task::spawn_local), as a task of the set.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use urgency::task::{JoinSet, LocalSet};
    ///
    /// let local = LocalSet::new();
    /// let sum: u32 = urgency::block_on(local.run_until(async {
    ///     let mut tasks = JoinSet::new();
    ///     for n in [1, 2] {
    ///         let n = Rc::new(n);
    ///         tasks.spawn_local(async move { n });
    ///     }
    ///     tasks.join_all().await.iter().map(|n| **n).sum()
    /// }));
    /// assert_eq!(sum, 3);
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a `LocalSet`.
    #[track_caller]
    pub fn spawn_local(&mut self, future: impl Future<Output = T> + 'static) -> AbortHandle {
        let held = Held::new(future, self.bell());
        self.add(spawn_local(held.run()))
    }

    /// As [`JoinSet::spawn_local`], in that set of tasks.
    pub fn spawn_local_on(
        &mut self,
        future: impl Future<Output = T> + 'static,
        local: &LocalSet,
    ) -> AbortHandle {
        let held = Held::new(future, self.bell());
        self.add(local.spawn_local(held.run()))
    }
}

impl<T> JoinSet<T> {
    /// Waits until a task of the set ends, and gives its result. `None`: there is none.
    ///
    /// # Errors
    ///
    /// The task panicked, was aborted, or its runtime was shut down.
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no result.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    /// As [`join_next`](Self::join_next), with the task's number beside its result; an error has it as
    /// [`JoinError::id`].
    ///
    /// ```
    /// use std::collections::HashMap;
    /// use urgency::task::JoinSet;
    ///
    /// urgency::block_on(async {
    ///     let (mut tasks, mut names) = (JoinSet::new(), HashMap::new());
    ///     for name in ["one", "two"] {
    ///         names.insert(tasks.spawn(async { name.len() }).id(), name);
    ///     }
    ///     while let Some(Ok((id, length))) = tasks.join_next_with_id().await {
    ///         assert_eq!(names.remove(&id).map(str::len), Some(length));
    ///     }
    ///     assert!(names.is_empty());
    /// });
    /// ```
    ///
    /// # Errors
    ///
    /// As [`join_next`](Self::join_next).
    ///
    /// # Cancellation
    ///
    /// Dropping the future loses no result.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    /// The form for hand-written futures: [`join_next`](Self::join_next) as a poll.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_join_next_with_id(cx).map(without_id)
    }

    /// The form for hand-written futures: [`join_next_with_id`](Self::join_next_with_id) as a poll.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        loop {
            if let Some(handle) = &mut self.ending {
                let id = handle.id();
                let result = ready!(handle.poll_device(cx));
                self.ending = None;
                return Poll::Ready(Some(result.map(|value| (id, value))));
            }
            if self.count == 0 {
                return Poll::Ready(None);
            }
            let Poll::Ready(number) = self.ended.poll_recv(cx) else {
                self.begin_wait();
                return Poll::Pending;
            };
            self.waits = None;
            self.take(number.expect("the set has a sender"));
        }
    }

    /// The current task waits for the set, if it is not noted already.
    fn begin_wait(&mut self) {
        if self.waits.as_ref().is_some_and(Waits::is_own) {
            return;
        }
        self.waits = None;
        let (tasks, noted) = (&self.tasks, &mut self.noted);
        self.waits = Waits::begin(|| {
            let task = |(number, handle): (_, &Option<JoinHandle<T>>)| {
                Some((number, handle.as_ref()?.task().clone()))
            };
            let all = || tasks.entries().filter_map(task);
            let make = || Arc::new(Noted(Mutex::new(all().collect())));
            noted.get_or_insert_with(make).clone()
        });
    }

    /// The future of the task with this number is gone: its result is next.
    fn take(&mut self, number: u64) {
        self.ending = self.tasks.remove(number).flatten();
        self.count -= usize::from(self.ending.is_some());
        let noted = self.noted.as_ref();
        drop(noted.and_then(|noted| noted.0.lock().remove(&number)));
    }

    /// The result of a task that has ended, if there is one.
    ///
    /// # Errors
    ///
    /// As [`join_next`](Self::join_next).
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        without_id(self.try_join_next_with_id())
    }

    /// As [`try_join_next`](Self::try_join_next), with the task's number beside its result.
    ///
    /// # Errors
    ///
    /// As [`join_next`](Self::join_next).
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        loop {
            if let Some(handle) = self.ending.as_mut() {
                let id = handle.id();
                let result = handle.try_get()?;
                self.ending = None;
                return Some(result.map(|value| (id, value)));
            }
            let number = self.ended.try_recv().ok()?;
            self.take(number);
        }
    }

    /// Waits for all tasks, and gives their results in the order in which they ended.
    ///
    /// ```
    /// use urgency::task::JoinSet;
    ///
    /// let mut results = urgency::block_on(async {
    ///     let mut tasks = JoinSet::new();
    ///     for number in 1..=3 {
    ///         tasks.spawn(async move { number * number });
    ///     }
    ///     tasks.join_all().await
    /// });
    /// results.sort_unstable();
    /// assert_eq!(results, [1, 4, 9]);
    /// ```
    ///
    /// # Panics
    ///
    /// With the panic of a task that panicked, and if a task was cancelled. The other tasks are cancelled then.
    pub async fn join_all(mut self) -> Vec<T> {
        let mut results = Vec::with_capacity(self.len());
        while let Some(result) = self.join_next().await {
            match result {
                Ok(result) => results.push(result),
                Err(error) => match error.try_into_panic() {
                    Ok(payload) => std::panic::resume_unwind(payload),
                    Err(error) => panic!("{error}"),
                },
            }
        }
        results
    }

    /// Cancels all tasks, and waits until they have ended.
    ///
    /// ```
    /// use urgency::task::JoinSet;
    ///
    /// urgency::block_on(async {
    ///     let mut tasks = JoinSet::new();
    ///     tasks.spawn(std::future::pending::<()>());
    ///     tasks.abort_all();
    ///     assert!(tasks.join_next().await.unwrap().unwrap_err().is_cancelled());
    ///     tasks.spawn(std::future::pending());
    ///     tasks.shutdown().await;
    ///     assert!(tasks.is_empty());
    ///     tasks.spawn(async {});
    ///     tasks.detach_all(); // it goes on
    ///     assert!(tasks.is_empty());
    /// });
    /// ```
    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    fn bell(&mut self) -> Bell {
        self.newest = self.tasks.insert(None);
        Bell {
            number: self.newest,
            ended: self.bell.clone(),
        }
    }

    /// The task whose bell was made last.
    fn add(&mut self, handle: JoinHandle<T>) -> AbortHandle {
        let abort = handle.abort_handle();
        if let Some(noted) = &self.noted {
            let task = handle.task().clone();
            noted.0.lock().insert(self.newest, task);
        }
        let place = self.tasks.get_mut(self.newest);
        *place.expect("only `take` empties a place") = Some(handle);
        self.count += 1;
        abort
    }
}

fn without_id<T>(next: Option<Result<(Id, T), JoinError>>) -> Option<Result<T, JoinError>> {
    next.map(|result| result.map(|(_, value)| value))
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> FromIterator<F> for JoinSet<T> {
    /// A set with a task of each future.
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = JoinSet::new();
        set.extend(futures);
        set
    }
}

impl<T: Send + 'static, F: Future<Output = T> + Send + 'static> Extend<F> for JoinSet<T> {
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
        }
    }
}

impl<T> JoinSet<T> {
    /// How many tasks there are whose results were not taken.
    pub fn len(&self) -> usize {
        self.count + usize::from(self.ending.is_some())
    }

    /// Whether there is no task whose result was not taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cancels all tasks. Their results are still to be taken.
    pub fn abort_all(&self) {
        self.tasks.iter().flatten().for_each(JoinHandle::abort);
    }

    /// Takes all tasks out of the set. They go on, and their results are dropped.
    pub fn detach_all(&mut self) {
        (self.tasks, self.count) = (Slab::new(), 0);
        (self.ending, self.noted, self.waits) = (None, None, None);
        let (bell, ended) = mpsc::unbounded_channel();
        (self.bell, self.ended) = (bell, ended);
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        JoinSet::new()
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

debug_struct!([T] JoinSet<T>, |it| len: it.len());
