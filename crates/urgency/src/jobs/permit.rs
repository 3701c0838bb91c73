//! `JobPermit`: a described job that has a place in its core set, and is not written yet.
//!
//! A submission that is refused loses its future or closure. So code that must keep its work, or wait until there is
//! room for it, asks for the place first: [`JobBuilder::reserve`] and its relatives, in the shape of a channel's
//! permits. Every submission goes this way.

use super::{
    JobBuilder, JobHandle, SubmitError,
    handle::Outcome,
    record::{Record, Root},
    set::{Pending, Place},
};
use crate::{
    LevelId,
    runtime::Handle,
    spawn::{spawn_fn_with, spawn_with},
    tasks::JoinHandle,
};
use std::{future::Future, sync::Arc};

/// The place for one job, as it was described: see [`JobBuilder::reserve`]. Dropping it gives the place to the next
/// that waits for one.
///
/// ```
/// use urgency::jobs::{CoreSet, JobPermit};
///
/// let cores = CoreSet::builder().cores(1).build()?;
/// let first: JobPermit = cores.job().blocking_reserve()?;
/// let second = cores.job().priority(1).try_reserve()?;
/// let read = second.spawn(async { "a page" })?;
/// assert_eq!(first.spawn_fn(move || read.get())?.get()??, "a page");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a permit that is dropped gives its place back"]
pub struct JobPermit {
    job: JobBuilder,
    place: Place,
}

debug_struct!(JobPermit, |it| job: it.job);

impl JobPermit {
    pub(super) fn new(job: JobBuilder, place: Place) -> Self {
        JobPermit { job, place }
    }

    /// Submits a future as the root of the job. It is never [`Full`](SubmitError::Full), and waits for nothing.
    ///
    /// # Errors
    ///
    /// The job could start at once, and cannot be had: its runtime cannot be built as it was described, or other jobs
    /// have been promised the cores that it needs at least. Or the set is closed.
    pub fn spawn<F>(self, future: F) -> Result<JobHandle<F::Output>, SubmitError>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.submit(|handle, level| {
            let root = Root::of(handle);
            let future = async move {
                let _root = root;
                future.await
            };
            spawn_with(handle.job(), level, future, |_| ())
        })
    }

    /// As [`spawn`](Self::spawn), of a closure.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_fn<F, T>(self, closure: F) -> Result<JobHandle<T>, SubmitError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit(|handle, level| {
            let root = Root::of(handle);
            let closure = move || {
                let _root = root;
                closure()
            };
            spawn_fn_with(handle.job(), level, closure, |_| ())
        })
    }

    fn submit<T: Send + 'static>(
        self,
        start: impl FnOnce(&Handle, u8) -> JoinHandle<T> + Send + 'static,
    ) -> Result<JobHandle<T>, SubmitError> {
        let JobBuilder {
            set,
            shape,
            demand,
            level,
            name,
        } = self.job;
        set.process().must_be_this();
        let record = Record::new(Arc::downgrade(&set), name, demand);
        let outcome = Outcome::of(record.clone());
        let pending = Pending {
            record,
            shape,
            start: {
                let outcome = outcome.clone();
                Box::new(move |handle| {
                    let job = handle.job();
                    let level = level.map_or_else(|| job.least_urgent(), LevelId::rank);
                    outcome.expect(job.on_panic.clone(), || start(handle, level));
                })
            },
        };
        set.submit(pending, self.place)?;
        Ok(JobHandle::new(outcome))
    }
}
