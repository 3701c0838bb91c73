//! How many workers a runtime has and runs, and how their threads are made.
//!
//! It *has* as many as the builder names, as there are processors to pin them to, or as the process may use now. How
//! many of these *run* follows the process from then on (`sched/machine/entitled.rs`), unless the workers are pinned or
//! their threads are provided.

use super::{BuildError, Builder, MAX_WORKERS};
use crate::{
    sched::{
        machine::entitled::{Entitled, Follows},
        switch::thread_options::ThreadOptions,
    },
    sys,
};
use std::thread;

/// What the calling thread's process may use now.
fn available() -> usize {
    thread::available_parallelism().map_or(1, |count| count.get())
}

impl Builder {
    /// The number of workers, and how their threads are made.
    pub(super) fn threads(&self) -> Result<(usize, ThreadOptions), BuildError> {
        let pinned = self.pins()?.cpus().map(<[usize]>::len);
        let workers = pinned.or(self.workers);
        let workers = workers.unwrap_or_else(|| available().min(MAX_WORKERS));
        if workers == 0 || workers > MAX_WORKERS {
            return Err(BuildError::Workers(workers));
        }
        let mut threads = self.threads.clone();
        if threads.provided {
            threads.limit = workers;
        }
        let least = workers + 2;
        if !threads.provided && self.threads.limit < least {
            return Err(BuildError::Threads {
                limit: self.threads.limit,
                least,
            });
        }
        Ok((workers, threads))
    }

    /// How many of the workers run.
    pub(super) fn entitled(&self) -> Entitled {
        if self.threads.provided || self.pinning.is_some() || sys::thread::pretends() {
            Entitled::new(Follows::Never, sys::thread::processors())
        } else if self.is_most {
            Entitled::new(Follows::Entitlement(self.root), available())
        } else {
            Entitled::new(Follows::Affinity, sys::thread::processors())
        }
    }
}
