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

    pub(super) fn put(&mut self, container: Container) {
        self.shown.push(container);
    }

    /// A container of this shape that nothing else keeps. It is shown, and has no work.
    pub(super) fn take(&mut self, shape: &Arc<Builder>) -> Option<Container> {
        let is_unused = |container: &mut Container| container.runtime.shared().is_unused();
        for container in self.shown.extract_if(.., is_unused) {
            let job = container.runtime.shared();
            job.core.hide(job);
            self.hidden.push(container);
        }
        let fits = |container: &Container| {
            Arc::ptr_eq(&container.shape, shape) && container.runtime.shared().is_unused()
        };
        // The newest: its memory is in a cache.
        let place = self.hidden.iter().rposition(fits)?;
        let container = self.hidden.remove(place);
        let job = container.runtime.shared();
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
        until_unused(set);
    }

    fn until_unused(set: &CoreSet) {
        let limit = Instant::now() + Duration::from_secs(20);
        let all_unused = || {
            let state = set.set.lock();
            let parked = state.parked.shown.iter().chain(&state.parked.hidden);
            state.is_drained() && parked.into_iter().all(|it| it.runtime.shared().is_unused())
        };
        while !all_unused() {
            assert!(Instant::now() < limit, "something keeps a container");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_look_at_all_jobs_leaves_out_what_is_parked_and_keeps_none_of_it_from_the_next_job() {
        let set = CoreSet::builder().cores(2).build().unwrap();
        run_at_once(&set, 10);
        run_at_once(&set, 1);
        let core = &set.set.keeper.shared().core;
        // The keeper, and what was parked since the last container was taken.
        let look = core.jobs();
        assert_eq!(look.iter().count(), 2);
        run_at_once_beside(&set, 9);
        drop(look);
        until_unused(&set);
        run_at_once(&set, 10);
        assert_eq!((set.stats().built, set.stats().parked), (10, 10));
    }

    /// As many jobs one after the other as containers are hidden, while a look at all jobs lasts.
    fn run_at_once_beside(set: &CoreSet, jobs: usize) {
        for _ in 0..jobs {
            set.spawn_fn(|| ()).unwrap().get().unwrap();
        }
        assert_eq!(
            set.stats().built,
            10,
            "the look keeps a container from a job"
        );
    }
}
