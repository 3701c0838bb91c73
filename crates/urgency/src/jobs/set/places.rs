//! Places: how many jobs may run or be queued, and be about to.
//!
//! There are [`most_running`](crate::jobs::CoreSetBuilder::most_running) and
//! [`most_queued`](crate::jobs::CoreSetBuilder::most_queued) of them, the permits of one semaphore. A submission takes
//! one, and the set keeps as many as its jobs need: one for each that is queued, and one for each that runs, up to the
//! number that may run. A job that runs beyond that number, because code of another waits for it, needs none: jobs that
//! wait for each other never fill all places. So a job keeps no place of its own. Whenever jobs have left, the set
//! gives back what the others do not need ([`Set::jobs_left`]).

use super::{Set, State};
use crate::{
    BuildError,
    jobs::{JobBuilder, SubmitError},
    sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError},
    sys::mutex::MutexGuard,
    tasks::discard_payload,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// The place for one job that is not submitted yet.
pub(in crate::jobs) type Place = OwnedSemaphorePermit;

pub(super) fn places(most_running: usize, most_queued: usize) -> Arc<Semaphore> {
    let places = most_running.saturating_add(most_queued);
    Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)))
}

impl Set {
    /// Whether a job could ever be had as it is described. What a job in the queue lacks, it may have later.
    pub(in crate::jobs) fn could_have(&self, job: &JobBuilder) -> Result<(), SubmitError> {
        self.could_keep(job.demand).map_err(BuildError::Demand)?;
        let workers = self.keeper.job().core.workers.len();
        // Schedules and orders may be code of the program. A panic is no answer: the start asks again.
        let could = AssertUnwindSafe(|| job.shape.could_be_a_jobs(workers));
        catch_unwind(could).unwrap_or_else(|payload| {
            discard_payload(payload);
            Ok(())
        })?;
        let levels = job.shape.level_count();
        match job.level {
            Some(level) if usize::from(level.rank()) >= levels => {
                Err(BuildError::NoSuchLevel { level, levels }.into())
            }
            _ => Ok(()),
        }
    }

    pub(in crate::jobs) async fn place(&self) -> Result<Place, SubmitError> {
        let place = self.places.clone().acquire_owned().await;
        place.map_err(|_| SubmitError::ShutDown)
    }

    pub(in crate::jobs) fn try_place(&self) -> Result<Place, SubmitError> {
        let place = self.places.clone().try_acquire_owned();
        place.map_err(|error| match error {
            TryAcquireError::NoPermits => self.full(),
            TryAcquireError::Closed => SubmitError::ShutDown,
        })
    }

    fn full(&self) -> SubmitError {
        let state = self.state.lock();
        let all = self.most_running.saturating_add(self.most_queued);
        SubmitError::Full {
            running: state.running.len(),
            queued: state.queue.len(),
            reserved: all.saturating_sub(state.places),
        }
    }

    /// A job comes, with its place.
    pub(super) fn keep_place(state: &mut State, place: Place) {
        place.forget();
        state.places += 1;
    }

    /// Jobs run no more, or are queued no more: places that the others do not need go to code that waits for one.
    pub(super) fn jobs_left(&self, mut state: MutexGuard<'_, State>) {
        let needed = state.running.len().min(self.most_running) + state.queue.len();
        let free = state.places.saturating_sub(needed);
        state.places -= free;
        drop(state);
        if free > 0 {
            self.places.add_permits(free);
        }
    }
}
