//! The end of jobs and of a core set, as the program asks for it.

use super::CoreSet;
use crate::{
    jobs::{JobErrorKind, record},
    sched::switch::block::block_on,
};
use std::sync::{Arc, atomic::Ordering};

impl CoreSet {
    /// Cancels all jobs that run or are queued now; see [`JobControl::cancel`](crate::jobs::JobControl::cancel).
    pub fn cancel_all(&self) {
        if !self.set.process().is_this() {
            return;
        }
        let (queued, running) = {
            let mut state = self.set.state.lock();
            let queued: Vec<_> = state.queue.take_all().collect();
            state.over += queued.len() as u64;
            let running = state.running.clone();
            self.set.jobs_left(state);
            (queued, running)
        };
        // All at once: the end of the first one starts none of the others.
        let is_any = !queued.is_empty();
        for pending in queued {
            pending.record.is_cancelled.store(true, Ordering::SeqCst);
            pending.refuse(JobErrorKind::Cancelled);
        }
        running.iter().for_each(|job| job.cancel());
        if is_any {
            self.set.go_on();
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
    /// If code of a job of this set calls it: the job would wait for itself. In a child of `fork`.
    pub fn drain(&self) {
        self.set.process().must_be_this();
        assert!(
            !record::current_set().is_some_and(|set| Arc::ptr_eq(&set, &self.set)),
            "a job called `CoreSet::drain` of its own core set, and would wait for itself: call it from outside of the jobs"
        );
        block_on(async {
            loop {
                let drained = self.set.drained.notified();
                if self.set.state.lock().is_drained() {
                    return;
                }
                drained.await;
            }
        });
    }
}
