//! Workers with processors of their own: which processors, and why workers cannot be pinned to them.
//!
//! Here is what the builder notes and checks. How a worker's code stays on its processor is in `sched/machine/pins.rs`.

#[cfg(doc)]
use super::BuildError;
use super::Builder;
use crate::{sched::machine::pins::Pins, sys::thread::affinity};
use std::fmt;

/// Where the workers are to run.
#[derive(Debug, Clone)]
pub(super) enum Pinning {
    /// On any processor of this set, in its order.
    All,
    /// On these, one for each.
    On(Vec<usize>),
}

/// Why workers cannot be pinned: [`Builder::pin_workers`], [`Builder::pin_workers_to`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PinError {
    /// The calling thread may not run on this processor.
    NotAllowed {
        /// The processor, by the kernel's number.
        cpu: usize,
        /// How many processors it may run on.
        allowed: usize,
    },
    /// Two workers were to have this processor.
    Twice {
        /// The processor, by the kernel's number.
        cpu: usize,
    },
    /// There are more workers than processors for them, or fewer.
    Workers {
        /// How many workers were asked for.
        workers: usize,
        /// How many processors there are for them.
        processors: usize,
    },
    /// The runtime has [provided threads](Builder::provided_threads), which are the program's to pin.
    ProvidedThreads,
    /// The system does not tell on which processors a thread may run.
    NotSupported,
}

impl fmt::Display for PinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PinError::NotAllowed { cpu, allowed } => write!(
                f,
                "a worker was to be pinned to processor {cpu}, and this thread may not run there: take one of the {allowed} \
                 that it may use (`taskset -cp {}` lists them), or `pin_workers`, which takes all of them",
                std::process::id()
            ),
            PinError::Twice { cpu } => write!(
                f,
                "two workers were to be pinned to processor {cpu}: each needs one of its own"
            ),
            PinError::Workers {
                workers,
                processors,
            } => write!(
                f,
                "{workers} worker(s) were to be pinned to {processors} processor(s): leave the number of workers out, or \
                 give each worker one processor"
            ),
            PinError::ProvidedThreads => f.write_str(
                "a runtime with provided threads was to pin its workers: pin the threads that you provide",
            ),
            PinError::NotSupported => f.write_str(
                "workers were to be pinned, and the system does not tell on which processors a thread may run: leave it \
                 out",
            ),
        }
    }
}

impl std::error::Error for PinError {}

impl Builder {
    /// Gives each worker one of the processors that the calling thread may use when the runtime is built, and pins it
    /// there: its code runs on that processor. With a number of [`workers`](Builder::workers), on the first that many
    /// processors.
    ///
    /// A worker travels between threads, and its thread is pinned when it gets the worker: a system call, unless the
    /// thread was pinned there before. Where a thread has to change its processor for that, the kernel moves it, which
    /// takes some 10 µs. So pin the workers where the processor's own part of the machine counts: its cache, its share
    /// of it, its distance to memory. Else the kernel's choice is better: it moves a thread from a processor that
    /// another process uses, and a pinned worker waits there.
    ///
    /// - A plain thread that calls into the runtime (`run`, `join`) is not pinned. A thread that waits for events may
    ///   run on all of the workers' processors.
    /// - Threads and processes that the program makes on a worker inherit the one processor; a runtime that is built
    ///   there as well.
    /// - The number of workers does not follow the entitlement of the process. If the process loses a processor, that
    ///   worker's code runs where the kernel lets it.
    ///
    /// # Errors
    ///
    /// [`Builder::build`] fails with [`BuildError::Pin`] where there are not as many processors.
    ///
    /// ```
    /// use urgency::Runtime;
    ///
    /// let runtime = Runtime::builder().pin_workers().build()?;
    /// assert_eq!(runtime.spawn_fn(|| 6 * 7).get()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pin_workers(mut self) -> Self {
        self.of_workers = Some("pin_workers");
        self.pinning = Some(Pinning::All);
        self
    }

    /// As [`pin_workers`](Builder::pin_workers), to these processors, by the kernel's numbers: worker i to the i-th.
    /// The runtime has as many workers.
    ///
    /// ```
    /// use urgency::{BuildError, Runtime, runtime::PinError};
    ///
    /// let runtime = Runtime::builder().pin_workers_to([0]).build();
    /// let nowhere = Runtime::builder().pin_workers_to([5000]).build();
    /// assert!(matches!(nowhere, Err(BuildError::Pin(PinError::NotAllowed { cpu: 5000, .. }))));
    /// # drop(runtime);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Builder::build`] fails with [`BuildError::Pin`] if the calling thread may not run on one of them, or one is
    /// named twice.
    pub fn pin_workers_to(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.of_workers = Some("pin_workers_to");
        self.pinning = Some(Pinning::On(cpus.into_iter().collect()));
        self
    }

    /// The processors of the workers, if they are to be pinned.
    pub(super) fn pins(&self) -> Result<Pins, PinError> {
        let Some(pinning) = &self.pinning else {
            return Ok(Pins::default());
        };
        if self.threads.provided {
            return Err(PinError::ProvidedThreads);
        }
        let allowed = affinity(&[0]).ok_or(PinError::NotSupported)?;
        let cpus: Vec<usize> = match pinning {
            Pinning::All => {
                let most = self.workers.unwrap_or(usize::MAX);
                allowed.iter().take(most).collect()
            }
            Pinning::On(cpus) => cpus.clone(),
        };
        for (place, &cpu) in cpus.iter().enumerate() {
            if !allowed.contains(cpu) {
                let allowed = allowed.len();
                return Err(PinError::NotAllowed { cpu, allowed });
            }
            if cpus[..place].contains(&cpu) {
                return Err(PinError::Twice { cpu });
            }
        }
        match self.workers {
            Some(workers) if workers != cpus.len() => Err(PinError::Workers {
                workers,
                processors: cpus.len(),
            }),
            _ if cpus.is_empty() => Err(PinError::Workers {
                workers: 0,
                processors: 0,
            }),
            _ => Ok(Pins::on(&cpus)),
        }
    }
}
