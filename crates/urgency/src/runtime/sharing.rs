//! Building several runtimes on one set of workers: which runtimes share, what each asks for, and what decides.
//!
//! The first runtime makes the core set, and its builder says what concerns workers and threads, the core policy among
//! it. The others take a place in that core set, and say of its workers only what they ask for ([`Builder::demand`]).

use super::{BuildError, Builder, Runtime};
use crate::sched::{core::Core, job::Job};
use std::sync::Arc;
#[cfg(doc)]
use urgency_policy::cores::{Boundary, Refusal};
use urgency_policy::cores::{BoxedPolicy, CorePolicy, Demand, Shares};

/// Makes the core policy of a set of workers.
#[derive(Clone)]
pub(super) struct MakePolicy(Arc<dyn Fn() -> BoxedPolicy + Send + Sync>);

debug_text!(MakePolicy, |_it| "MakePolicy");

impl Default for MakePolicy {
    fn default() -> Self {
        MakePolicy(Arc::new(|| Box::new(Shares::default())))
    }
}

impl MakePolicy {
    pub(super) fn make(&self) -> BoxedPolicy {
        (self.0)()
    }
}

impl Builder {
    /// The runtime has the workers, threads and I/O of another one, and all else of its own: levels, schedule, limits,
    /// what happens after a panic, [`Stats`](crate::Stats), and an end. The two are alike afterwards; the workers are
    /// there until the last of the runtimes has ended.
    ///
    /// A worker serves one runtime at a time. A worker that finds nothing to do goes to a runtime that has work. While
    /// several runtimes have work, a *core policy* decides how many workers each has, and is asked again every few
    /// milliseconds. It is the policy of [`Builder::core_policy`]; by default
    /// [`Shares`](crate::policy::cores::Shares), by what each runtime asks for with [`Builder::demand`]. A worker that
    /// is to go to another runtime goes at its next scheduling point; if it comes to none, within a millisecond or two.
    ///
    /// Compared with a runtime that has workers of its own, this costs no thread, and as many threads compute as there
    /// are workers. A level of one runtime is not compared with a level of another: code may wait for a task of the
    /// other runtime, whatever the task's level, and an urgent task waits for a worker of its runtime's part.
    ///
    /// # Errors
    ///
    /// [`Builder::build`] fails if the other runtime has ended ([`BuildError::SharedWorkersEnded`]) or has
    /// [provided threads](Builder::provided_threads) ([`BuildError::SharedThreadsProvided`]), or if this builder says
    /// something of workers or threads itself ([`BuildError::OfSharedWorkers`]): [`workers`](Builder::workers),
    /// [`core_policy`](Builder::core_policy), [`lower_threads`](Builder::lower_threads),
    /// [`real_time_polling`](Builder::real_time_polling) and all that is named after threads.
    ///
    /// ```
    /// use urgency::Runtime;
    ///
    /// let requests = Runtime::builder().workers(2).build()?;
    /// let indexing = Runtime::builder().share_workers_with(&requests).build()?;
    /// let sum = indexing.spawn_fn(|| (0..1000).sum::<u64>());
    /// assert_eq!(requests.block_on(async { sum.await })?, 499_500);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn share_workers_with(mut self, other: &Runtime) -> Self {
        self.shares_with = Some(other.job().clone());
        self
    }

    /// What the runtime asks for of the workers that it [shares](Builder::share_workers_with): its weight and
    /// priority beside the others, and the least and the most workers, which are the *cores* of a
    /// [`Demand`]. The default is the weight 1, and no bounds. [`Runtime::set_demand`] changes it while the runtime
    /// runs.
    ///
    /// - A runtime never has more workers than `max_cores`, although others are idle; but forked work for one
    ///   certain worker, as of [`Host::spawn_on_each`](crate::embed::Host::spawn_on_each), runs on it in any case.
    /// - While it has enough work it has `min_cores`, from a few milliseconds after it got the work on.
    /// - Workers beyond the number of processors are in reserve while the others come to scheduling points. What is
    ///   divided are the ones that are not.
    ///
    /// # Errors
    ///
    /// [`Builder::build`] fails with [`BuildError::Demand`] if the weight or the most is 0, the least is more than
    /// the most, the least of all runtimes on these workers sum to more than there are, or the core policy refuses.
    ///
    /// ```
    /// use urgency::{Runtime, policy::cores::Demand};
    ///
    /// let requests = Runtime::builder().workers(4).demand(Demand { weight: 3, ..Demand::default() }).build()?;
    /// let backup = Runtime::builder()
    ///     .share_workers_with(&requests)
    ///     .demand(Demand { max_cores: 1, ..Demand::default() })
    ///     .build()?;
    /// assert_eq!(backup.spawn_fn(|| 6 * 7).get()?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// Which policy decides how the runtimes [on these workers](Builder::share_workers_with) share them, for the
    /// first of them. The default is [`Shares`](crate::policy::cores::Shares). Any built-in policy will do, and any
    /// policy of your own.
    ///
    /// - A runtime is a job of the policy's table while it has work, with a new
    ///   [`JobId`](crate::policy::cores::JobId) each time. About one runtime alone a policy is asked only if it is not
    ///   [work-conserving](CorePolicy::is_work_conserving).
    /// - To the policy a worker is a core. Workers are alike: the *number* that it gives a runtime counts, not which.
    ///   What a runtime has no use for, others use meanwhile, if the policy is work-conserving. If not, a runtime has
    ///   its number at most, from the moment when it gets work, and one that gets none waits.
    /// - At [`Boundary::Point`] a worker leaves its runtime at its next scheduling point; at [`Boundary::Steal`] when
    ///   it has no work of its own; at [`Boundary::Job`] when its runtime has no work. Then a runtime has at most the
    ///   number that it is given, which grows when others have no work and never falls before it has none itself.
    /// - [Without a partition](CorePolicy::is_partitioned) every worker serves every runtime: weight, priority and
    ///   `min_cores` mean nothing, and runtimes with more work than workers take turns.
    /// - It is asked at a start, an exit, a change of demand, when a runtime begins to have more work than workers,
    ///   and at its timer, which is exact to some milliseconds. It runs on a thread of the runtime, and is to be quick.
    ///   There a change of a demand and a runtime on these workers are refused ([`Refusal::Deciding`]), and a wait or a
    ///   fork panics.
    /// - A decision that breaks a rule is not carried out: [`Shares`](crate::policy::cores::Shares) answer instead, and
    ///   the policy is asked again at the next event. After a panic of the policy `Shares` decide for good.
    ///   [`WorkerShare`](crate::WorkerShare) tells of both.
    /// - Its [`admit`](CorePolicy::admit) is asked when a runtime is built or changes its demand, about a table in
    ///   which all runtimes on these workers run, under names of their own. A panic of `admit` refuses that demand
    ///   ([`Refusal::Panicked`]); the policy stays, and with it what it has promised to others.
    ///
    /// ```
    /// use urgency::{Runtime, policy::cores::Drep};
    ///
    /// let first = Runtime::builder().workers(2).core_policy(Drep::new(1)).build()?;
    /// let second = Runtime::builder().share_workers_with(&first).build()?;
    /// # drop(second);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn core_policy<P>(mut self, policy: P) -> Self
    where
        P: CorePolicy + Clone + Send + Sync + 'static,
    {
        self.of_workers = Some("core_policy");
        self.core_policy = MakePolicy(Arc::new(move || Box::new(policy.clone())));
        self
    }

    /// The core set of another runtime, in which there is a place for this one.
    pub(super) fn core_of(&self, other: &Job) -> Result<Arc<Core>, BuildError> {
        let core = &other.core;
        core.process.must_be_this();
        if core.threads.are_provided() {
            return Err(BuildError::SharedThreadsProvided);
        }
        if !core.admits_job() {
            return Err(BuildError::SharedWorkersEnded);
        }
        Ok(core.clone())
    }
}
