//! Containers that wait for a job.
//!
//! A container that has just been parked may still be kept by the thread that ended its job, and that thread's stack
//! may wait for a worker among the container's ready work. So looks at all jobs go on to see it. From the moment when
//! only the set keeps it nothing of it can become ready: it is *hidden* from them ([`Core::hide`]) until it has a job
//! again. That is found out when the next job takes a container: what is parked and not hidden then is little.

#[cfg(doc)]
use crate::sched::core::Core;
use crate::{Builder, Runtime};
use std::sync::Arc;

/// A runtime on the set's workers, and the description that it was built from.
pub(super) struct Container {
    pub(super) runtime: Runtime,
    pub(super) shape: Arc<Builder>,
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Parked {
    hidden: Vec<Container>,
    /// Not hidden yet.
    shown: Vec<Container>,
}

impl Parked {
    pub(super) fn len(&self) -> usize {
        self.hidden.len() + self.shown.len()
    }

    /// Parks a container beside at most so many others. Else the one that has been parked for longest is returned: the
    /// description of its jobs may be gone, and nothing would ever take it.
    pub(super) fn put(&mut self, container: Container, most: usize) -> Option<Container> {
        let is_full = self.len() >= most;
        let oldest = [&mut self.hidden, &mut self.shown]
            .into_iter()
            .find(|parked| is_full && !parked.is_empty())
            .map(|parked| parked.remove(0));
        self.shown.push(container);
        oldest
    }

    /// Takes out what no job can have any more. (A job that shuts its own runtime down is over before the shutdown is.)
    pub(super) fn take_spoilt(&mut self) -> Vec<Container> {
        let is_spoilt = |container: &mut Container| container.runtime.job().is_spoilt();
        self.shown.extract_if(.., is_spoilt).collect()
    }

    /// A container of this shape that nothing else keeps. It is shown, and has no work.
    pub(super) fn take(&mut self, shape: &Arc<Builder>) -> Option<Container> {
        let is_unused = |container: &mut Container| container.runtime.job().is_unused();
        for container in self.shown.extract_if(.., is_unused) {
            let job = container.runtime.job();
            job.core.hide(job);
            self.hidden.push(container);
        }
        let fits = |container: &Container| {
            Arc::ptr_eq(&container.shape, shape) && container.runtime.job().is_unused()
        };
        // The newest: its memory is in a cache.
        let place = self.hidden.iter().rposition(fits)?;
        let container = self.hidden.remove(place);
        let job = container.runtime.job();
        job.core.show(job);
        Some(container)
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::super::CoreSet;
    use std::{
        sync::mpsc::channel,
        thread,
        time::{Duration, Instant},
    };

    /// So many jobs at once, and then nothing.
    fn run_at_once(set: &CoreSet, jobs: usize) {
        let (began, begins) = channel();
        let running: Vec<_> = (0..jobs)
            .map(|_| {
                let began = began.clone();
                let (go_on, waits) = crate::sync::oneshot::channel();
                let root = async move {
                    began.send(()).unwrap();
                    waits.await.unwrap();
                };
                (set.spawn(root).unwrap(), go_on)
            })
            .collect();
        (0..jobs).for_each(|_| begins.recv_timeout(Duration::from_secs(20)).unwrap());
        for (job, go_on) in running {
            go_on.send(()).unwrap();
            job.get().unwrap();
        }
        until_parked(set);
    }

    fn until_parked(set: &CoreSet) {
        let limit = Instant::now() + Duration::from_secs(20);
        let all_parked = || {
            let state = set.set.state.lock();
            state.is_drained() && state.over == state.submitted
        };
        while !all_parked() {
            assert!(Instant::now() < limit, "a job does not end");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_thread_that_sleeps_keeps_no_container_of_a_job_that_is_over() {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let all_unused = || {
            let parked = &set.set.state.lock().parked;
            let mut parked = parked.shown.iter().chain(&parked.hidden);
            parked.all(|container| container.runtime.job().is_unused())
        };
        for _ in 0..10 {
            run_at_once(&set, 10);
            let limit = Instant::now() + Duration::from_secs(20);
            while !all_unused() {
                assert!(Instant::now() < limit, "a container is kept");
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    #[test]
    fn a_look_at_all_jobs_leaves_out_what_is_hidden_and_keeps_none_of_it_from_the_next_jobs() {
        let set = CoreSet::builder().cores(2).build().unwrap();
        run_at_once(&set, 10);
        // A look of the relief timer may keep them all when one is taken.
        let limit = Instant::now() + Duration::from_secs(20);
        while set.set.state.lock().parked.hidden.is_empty() {
            assert!(Instant::now() < limit, "nothing is hidden");
            run_at_once(&set, 1);
        }
        let look = set.set.keeper.job().core.jobs();
        let (hidden, shown) = {
            let parked = &set.set.state.lock().parked;
            (parked.hidden.len(), parked.shown.len())
        };
        assert_eq!(
            look.iter().count(),
            1 + shown,
            "the keeper, and what is shown"
        );
        let built = set.stats().built;
        for _ in 0..hidden {
            set.spawn_fn(|| ()).unwrap().get().unwrap();
        }
        assert_eq!(set.stats().built, built, "the look keeps a container");
        drop(look);
    }
}
