//! A policy's own state for each job.

use super::{Cores, JobId};
use alloc::vec::Vec;

/// One value for each running job, in the order of [`Cores::jobs`].
///
/// ```
/// use urgency_policy::cores::{Cores, Demand, JobId, PerJob, Unpartitioned};
///
/// let (mut cores, mut counts) = (Cores::new(2), PerJob::<u32>::default());
/// cores.start(&mut Unpartitioned, JobId(4), Demand::default())?;
/// counts.keep_up(&cores, |_| 0);
/// *counts.get_mut(JobId(4)).unwrap() += 1;
/// assert_eq!(counts.values().collect::<Vec<_>>(), [&1]);
/// assert_eq!((counts.get(JobId(4)), counts.get(JobId(5))), (Some(&1), None));
/// # Ok::<(), urgency_policy::cores::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct PerJob<T> {
    entries: Vec<(JobId, T)>,
}

impl<T> Default for PerJob<T> {
    fn default() -> Self {
        PerJob {
            entries: Vec::new(),
        }
    }
}

impl<T> PerJob<T> {
    /// Forgets the jobs that have ended, and makes a value for each that is new. To be called first in each decision.
    pub fn keep_up(&mut self, cores: &Cores, mut new: impl FnMut(JobId) -> T) {
        self.entries.retain(|(id, _)| cores.job(*id).is_some());
        let known = self.entries.last().map(|(id, _)| *id);
        let jobs = cores.jobs().iter().map(|job| job.id());
        let later = jobs.filter(|&id| known.is_none_or(|known| id > known));
        self.entries.extend(later.map(|id| (id, new(id))));
    }

    /// The value of this job.
    pub fn get(&self, id: JobId) -> Option<&T> {
        let found = self.entries.binary_search_by_key(&id, |(id, _)| *id);
        found.ok().map(|index| &self.entries[index].1)
    }

    /// The value of this job, to be changed.
    pub fn get_mut(&mut self, id: JobId) -> Option<&mut T> {
        let found = self.entries.binary_search_by_key(&id, |(id, _)| *id);
        found.ok().map(|index| &mut self.entries[index].1)
    }

    /// The values, in the order of the jobs.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// The values, to be changed, in the order of the jobs.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}
