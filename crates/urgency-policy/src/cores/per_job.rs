//! A policy's own state for each job.

use super::{Cores, Job, JobId};
use alloc::vec::Vec;

/// One value for each running job, in the order of [`Cores::jobs`]. A job that [rests](Cores::rest) keeps its value.
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
    entries: Vec<Entry<T>>,
    /// By the jobs' first names.
    resting: Vec<(JobId, T)>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    id: JobId,
    first: JobId,
    value: T,
}

impl<T> Default for PerJob<T> {
    fn default() -> Self {
        PerJob {
            entries: Vec::new(),
            resting: Vec::new(),
        }
    }
}

impl<T> PerJob<T> {
    /// Forgets the jobs that have ended, and makes a value for each that is new. To be called first in each decision.
    pub fn keep_up(&mut self, cores: &Cores, mut new: impl FnMut(JobId) -> T) {
        self.keep_up_with(cores, |id, kept| kept.unwrap_or_else(|| new(id)));
    }

    /// The same. Of a job that comes back `enter` gets the value that was kept while it rested.
    ///
    /// ```
    /// use urgency_policy::cores::{Cores, Demand, JobId, PerJob};
    ///
    /// let (mut cores, mut debts) = (Cores::new(2), PerJob::<u32>::default());
    /// cores.enter(JobId(1), Demand::default())?;
    /// debts.keep_up(&cores, |_| 8);
    /// cores.rest(JobId(1)).unwrap();
    /// debts.keep_up(&cores, |_| 8);
    /// cores.enter_again(JobId(2), JobId(1), Demand::default())?;
    /// debts.keep_up_with(&cores, |_, kept| kept.unwrap_or(8) / 2);
    /// assert_eq!(debts.get(JobId(2)), Some(&4));
    /// # Ok::<(), urgency_policy::cores::Refusal>(())
    /// ```
    pub fn keep_up_with(&mut self, cores: &Cores, mut enter: impl FnMut(JobId, Option<T>) -> T) {
        // Both are in the order of the names, and a new job has a later name than all before it.
        let known = self.entries.last().map(|entry| entry.id);
        let later = known.map_or(0, |known| {
            cores.jobs().partition_point(|job| job.id() <= known)
        });
        if later < self.entries.len() {
            let mut jobs = cores.jobs().iter().map(Job::id).peekable();
            let has_left = |entry: &mut Entry<T>| {
                while jobs.next_if(|&id| id < entry.id).is_some() {}
                jobs.next_if_eq(&entry.id).is_none()
            };
            let left = self.entries.extract_if(.., has_left);
            let left = left.map(|entry| (entry.first, entry.value));
            self.resting.extend(left);
        }
        for job in &cores.jobs()[later..] {
            let (id, first) = (job.id(), job.first());
            let place = || self.resting.iter().position(|&(it, _)| it == first);
            let place = if first == id { None } else { place() };
            let kept = place.map(|place| self.resting.swap_remove(place).1);
            let value = enter(id, kept);
            self.entries.push(Entry { id, first, value });
        }
        // Some of these have ended.
        if self.resting.len() > cores.resting().len() {
            let rests = |(first, _): &(JobId, T)| cores.resting().contains(first);
            self.resting.retain(rests);
        }
    }

    /// The value of this job.
    pub fn get(&self, id: JobId) -> Option<&T> {
        self.place(id).map(|place| &self.entries[place].value)
    }

    /// The value of this job, to be changed.
    pub fn get_mut(&mut self, id: JobId) -> Option<&mut T> {
        self.place(id).map(|place| &mut self.entries[place].value)
    }

    /// The values, in the order of the jobs.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().map(|entry| &entry.value)
    }

    /// The values, to be changed, in the order of the jobs.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    fn place(&self, id: JobId) -> Option<usize> {
        self.entries
            .binary_search_by_key(&id, |entry| entry.id)
            .ok()
    }
}
