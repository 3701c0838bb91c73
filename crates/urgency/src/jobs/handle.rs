//! `JobHandle`: the right to the result of a job, once.
//!
//! The result goes from the root task to the [`Outcome`] as soon as the root has ended: a handle that the program keeps
//! must keep neither the task nor the container of the job.

use super::{
    JobControl, JobError, JobErrorKind,
    error::Why,
    record::{Record, Waits},
};
use crate::{
    JoinError,
    sched::switch::block::block_on,
    sys::mutex::Mutex,
    tasks::{JoinHandle, Lost, PanicPolicy, contained},
};
use std::{
    future::{Future, IntoFuture},
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Wake, Waker},
};

/// The result of a job, to be waited for once, from anywhere.
///
/// Awaiting the handle or calling [`get`](Self::get) waits until the job is over, and gives its root's result or a
/// [`JobError`]. Dropping the handle detaches: the job goes on.
///
/// To cancel, watch or change a job while other code waits for it, keep a clone of its [`JobControl`], to which the
/// handle dereferences.
///
/// The handle is no future itself. Where a wait may be given up and taken up again, as in a `select!`, keep the future:
///
/// ```
/// use std::{future::IntoFuture, time::Duration};
/// use urgency::{jobs::CoreSet, time::sleep};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let job = cores.spawn(std::future::pending::<u32>())?;
/// let control = job.control();
/// urgency::block_on(async {
///     let mut ends = job.into_future();
///     urgency::select! {
///         result = &mut ends => unreachable!("{result:?}"),
///         () = sleep(Duration::from_millis(1)) => control.cancel(),
///     }
///     assert!(ends.await.is_err());
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```
/// use urgency::jobs::CoreSet;
///
/// let cores = CoreSet::builder().cores(2).build()?;
/// let sum = cores.spawn_fn(|| (1..=10).sum::<u32>())?;
/// let twice = cores.spawn(async move { sum.await.map(|sum| 2 * sum) })?;
/// assert_eq!(twice.get()??, 110);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping it detaches the job"]
pub struct JobHandle<T: 'static> {
    outcome: Arc<Outcome<T>>,
}

/// Where the result of a root goes, and what waits for it there.
pub(super) struct Outcome<T: 'static> {
    control: JobControl,
    root: Mutex<Option<(JoinHandle<T>, PanicPolicy)>>,
    result: Mutex<Option<Result<T, JoinError>>>,
    /// Of a root that panicked, until code has the panic.
    lost: Mutex<Option<Lost>>,
}

impl<T: Send + 'static> Outcome<T> {
    pub(super) fn of(record: Arc<Record>) -> Arc<Self> {
        Arc::new(Outcome {
            control: JobControl::of(record),
            root: Mutex::default(),
            result: Mutex::default(),
            lost: Mutex::default(),
        })
    }

    /// The result comes from this root, which has this policy.
    pub(super) fn expect(
        self: &Arc<Self>,
        policy: PanicPolicy,
        start: impl FnOnce() -> JoinHandle<T>,
    ) {
        // The root may end before it is in its place: `wake` waits at this lock.
        let mut place = self.root.lock();
        let mut root = start();
        if root.register(&Waker::from(self.clone())) {
            drop(place);
            self.take_from(root, policy);
        } else {
            *place = Some((root, policy));
        }
    }

    fn take_from(self: &Arc<Self>, mut root: JoinHandle<T>, policy: PanicPolicy) {
        let result = root.try_get();
        if matches!(&result, Some(Err(error)) if error.is_panic()) {
            *self.lost.lock() = Some(Lost::of(policy, root.task()));
        }
        *self.result.lock() = result;
        drop(root);
        if Arc::strong_count(self) == 1 {
            // The job is detached: it is not over while its result is.
            self.control.record.as_its_code(|| self.drop_result());
        }
        self.control.record.root_ended();
    }
}

impl<T: Send + 'static> Wake for Outcome<T> {
    fn wake(self: Arc<Self>) {
        let root = self.root.lock().take();
        root.into_iter()
            .for_each(|(root, policy)| self.take_from(root, policy));
    }
}

impl<T: 'static> Outcome<T> {
    /// A result that nothing waits for is dropped by a thread of the scheduler, and its drop is code of the program.
    fn drop_result(&self) {
        let lost = self.lost.lock().take();
        let result = self.result.lock().take();
        contained(|| {
            lost.into_iter().for_each(|lost| lost.tell());
            drop(result);
        });
    }
}

impl<T: 'static> Drop for Outcome<T> {
    fn drop(&mut self) {
        self.drop_result();
    }
}

debug_struct!([T] JobHandle<T>, |it| id: it.id(), state: it.state());

impl<T: Send + 'static> JobHandle<T> {
    pub(super) fn new(outcome: Arc<Outcome<T>>) -> Self {
        JobHandle { outcome }
    }

    /// Waits until the job is over: the blocking form of awaiting the handle. On a plain thread it parks the thread; on
    /// a worker it suspends the calling stack, and the worker does other work meanwhile.
    ///
    /// # Errors
    ///
    /// The root panicked, or the job was cancelled, or could not be started; or the caller is code of this job, or of a
    /// job for which this one waits: then the error has the handle ([`JobError::into_handle`]).
    pub fn get(self) -> Result<T, JobError> {
        block_on(self.wait())
    }

    async fn wait(self) -> Result<T, JobError> {
        let record = self.record.clone();
        let waits = match Waits::begin(&record) {
            Ok(waits) => waits,
            Err(kind) => return Err(JobError::refused(kind, self)),
        };
        let _ = record.over.wait().await;
        drop(waits);
        self.result()
    }

    /// The result, if the job is over; else the handle. It waits for nothing.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let mut job = cores.spawn_fn(|| 6 * 7)?;
    /// let answer = loop {
    ///     match job.try_get() {
    ///         Ok(result) => break result?,
    ///         Err(handle) => job = handle,
    ///     }
    ///     std::thread::yield_now(); // or something useful
    /// };
    /// assert_eq!(answer, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The outer error is the handle: the job is not over. The inner one is the one of [`get`](Self::get).
    pub fn try_get(self) -> Result<Result<T, JobError>, Self> {
        if self.is_over() {
            Ok(self.result())
        } else {
            Err(self)
        }
    }

    /// Of a job that is over.
    fn result(self) -> Result<T, JobError> {
        let (id, record) = (self.id(), &self.record);
        if let Some(kind) = record.take_refusal() {
            return Err(JobError::of(id, kind));
        }
        let heard = self.outcome.lost.lock().take();
        contained(|| drop(heard));
        let result = self.outcome.result.lock().take();
        let result = result.expect("a job that is over and was not refused has a result");
        result.map_err(|error| {
            if error.is_panic() {
                return JobError {
                    id,
                    why: Why::Root(error),
                };
            }
            // Nothing else ends a root from outside: code of the job has no handle of it.
            JobError::of(
                id,
                match record.cancel.is_asked() {
                    true => JobErrorKind::Cancelled,
                    false => JobErrorKind::ShutDown,
                },
            )
        })
    }
}

impl<T: 'static> JobHandle<T> {
    /// The job apart from its result: for a server's table of jobs, a button, a watchdog.
    pub fn control(&self) -> JobControl {
        self.outcome.control.clone()
    }

    /// Lets the job go on without a waiter: the same as dropping the handle, said aloud. If its root panics, the job's
    /// [panic policy](crate::Builder::on_panic) hears of it: nothing else has the panic.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// cores.spawn_fn(move || sender.send("saved"))?.detach();
    /// assert_eq!(receiver.recv(), Ok("saved"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn detach(self) {}
}

/// What can be asked and done about the job: all of it takes `&self`.
impl<T: 'static> Deref for JobHandle<T> {
    type Target = JobControl;

    fn deref(&self) -> &JobControl {
        &self.outcome.control
    }
}

impl<T: Send + 'static> IntoFuture for JobHandle<T> {
    type Output = Result<T, JobError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}
