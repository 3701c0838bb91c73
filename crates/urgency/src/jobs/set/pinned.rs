//! Core sets whose cores are processors, and what their jobs have of the cache and the memory's bandwidth.
//!
//! A set's cores are its keeper's workers. So all of this is asked of the keeper, a runtime as any other:
//! `runtime/pinning.rs` and `runtime/partitioning.rs` say how.

use super::{CoreSet, CoreSetBuilder};
#[cfg(doc)]
use crate::Builder;
use crate::runtime::PartitionReport;
use urgency_resctrl::{Files, Partition};

impl CoreSetBuilder {
    /// As [`Builder::pin_workers`]: the cores of the set are all processors that the process may use, or
    /// [`cores`](Self::cores) of them, and each worker is pinned to its own.
    pub fn pinned(mut self) -> Self {
        self.keeper = self.keeper.pin_workers();
        self.of_cores = Some("pinned");
        self
    }

    /// The cores of the set are these processors, by the kernel's numbers, and each worker is pinned to its own: see
    /// [`Builder::pin_workers_to`].
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().pinned_to([0]).build()?;
    /// assert_eq!(cores.spawn_fn(|| 6 * 7)?.get()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pinned_to(mut self, cpus: impl IntoIterator<Item = usize>) -> Self {
        self.keeper = self.keeper.pin_workers_to(cpus);
        self.of_cores = Some("pinned_to");
        self
    }

    /// Carries out what the core policy says of cache and bandwidth, on cores that are pinned: see
    /// [`Builder::partition`].
    pub fn partition<F: Files + Send + 'static>(mut self, partition: Partition<F>) -> Self {
        self.keeper = self.keeper.partition(partition);
        self.of_cores = Some("partition");
        self
    }
}

impl CoreSet {
    /// How the cache and bandwidth that the core policy decided are carried out; `None` without
    /// [`CoreSetBuilder::partition`].
    pub fn partition(&self) -> Option<PartitionReport> {
        self.set.keeper.partition()
    }

    /// Removes the kernel's groups of [`CoreSetBuilder::partition`], and returns when they are gone: see
    /// [`Runtime::release_partition`](crate::Runtime::release_partition). A job that has just ended may keep the set
    /// for a moment, so a program with a partition calls this before it ends.
    ///
    /// ```
    /// use urgency::jobs::CoreSet;
    ///
    /// let cores = CoreSet::builder().build()?;
    /// assert_eq!(cores.spawn_fn(|| 6 * 7)?.get()?, 42);
    /// cores.release_partition();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_partition(&self) {
        self.set.keeper.release_partition();
    }
}
