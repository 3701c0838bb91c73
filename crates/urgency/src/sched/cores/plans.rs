//! What a core policy says of cache and bandwidth is carried out by a thread of its own.
//!
//! A policy gives a job ways of the last-level cache and a part of the memory bandwidth; the kernel's resctrl gives
//! both to processors. So the workers are pinned, and the groups follow them: a processor is in the group of the job
//! that its worker serves, or is on its way to. A worker without work stays in the group of the job that it served, as
//! its cache does, until that job has no work either.
//!
//! Where there is a partition the core set looks at a job that is alone, too, for as long as it has work: the policy
//! may give it less than everything. A look ends with a *plan*: the job of each worker, and the limits that have
//! changed. A plan is some writes to files, each with an interrupt for each processor, so the relief thread leaves it
//! to a thread that sleeps otherwise. While that thread writes, plans that come become one: what it carries out next is
//! the newest. A plan that the kernel refuses changes nothing (`urgency_resctrl::Partition`): its limits are tried
//! again with the next one, and [`PartitionReport`] says why.
//!
//! When the last job of the core set ends, the groups are removed before the call returns that ended it: a program
//! that returns from `main` then leaves none behind.

use super::{Core, Job, Sharing, State};
use crate::{sys::mutex::Mutex, tasks::discard_payload};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, PoisonError},
    thread::{self, JoinHandle},
};
use urgency_policy::cores::{BandwidthControl, CacheControl, JobId};
use urgency_resctrl::{Error, Files, JobPartition};

/// How the cache and bandwidth of jobs are carried out; see [`Runtime::partition`](crate::Runtime::partition).
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PartitionReport {
    /// How many plans are in force, or were.
    pub plans: u64,
    /// Why the kernel refused the newest one; `None` if it did not.
    pub refused: Option<Arc<Error>>,
    /// The partition's [`Files`] have panicked: nothing is carried out any more.
    pub panicked: bool,
}

/// A partition, whatever its files.
pub(crate) trait Carries: Send {
    fn controls(&self) -> (Option<CacheControl>, Option<BandwidthControl>);
    fn carry_out(&mut self, plan: &Plan) -> Result<(), Error>;
}

impl<F: Files + Send> Carries for JobPartition<F> {
    fn controls(&self) -> (Option<CacheControl>, Option<BandwidthControl>) {
        JobPartition::controls(self)
    }

    fn carry_out(&mut self, plan: &Plan) -> Result<(), Error> {
        plan.ended.iter().for_each(|&job| self.exit(job));
        let ways: Vec<_> = plan.ways.iter().map(|(&job, &ways)| (job, ways)).collect();
        let bandwidths = plan.bandwidths.iter().map(|(&job, &part)| (job, part));
        JobPartition::carry_out(self, &plan.owners, &ways, &bandwidths.collect::<Vec<_>>())
    }
}

/// Which workers are whose, and what has changed since the last plan that was carried out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// By worker.
    pub(super) owners: Vec<Option<JobId>>,
    pub(super) ways: BTreeMap<JobId, u64>,
    pub(super) bandwidths: BTreeMap<JobId, u8>,
    pub(super) ended: BTreeSet<JobId>,
}

impl Plan {
    /// The job is over: what was said of it says nothing any more.
    pub(super) fn end(&mut self, job: JobId) {
        self.ways.remove(&job);
        self.bandwidths.remove(&job);
        self.ended.insert(job);
    }

    /// A later plan comes before this one was carried out.
    fn add(&mut self, later: Plan) {
        self.owners = later.owners;
        self.ways.extend(later.ways);
        self.bandwidths.extend(later.bandwidths);
        later.ended.into_iter().for_each(|job| self.end(job));
    }

    fn has_limits(&self) -> bool {
        !(self.ways.is_empty() && self.bandwidths.is_empty() && self.ended.is_empty())
    }
}

/// See the module's text.
pub(crate) struct Plans {
    /// Whose each worker was by the last plan.
    owners: Vec<Option<JobId>>,
    controls: (Option<CacheControl>, Option<BandwidthControl>),
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// Where plans wait for the thread that carries them out.
#[derive(Default)]
pub(super) struct Desk {
    on: Mutex<OnDesk>,
    news: Condvar,
}

#[derive(Default)]
struct OnDesk {
    plan: Option<Plan>,
    is_over: bool,
    report: PartitionReport,
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

impl fmt::Debug for Plans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plans")
            .field("owners", &self.owners)
            .finish_non_exhaustive()
    }
}

impl Plans {
    /// Starts the thread. `None`: the system gives none.
    pub(crate) fn new(partition: Box<dyn Carries>) -> Option<Self> {
        let (controls, desk) = (partition.controls(), Arc::new(Desk::default()));
        let theirs = desk.clone();
        let thread = thread::Builder::new().name("urgency-resctrl".into());
        let thread = thread.spawn(move || carry_out_all(partition, &theirs));
        Some(Plans {
            owners: Vec::new(),
            controls,
            desk,
            thread: Some(thread.ok()?),
        })
    }

    /// What the policy may ask for.
    pub(super) fn controls(&self) -> (Option<CacheControl>, Option<BandwidthControl>) {
        self.controls
    }

    pub(super) fn desk(&self) -> Arc<Desk> {
        self.desk.clone()
    }

    /// This is to be carried out, if it is news.
    pub(super) fn put(&mut self, plan: Plan) {
        if plan.owners == self.owners && !plan.has_limits() {
            return;
        }
        self.owners.clone_from(&plan.owners);
        let mut on = self.desk.on.lock();
        if on.report.panicked {
            return;
        }
        match &mut on.plan {
            Some(waiting) => waiting.add(plan),
            None => on.plan = Some(plan),
        }
        drop(on);
        self.desk.news.notify_one();
    }
}

impl Drop for Plans {
    /// The thread removes the groups, and ends.
    fn drop(&mut self) {
        self.desk.on.lock().is_over = true;
        self.desk.news.notify_one();
        if let Some(Err(payload)) = self.thread.take().map(JoinHandle::join) {
            discard_payload(payload);
        }
    }
}

impl State {
    /// Tells the partition whose the workers are, and what the policy said of cache and bandwidth.
    pub(super) fn plan(&mut self, core: &Core, busy: &[&Arc<Job>]) {
        let division = &mut self.division;
        let (Some(plans), Some(limits)) = (&mut self.plans, &mut division.limits) else {
            return;
        };
        let mut plan = std::mem::take(limits);
        let owners = core.workers.iter().map(|worker| {
            let goes = core.sharing.marks.of(worker);
            let place = busy.iter().position(|job| match &goes {
                Some(leaving) => leaving.to.is(job),
                None => worker.is_of(job),
            });
            let before = plans.owners.get(worker.id).copied().flatten();
            let before = before.filter(|&job| division.knows(job));
            place.map(|place| division.id(place)).or(before)
        });
        plan.owners = owners.collect();
        plans.put(plan);
    }
}

impl Sharing {
    /// How the policy's word about cache and bandwidth is carried out, if anything does. It takes no lock that is held
    /// while the policy decides.
    pub(crate) fn partition_report(&self) -> Option<PartitionReport> {
        let desk = self.desk.as_ref()?;
        Some(desk.on.lock().report.clone())
    }
}

impl Core {
    /// Removes the groups, and returns when they are gone. Nothing is carried out any more. (If the policy itself ends
    /// the last job, they are gone with the core set.)
    pub(crate) fn release_partition(&self) {
        if self.sharing.desk.is_none() || self.sharing.decider.is_me() {
            return;
        }
        let mut state = self.sharing.turn.take();
        state.division.limits = None;
        let plans = state.plans.take();
        self.sharing.turn.give_back(state);
        self.decide_news();
        drop(plans);
    }
}

/// The life of the thread.
fn carry_out_all(mut partition: Box<dyn Carries>, desk: &Desk) {
    let mut refused: Option<Plan> = None;
    loop {
        let mut on = desk.on.lock();
        while on.plan.is_none() && !on.is_over {
            on = desk.news.wait(on).unwrap_or_else(PoisonError::into_inner);
        }
        let Some(news) = on.plan.take().filter(|_| !on.is_over) else {
            return;
        };
        drop(on);
        let mut plan = refused.take().unwrap_or_default();
        plan.add(news);
        // The files may be the program's.
        let done = catch_unwind(AssertUnwindSafe(|| partition.carry_out(&plan)));
        let mut on = desk.on.lock();
        match done {
            Ok(Ok(())) => {
                on.report.plans += 1;
                on.report.refused = None;
            }
            Ok(Err(error)) => {
                on.report.refused = Some(Arc::new(error));
                // The partition has forgotten them.
                plan.ended.clear();
                refused = Some(plan);
            }
            Err(payload) => {
                on.report.panicked = true;
                on.plan = None;
                drop(on);
                return discard_payload(payload);
            }
        }
    }
}
