//! The end of jobs and of a core set, as the program asks for it.
//!
//! A shutdown is made of the other methods: close, wait for as long as may be, cancel, and wait a little for what was
//! cancelled. As a runtime's (`sched/doors/shutdown.rs`) it tells what did not end.

use super::CoreSet;
use crate::{
    jobs::{
        JobErrorKind, JobId, JobShutdown, JobsLeft,
        record::{self, Record},
    },
    sched::{doors::shutdown::CANCEL_GRACE, switch::block::block_on},
    tasks::contained,
    time::sleep,
};
use std::{
    future::{Future, poll_fn},
    mem,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

impl CoreSet {
    /// Cancels all jobs that run or are queued now; see [`JobControl::cancel`](crate::jobs::JobControl::cancel).
    pub fn cancel_all(&self) {
        if !self.set.process().is_this() {
            return;
        }
        self.cancel_less_urgent(None);
    }

    /// Cancels the jobs that are less urgent than this priority; without one all.
    fn cancel_less_urgent(&self, than: Option<u8>) {
        let is_asked = |record: &Record| than.is_none_or(|than| record.demand().priority > than);
        let mut state = self.set.state.lock();
        let queued = state.queue.take_less_urgent(than);
        let running = state.running.clone();
        // All at once: the end of the first one starts none of the others.
        let is_any = !queued.is_empty();
        queued.iter().for_each(|job| job.record.cancel.ask());
        self.set.refuse(state, queued, JobErrorKind::Cancelled);
        let running = running.iter().filter(|job| is_asked(job));
        running.for_each(|job| job.cancel());
        if is_any {
            self.set.go_on();
        }
    }

    /// From now on no job is accepted: each submission, and each wait for a place, has the error
    /// [`ShutDown`](crate::jobs::SubmitError::ShutDown), also code of a job's. The jobs that run or are queued go on.
    ///
    /// ```
    /// use urgency::jobs::{CoreSet, SubmitError};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// let last = cores.spawn_fn(|| "saved")?;
    /// cores.close();
    /// assert_eq!(cores.spawn_fn(|| "too late").unwrap_err(), SubmitError::ShutDown);
    /// assert_eq!(last.get()?, "saved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// In a child of `fork` it does nothing.
    pub fn close(&self) {
        if self.set.process().is_this() {
            let parked = {
                let mut state = self.set.state.lock();
                state.is_closed = true;
                // Code of the core policy, in a decision, ends no runtime.
                let are_left = self.set.is_deciding();
                (!are_left).then(|| mem::take(&mut state.parked))
            };
            // No job comes that would need them. What their descriptions captured is the program's: this set, perhaps.
            contained(|| drop(parked));
            self.set.places.close();
        }
    }

    /// Waits until no job runs or is queued.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().cores(2).build()?;
    /// for file in 0..3 {
    ///     cores.spawn_fn(move || println!("file {file} is indexed"))?.detach();
    /// }
    /// cores.drain();
    /// assert_eq!(cores.stats().over, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If code of a job of this set calls it, the drop of what the job captured or gave included: the job would wait
    /// for itself. In a child of `fork`.
    pub fn drain(&self) {
        self.must_be_outside();
        block_on(self.drained());
    }

    /// As [`drain`](Self::drain), and gives up after `within`.
    ///
    /// # Errors
    ///
    /// The jobs that have not ended by then, queued ones as well. They go on.
    ///
    /// # Panics
    ///
    /// As [`drain`](Self::drain).
    pub fn drain_within(&self, within: Duration) -> Result<(), JobsLeft> {
        self.must_be_outside();
        // The timer is the set's: on a plain thread no other runtime has to start for it.
        let _entered = self.set.keeper.enter();
        let (mut drained, mut limit) = (pin!(self.drained()), sleep(within));
        let drained = block_on(poll_fn(|cx| match drained.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(true),
            // The jobs go on after the end of the runtime beside which the set is, and so does the wait for them.
            Poll::Pending => limit.poll_beyond_the_end(cx).map(|()| false),
        }));
        if drained { Ok(()) } else { self.left() }
    }

    /// [Closes](Self::close) the set, waits for its jobs or cancels them, and returns when all are over.
    ///
    /// # Panics
    ///
    /// As [`drain`](Self::drain).
    pub fn shutdown(&self, how: JobShutdown) {
        self.must_be_outside();
        self.begin_to_end(how);
        self.drain();
    }

    /// As [`shutdown`](Self::shutdown), but cancels what has not ended after `within`, and gives up a tenth of a second
    /// after that.
    ///
    /// ```
    /// use std::time::Duration;
    /// use urgency::jobs::{CoreSet, JobShutdown};
    ///
    /// let cores = CoreSet::builder().cores(1).build()?;
    /// cores.spawn(std::future::pending::<()>())?.detach();
    /// cores.shutdown_within(JobShutdown::Cancel, Duration::from_secs(10))?;
    /// assert_eq!(cores.stats().over, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The jobs that have not ended: their code goes on to its end.
    ///
    /// # Panics
    ///
    /// As [`drain`](Self::drain).
    pub fn shutdown_within(&self, how: JobShutdown, within: Duration) -> Result<(), JobsLeft> {
        self.must_be_outside();
        let began = Instant::now();
        self.begin_to_end(how);
        if how != JobShutdown::Cancel && self.drain_within(within).is_err() {
            self.cancel_all();
        }
        let left = within.saturating_sub(began.elapsed());
        self.drain_within(left.max(CANCEL_GRACE))
    }

    fn begin_to_end(&self, how: JobShutdown) {
        self.close();
        match how {
            JobShutdown::Drain => {}
            JobShutdown::DrainDownTo(priority) => self.cancel_less_urgent(Some(priority)),
            JobShutdown::Cancel => self.cancel_less_urgent(None),
        }
    }

    async fn drained(&self) {
        let is_drained = || self.set.state.lock().is_drained().then_some(());
        self.set.drained.until(is_drained).await;
    }

    fn left(&self) -> Result<(), JobsLeft> {
        let mut ids: Vec<JobId> = {
            let state = self.set.state.lock();
            let running = state.running.iter().map(|record| record.id);
            // What a refused one captured is dropped by code of the program, which may take its time.
            let refused = state.refused.iter().copied();
            running.chain(state.queue.ids()).chain(refused).collect()
        };
        ids.sort_unstable();
        match ids.is_empty() {
            true => Ok(()),
            false => Err(JobsLeft { ids }),
        }
    }

    #[track_caller]
    fn must_be_outside(&self) {
        self.set.process().must_be_this();
        assert!(
            !record::is_in_job_of(&self.set),
            "a job waits for the end of all jobs of its own core set, and would wait for itself: call `CoreSet::drain` \
             and `CoreSet::shutdown` from outside of the jobs"
        );
    }
}
