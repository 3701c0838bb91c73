//! Between jobs: which cores a job has.
//!
//! A process runs several parallel jobs on one set of cores. A *core policy* decides which job each core serves, and
//! may change that while the jobs run. It is the administrator's part of the AMCilk paper (section III-B): four
//! events, a view of the jobs and cores, setters.
//!
//! # The parts
//!
//! | part | what it is | owner |
//! |---|---|---|
//! | [`Cores`] | the table of jobs, cores, owners and measurements | the mechanism: the runtime, the simulator |
//! | [`CorePolicy`] | the rule | the user, or a built-in one |
//! | [`Event`] | why the policy is asked | the mechanism tells it |
//! | [`Decision`] | the moves that the policy wants | the mechanism carries them out |
//!
//! The mechanism calls [`Cores::start`], [`Cores::exit`], [`Cores::change`] and [`Cores::measure`] when these things
//! happen, [`Cores::rest`] and [`Cores::enter_again`] for a job without work, and [`Cores::decide`] after each. That
//! call asks the policy, checks its answer, and enters it into the table. An answer that breaks a rule changes nothing
//! and is a [`DecisionError`] with the rule's name: the mechanism asks another policy then. The runtime asks
//! [`Shares`].
//!
//! # The rules that are checked
//!
//! 1. A core has at most one owner: one decision gives a core to one job only.
//! 2. A job gets at most [`Demand::max_cores`] cores.
//! 3. A decision takes no core from a job that would have fewer than [`Demand::min_cores`] afterwards, as long as
//!    there are cores for the least of all jobs.
//! 4. Jobs and cores that are named exist, and the core is available.
//! 5. Cache ways and bandwidth are what the machine can do ([`CacheControl`], [`BandwidthControl`]).
//! 6. A timer is in the future.
//!
//! The sum of all `min_cores` never exceeds the number of cores: [`Cores::start`] refuses a job that asks for more.
//!
//! # The built-in policies
//!
//! | policy | decides by | every core is in use | at which events |
//! |---|---|---|---|
//! | [`Shares`] (default) | weight, [`Group`], priority, least and most cores, measured desire | yes | all |
//! | [`Drep`] | lots: a core goes to a new job with probability 1/n | yes | start, exit |
//! | [`Elastic`] | periods and work of real-time tasks | no: a task gets what it needs | start, exit, request |
//! | [`Feedback`] | measured parallelism, equal shares of the desires | no: nothing beyond the desires | all |
//! | [`StaticEqual`] | a fixed number of equal parts | no | start, exit |
//! | [`Unpartitioned`] | nothing: every core serves every job | | none |
//! | [`AtBoundary`] | as another policy, but a core leaves later | as the other | as the other |
//!
//! "Every core is in use" means: no core is without a job while a job has fewer than its most cores. [`named`] finds
//! them by name.
//!
//! # A policy of your own
//!
//! ```
//! use urgency_policy::cores::{CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId};
//!
//! /// The job that started last has all cores: an operator's console before the batch work.
//! struct NewestFirst;
//!
//! impl CorePolicy for NewestFirst {
//!     fn decide(&mut self, _: Event, cores: &Cores, decision: &mut Decision) -> Result<(), DecisionError> {
//!         let newest = cores.jobs().last().map(|job| job.id());
//!         cores.available().try_for_each(|core| decision.give(core, newest))
//!     }
//! }
//!
//! let mut cores = Cores::new(8);
//! cores.start(&mut NewestFirst, JobId(1), Demand::default())?;
//! let decision = cores.decide(&mut NewestFirst, Event::Start(JobId(1)))?;
//! assert_eq!(decision.moves().len(), 8);
//! assert_eq!(cores.owner(3), Some(JobId(1)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A policy that thinks in numbers of cores, not in cores, calls [`Decision::give_counts`]: it moves as few cores as
//! possible. [`divide`] divides a number in proportion to weights within bounds. A policy with a state that belongs to
//! each job keeps it in a [`PerJob`], also while the job has no work.
//!
//! # What a policy may rely on
//!
//! - Calls come one at a time, and nothing in the table changes during a call.
//! - Jobs are listed in the order in which they entered. A job that comes back is the last, under a new name;
//!   [`Job::first`] says which it is.
//! - After [`Event::Exit`] the job is no longer in the table, and the cores that it had are free.
//! - The mechanism needs time to move a core. The table shows the decision, not how far it has come.
//! - The same events and measurements give the same decisions: a policy has no clock ([`Cores::now`] is told by the
//!   mechanism), and draws lots from a seed ([`Dice`](crate::dice::Dice)).
//!
//! # What a policy must not do
//!
//! Wait for the program. During a call no core goes from one job to another, so what it waits for may never run.

mod boundary;
mod burst;
mod credit;
mod decision;
mod desire;
mod divide;
mod drep;
mod elastic;
mod error;
mod feedback;
mod group;
mod job;
mod learnt;
mod named;
mod per_job;
mod shares;
mod static_equal;
mod table;
#[cfg(test)]
mod tests;
mod unpartitioned;

pub use boundary::{AtBoundary, Boundary};
pub use decision::{Decision, Move};
pub use desire::{Desire, FeedbackParameters};
pub use divide::{Claim, Part, divide};
pub use drep::Drep;
pub use elastic::Elastic;
pub use error::{DecisionError, DemandError, ParametersError, Refusal};
pub use feedback::Feedback;
pub use group::Group;
pub use job::{Demand, Job, JobId, Release, Task, Usage};
pub use named::{BoxedPolicy, NAMED, UnknownPolicy, named};
pub use per_job::PerJob;
pub use shares::Shares;
pub use static_equal::StaticEqual;
pub use table::{BandwidthControl, CacheControl, Cores};
pub use unpartitioned::Unpartitioned;

/// Why a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This job has started, or has work again after it rested. It is in the table and has no core yet.
    Start(JobId),
    /// This job has ended, or has no work for now and [rests](Cores::rest). It is no longer in the table, and its cores
    /// are free.
    Exit(JobId),
    /// The time of [`Decision::set_timer`] has come. The jobs' [`Usage`] tells of the interval that ends now.
    Timer,
    /// Somebody outside asks for something.
    Request(Request),
}

/// What somebody outside asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// The demand of this job has changed ([`Cores::change`]).
    Demand(JobId),
    /// Cores have come or gone ([`Cores::set_available`]).
    Cores,
    /// Anything that a policy and its user have agreed on: `CoreSet::request` of the runtime. The built-in policies
    /// take no notice of it.
    Own(u64),
}

/// Which job each core serves. The text at the top of the module says more.
pub trait CorePolicy {
    /// Something happened: which cores are to move? Without a call of the decision's setters everything stays as it
    /// is.
    ///
    /// # Errors
    ///
    /// The errors of the decision's setters. Then nothing changes.
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError>;

    /// May this job start with this demand, or a job that runs change its demand to this one? Asked before anything
    /// is entered into the table, and after the table has found the demand valid.
    ///
    /// # Errors
    ///
    /// A policy that gives guarantees refuses what would break them.
    fn admit(&mut self, id: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        let _ = (id, demand, cores);
        Ok(())
    }

    /// Whether [`admit`](Self::admit) may refuse a demand without least cores. If it never does, the mechanism need not
    /// ask: such a job starts also while another thread is in a decision.
    fn refuses(&self) -> bool {
        true
    }

    /// What messages call the policy.
    fn name(&self) -> &'static str {
        core::any::type_name::<Self>()
    }

    /// The period that the iterations of this job must be apart while the jobs of this table are there, in nanoseconds;
    /// `None` if the policy says nothing about it. The runtime asks about a table of all jobs, whether they have work
    /// or not, under names of their own: a task may rely on the answer whichever others begin an iteration.
    fn period(&self, job: JobId, cores: &Cores) -> Option<u64> {
        let _ = (job, cores);
        None
    }

    /// Where a core that the policy has moved leaves the job that it runs.
    fn boundary(&self) -> Boundary {
        Boundary::Point
    }

    /// Whether cores belong to jobs at all. If not, every core serves every job.
    fn is_partitioned(&self) -> bool {
        true
    }

    /// Whether the policy promises that no core is without a job while a job has fewer cores than its most.
    fn is_work_conserving(&self) -> bool {
        false
    }
}

impl<P: CorePolicy + ?Sized> CorePolicy for alloc::boxed::Box<P> {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        (**self).decide(event, cores, decision)
    }

    fn admit(&mut self, id: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        (**self).admit(id, demand, cores)
    }

    fn refuses(&self) -> bool {
        (**self).refuses()
    }

    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn period(&self, job: JobId, cores: &Cores) -> Option<u64> {
        (**self).period(job, cores)
    }

    fn boundary(&self) -> Boundary {
        (**self).boundary()
    }

    fn is_partitioned(&self) -> bool {
        (**self).is_partitioned()
    }

    fn is_work_conserving(&self) -> bool {
        (**self).is_work_conserving()
    }
}
