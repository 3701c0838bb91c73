//! `Iterations`: when the code of a real-time task begins its iterations, and whether they end in time.
//!
//! A core policy that compresses periods (*elastic*) decides how far apart a task's iterations must be. The task's code
//! releases them, so it has to ask. An iteration is a guard: as long as it lives no other one of these `Iterations` can
//! begin, and its end is compared with its deadline.
//!
//! # Periodic and sporadic
//!
//! Both are released by the same rule: at the call of [`Iterations::next`], but no sooner than a period after the last
//! release. A periodic task calls `next` when the last iteration has ended, so it is released each period. A sporadic
//! one waits for its event first. An iteration that comes late puts off the later ones: the policy's promise needs the
//! distance, and two iterations in a hurry after a late one would break it for the other tasks, too.
//!
//! # A period that changes
//!
//! A period that is stretched while an iteration runs, or while the task waits for the next release, holds from then
//! on: the deadline is as much later, and so is the release. A period that is shortened holds from the next call of
//! `next` on: the cores for it may have come after the release.

use crate::{
    runtime::Handle,
    sched::switch::block::block_on,
    time::{Instant, sleep_until},
};
use std::time::Duration;

/// The iterations of a job or runtime that is a real-time [`Task`](crate::policy::cores::Task): each begins a
/// [period](Handle::period) after the one before at the soonest, and is to end within a period. Whether it does beside
/// code that does not check in, depends on the policy's
/// [allowance](crate::policy::cores::Elastic#what-it-promises).
///
/// ```
/// use urgency::{
///     jobs::{CoreSet, Iterations},
///     policy::cores::{Demand, Elastic, Task},
/// };
///
/// let cores = CoreSet::builder().cores(2).core_policy(Elastic::default()).build()?;
/// // It likes 2 ms, and tolerates 10.
/// let video = Task { longest: 10_000_000, ..Task::new(200_000, 50_000, 2_000_000) };
/// let job = cores.job().demand(Demand { task: Some(video), ..Demand::default() });
/// let released = job.spawn(async {
///     let mut iterations = Iterations::current();
///     let mut released = Vec::new();
///     for _ in 0..3 {
///         let iteration = iterations.next().await;
///         released.push(iteration.released());
///         // The work of the iteration. Dropping it ends it.
///     }
///     released
/// })?;
/// let released = released.get()?;
/// assert!(released.windows(2).all(|two| (two[1] - two[0]).as_millis() >= 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A *sporadic* task waits for its event, and then for [`next`](Self::next), which returns at once if the last
/// iteration was released a period ago:
///
/// ```
/// use urgency::{jobs::Iterations, sync::mpsc};
///
/// async fn answer(mut events: mpsc::Receiver<u32>) {
///     let mut iterations = Iterations::current();
///     while let Some(event) = events.recv().await {
///         let _iteration = iterations.next().await;
///         println!("answers {event}");
///     }
/// }
/// # let (sender, events) = mpsc::channel(2);
/// # sender.try_send(7).unwrap();
/// # drop(sender);
/// # urgency::block_on(answer(events));
/// ```
///
/// How many iterations ended, and how many of them late, is in [`WorkerShare`](crate::WorkerShare); a core
/// policy sees the late ones of an interval in [`Usage`](crate::policy::cores::Usage).
#[derive(Debug)]
pub struct Iterations {
    of: Handle,
    /// When the last one was released.
    last: Option<Instant>,
}

/// An iteration that runs: it ends when this is dropped. See [`Iterations`].
///
/// ```
/// use urgency::jobs::{Iteration, Iterations};
///
/// let mut iterations = Iterations::current();
/// let iteration: Iteration = iterations.blocking_next();
/// assert_eq!(iteration.deadline(), None, "this runtime has asked for no real-time task");
/// ```
#[must_use = "dropping it ends the iteration"]
#[derive(Debug)]
pub struct Iteration<'a> {
    iterations: &'a mut Iterations,
    released: Instant,
    period: Option<Duration>,
}

impl Iterations {
    /// The iterations of the calling code's job or runtime. The first can begin at once.
    pub fn current() -> Self {
        Iterations {
            of: Handle::current(),
            last: None,
        }
    }

    /// Waits until the next iteration may begin, and begins it. Of a job that asks for no real-time task, at once.
    ///
    /// # Cancellation
    ///
    /// Dropping the future changes nothing.
    pub async fn next(&mut self) -> Iteration<'_> {
        let mut released = Instant::now();
        while let Some(soonest) = self.soonest().filter(|&soonest| soonest > released) {
            released = soonest;
            // The period may be longer by then.
            sleep_until(released).await;
        }
        self.last = Some(released);
        Iteration {
            released,
            period: self.of.period(),
            iterations: self,
        }
    }

    /// As [`next`](Self::next), for closures.
    pub fn blocking_next(&mut self) -> Iteration<'_> {
        block_on(self.next())
    }

    /// The soonest release, as the period is now.
    fn soonest(&self) -> Option<Instant> {
        Some(self.last? + self.of.period()?)
    }
}

impl Iteration<'_> {
    /// When it was released. It may have begun somewhat later.
    pub fn released(&self) -> Instant {
        self.released
    }

    /// By when it is to end: a period after its release. If the period was stretched meanwhile, a longer one. `None`
    /// if the job asks for no real-time task.
    pub fn deadline(&self) -> Option<Instant> {
        let period = self.period.max(self.iterations.of.period());
        Some(self.released + period?)
    }

    fn is_late(&self) -> bool {
        let now = Instant::now();
        let is_after = |deadline| now > deadline;
        self.period.is_some_and(|it| is_after(self.released + it))
            && self.deadline().is_some_and(is_after)
    }
}

impl Drop for Iteration<'_> {
    fn drop(&mut self) {
        let job = self.iterations.of.job();
        job.iteration_ended(self.is_late());
    }
}
