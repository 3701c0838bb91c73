//! Cache ways and memory bandwidth for jobs, as the core policy decides, where the machine has resctrl.
//!
//! Here is what the builder is given, checks, and reports. A builder can be cloned and a partition cannot: the runtime
//! that is built first has it. What a policy says is carried out by `sched/cores/plans.rs`.

#[cfg(doc)]
use super::BuildError;
use super::{Builder, Runtime};
use crate::{
    sched::cores::{Carries, PartitionReport, Plans},
    sys::mutex::Mutex,
};
use std::{fmt, sync::Arc};
use urgency_resctrl::{Files, JobPartition, Partition};

type Make = dyn FnOnce(&[usize]) -> Result<Box<dyn Carries>, PartitionError> + Send;

/// What becomes the partition of the runtime that is built first.
#[derive(Clone)]
pub(super) struct OncePartition(Arc<Mutex<Option<Box<Make>>>>);

debug_text!(OncePartition, |_it| "OncePartition");

/// Why the core policy's word about cache and bandwidth cannot be carried out: [`Builder::partition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionError {
    /// The workers are not pinned to processors, which have the limits.
    NotPinned,
    /// The partition cannot give this processor, since it is in a group of another program.
    NotOurs {
        /// The processor, by the kernel's number.
        cpu: usize,
    },
    /// A runtime that was built by a clone of this builder has the partition.
    Taken,
    /// The system gives no thread that would carry it out.
    NoThread,
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionError::NotPinned => f.write_str(
                "a runtime was given a partition of cache and bandwidth, which processors have, and its workers are not \
                 pinned to processors: call `pin_workers` or `pin_workers_to`",
            ),
            PartitionError::NotOurs { cpu } => write!(
                f,
                "a worker was to be pinned to processor {cpu}, which is in a group of resctrl that is not of the runtime's \
                 partition: pin the workers to others, or take it out of that group"
            ),
            PartitionError::Taken => f.write_str(
                "a runtime that was built by a clone of this builder has the partition: open one for each",
            ),
            PartitionError::NoThread => f.write_str(
                "the system gives no thread that would carry out the partition: raise the limit of threads (`ulimit -u`)",
            ),
        }
    }
}

impl std::error::Error for PartitionError {}

impl Builder {
    /// Carries out what the [core policy](Builder::core_policy) says of cache ways and memory bandwidth, on workers
    /// that are [pinned](Builder::pin_workers): the limits of a runtime are in force on the processors of the workers
    /// that serve it. Without this a policy that asks for cache or bandwidth gets the error that the machine can do
    /// neither ([`WorkerShare::rejected`](crate::WorkerShare::rejected)).
    ///
    /// A thread of its own writes to the kernel, some milliseconds after the decision. Until then, and while a worker
    /// that found nothing to do serves another runtime between two decisions, code runs with the limits of before.
    /// [`Runtime::partition`] says what the kernel refused. The groups go with the last runtime on the workers, before
    /// its drop returns, or with [`Runtime::release_partition`].
    ///
    /// The policy is asked about a runtime that is alone on its workers, too: every few milliseconds while it has work.
    ///
    /// # Errors
    ///
    /// [`Builder::build`] fails with [`BuildError::Partition`] if the workers are not pinned, or are pinned to a
    /// processor of another program's group. Where the machine has no resctrl, [`urgency_resctrl::mounted`] says what
    /// is missing and what to do.
    ///
    /// ```
    /// use urgency::Runtime;
    /// use urgency_resctrl::{Partition, mounted};
    ///
    /// let mut builder = Runtime::builder().pin_workers();
    /// match mounted().and_then(|(files, options)| Partition::open(files, options, "service")) {
    ///     Ok(partition) => builder = builder.partition(partition),
    ///     Err(missing) => println!("{missing}"),
    /// }
    /// let runtime = builder.build()?;
    /// # drop(runtime);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn partition<F: Files + Send + 'static>(mut self, partition: Partition<F>) -> Self {
        self.of_workers = Some("partition");
        let make: Box<Make> = Box::new(move |cpus| {
            let ours = partition.cpus();
            if let Some(&cpu) = cpus.iter().find(|&&cpu| !ours.contains(cpu)) {
                return Err(PartitionError::NotOurs { cpu });
            }
            let partition = JobPartition::new(partition, cpus.to_vec());
            let partition =
                partition.expect("each processor is one of the partition's, named once");
            Ok(Box::new(partition) as Box<dyn Carries>)
        });
        self.partition = Some(OncePartition(Arc::new(Mutex::new(Some(make)))));
        self
    }

    /// What carries out the core policy's word on these processors, if anything is to.
    pub(super) fn plans(&self, cpus: Option<&[usize]>) -> Result<Option<Plans>, PartitionError> {
        let Some(OncePartition(partition)) = &self.partition else {
            return Ok(None);
        };
        let cpus = cpus.ok_or(PartitionError::NotPinned)?;
        let make = partition.lock().take();
        let partition = make.ok_or(PartitionError::Taken)?(cpus)?;
        let plans = Plans::new(partition).ok_or(PartitionError::NoThread)?;
        Ok(Some(plans))
    }
}

impl Runtime {
    /// How the cache and bandwidth that the core policy decided are carried out; `None` without
    /// [`Builder::partition`].
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().build()?;
    /// match runtime.partition() {
    ///     Some(report) => println!("{} plan(s); the last refusal: {:?}", report.plans, report.refused),
    ///     None => println!("the builder had no partition"),
    /// }
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn partition(&self) -> Option<PartitionReport> {
        self.job().core.sharing.partition_report()
    }

    /// Removes the kernel's groups of [`Builder::partition`], and returns when they are gone. From then on nothing is
    /// carried out. Without a partition it does nothing.
    ///
    /// The last runtime on the workers does the same when it ends. A runtime that other threads still keep ends after
    /// `main`, or never, and the groups stay in the kernel: a program of that kind calls this first.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().build()?;
    /// runtime.release_partition();
    /// assert!(runtime.partition().is_none(), "it had none");
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn release_partition(&self) {
        self.job().core.release_partition();
    }
}
