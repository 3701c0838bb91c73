//! A snapshot of a runtime's accounting, and the difference of two.
//!
//! The counters are the workers' own (`account/`): each has one writer, and nothing stops while they are read. So
//! values of one snapshot may be a moment apart.

use crate::{
    account::{LatencyHistogram, Overrun, counters::LevelCounters},
    sched::{doors::times::Times, job::Job, worker::Worker},
    sys::clock,
};
use crossbeam_utils::CachePadded;
use std::{iter::Sum, ops::AddAssign, sync::atomic::Ordering, time::Duration};
use urgency_policy::cores::DecisionError;

/// What a runtime did so far; see [`Runtime::stats`](crate::Runtime::stats).
///
/// Counters only grow; the difference of two snapshots, [`Stats::since`], is what happened between them. A snapshot is
/// taken while the workers run, so values that belong together may be a moment apart. What runs now counts up to the
/// moment of the snapshot in [`WorkerLevelStats::running`], and the sleep of an idle worker in
/// [`WorkerStats::asleep`]. The other spans of time count when they end. A span is in one of the times only, and no
/// time of a later snapshot is shorter.
///
/// ```
/// use std::{hint, sync::atomic::{AtomicBool, Ordering::Relaxed}, time::Duration};
///
/// let runtime = urgency::Runtime::builder().workers(1).build()?;
/// static STOP: AtomicBool = AtomicBool::new(false);
/// let computes = runtime.spawn_fn(|| while !STOP.load(Relaxed) { hint::spin_loop() });
/// while runtime.stats().total().running < Duration::from_millis(3) {} // it has not ended
/// STOP.store(true, Relaxed);
/// computes.get().unwrap();
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stats {
    /// By worker.
    pub workers: Vec<WorkerStats>,
    /// By level, most urgent first.
    pub levels: Vec<LevelStats>,
    /// What the runtime has of the workers.
    pub share: WorkerShare,
    /// Threads that exist now.
    pub threads: usize,
    /// The most threads that existed at a time.
    pub threads_peak: usize,
    /// Times when a thread was needed and could not be had: the limit, or the system's refusal.
    pub threads_refused: u64,
    /// Tasks that panicked, whether any code waits for them or not.
    pub panicked: u64,
    /// How often a thread was lowered in the kernel's scheduler, because its worker was revoked for more urgent work:
    /// see [`Builder::lower_threads`](crate::Builder::lower_threads).
    pub lowerings: u64,
    /// What lost its worker to relief, by the names of closures and futures, what went on for longest first: what has
    /// come back, and what goes on now ([`Overrun::now`]). At most 256 are told apart.
    pub overruns: Vec<Overrun>,
    /// Whether the thread that waits for events is in the real-time class: asked for, and permitted.
    pub real_time: bool,
    /// Whether the system lets a lowered thread come back: that takes `CAP_SYS_NICE` or an `RLIMIT_NICE` of 20, for
    /// the usual niceness. Where it does not, a lowered thread runs less urgent work for good. `false` also while
    /// the system refuses the thread that would find out.
    pub can_raise: bool,
}

/// What a runtime has of the workers, which it may [share](crate::Builder::share_workers_with) with others.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct WorkerShare {
    /// How many workers serve it now. Those without work serve nobody.
    pub serving: usize,
    /// How many workers may run at once, on behalf of all runtimes on these workers; the others are in reserve. It
    /// follows what the process may use ([`Builder::workers`](crate::Builder::workers)), and is larger while threads
    /// sleep in the kernel.
    pub usable: usize,
    /// How many the core policy gave it last; `None` if it had no work then, or the policy has nobody to divide
    /// between. Where no runtime has work nothing is divided anew, and this stays.
    /// `serving` is less while it cannot use them, and more while others cannot use theirs.
    pub entitled: Option<usize>,
    /// How often a worker came that had served another runtime at that moment.
    pub came: u64,
    /// How many [`Iterations`](crate::jobs::Iterations) of its task have ended.
    pub iterations: u64,
    /// How many of them ended after their deadlines.
    pub late: u64,
    /// How often the core policy was asked, on behalf of all runtimes on these workers.
    pub decisions: u64,
    /// How often its answer broke a rule. It was not carried out: [`Shares`](crate::policy::cores::Shares) answered
    /// instead.
    pub rejections: u64,
    /// Which rule the last of these answers broke.
    pub rejected: Option<DecisionError>,
    /// The core policy has panicked, and [`Shares`](crate::policy::cores::Shares) decide.
    pub policy_panicked: bool,
}

impl WorkerShare {
    fn of(job: &Job) -> Self {
        let share = job.share_of_workers();
        WorkerShare {
            serving: share.serving,
            usable: job.core.workers.len() - job.core.idle.in_reserve(),
            entitled: share.entitled,
            came: share.came,
            iterations: share.iterations,
            late: share.late,
            decisions: share.policy.decisions,
            rejections: share.policy.rejections,
            rejected: share.policy.rejected,
            policy_panicked: share.policy.panicked,
        }
    }

    /// As [`Stats::since`].
    pub fn since(&self, earlier: &Self) -> Self {
        WorkerShare {
            came: self.came.saturating_sub(earlier.came),
            iterations: self.iterations.saturating_sub(earlier.iterations),
            late: self.late.saturating_sub(earlier.late),
            decisions: self.decisions.saturating_sub(earlier.decisions),
            rejections: self.rejections.saturating_sub(earlier.rejections),
            ..*self
        }
    }
}

/// What one worker did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerStats {
    /// By level, most urgent first.
    pub levels: Vec<WorkerLevelStats>,
    /// Time inside the scheduler with work in hand. Between polls it is sampled.
    pub scheduling: Duration,
    /// Time looking for work.
    pub searching: Duration,
    /// Time unused.
    pub asleep: Duration,
}

macro_rules! level_counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What one worker did at one level.
        #[derive(Debug, Clone, Copy, Default)]
        #[non_exhaustive]
        pub struct WorkerLevelStats {
            $($(#[$doc])* pub $name: u64,)*
            /// Time in user code, what runs now included. It has most of the scheduler's fast path between two polls,
            /// some 50 ns. All of a span is at the level at which it began, also if a wait for it has raised it.
            pub running: Duration,
            /// Time in user code at this level after more urgent work had asked for the worker: up to the next
            /// scheduling point, also if another worker took that work meanwhile. How long it waited is its `latency`.
            pub behind: Duration,
            /// How long the code of `lock_waits` waited, together: a task from the beginning of the poll that came to
            /// the queue up to the beginning of the poll that left it. So it has the time from ready to running, which
            /// `latency` has, too.
            pub lock_waited: Duration,
        }

        impl WorkerLevelStats {
            fn of((counters, running): (&LevelCounters, &u64)) -> Self {
                WorkerLevelStats {
                    $($name: counters.$name.get(),)*
                    running: clock::to_duration(*running),
                    behind: clock::to_duration(counters.behind.get()),
                    lock_waited: clock::to_duration(counters.lock_waited.get()),
                }
            }

            /// What was added after `earlier`, a snapshot of the same worker and level or of the same sum of them.
            pub fn since(&self, earlier: &Self) -> Self {
                WorkerLevelStats {
                    $($name: self.$name.saturating_sub(earlier.$name),)*
                    running: self.running.saturating_sub(earlier.running),
                    behind: self.behind.saturating_sub(earlier.behind),
                    lock_waited: self.lock_waited.saturating_sub(earlier.lock_waited),
                }
            }
        }

        impl AddAssign for WorkerLevelStats {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
                self.running += other.running;
                self.behind += other.behind;
                self.lock_waited += other.lock_waited;
            }
        }
    };
}

level_counters! {
    /// Polls of async tasks.
    tasks,
    /// Closures started on a stack of their own.
    closures,
    /// Forks started after a steal.
    jobs,
    /// Forks taken from another stack's deque.
    steals,
    /// Forks stolen back from the thief of the fork that a stack waits for.
    leaps,
    /// Steals for which the thief had to make the fork public itself.
    raises,
    /// Abandoned stacks taken over from the mugging queue.
    mugs,
    /// Stacks left for more urgent work.
    abandonments,
    /// Times the worker was handed to another thread.
    hand_offs,
    /// Times the worker was taken from a stack that did not check in.
    reliefs,
    /// Times the worker was taken from a less urgent stack by an event.
    promotions,
    /// How often code waited in the queue of a [`Mutex`](crate::sync::Mutex), an
    /// [`RwLock`](crate::sync::RwLock) or a [`Semaphore`](crate::sync::Semaphore), and has the lock now or has given it
    /// up. What is had without a wait is not counted, nor the wait of a thread that is on no worker. What is made of
    /// these counts: a [`OnceCell`](crate::sync::OnceCell), an [admission](crate::life::Admission).
    ///
    /// ```
    /// use urgency::{Runtime, sync::Mutex};
    ///
    /// static LOCK: Mutex<()> = Mutex::const_new(());
    /// let runtime = Runtime::builder().workers(1).build()?;
    /// let held = LOCK.try_lock().expect("it is new");
    /// let waits = runtime.spawn(async { drop(LOCK.lock().await) });
    /// while runtime.stats().levels[0].total.tasks == 0 {}
    /// let asleep = || runtime.stats().workers[0].asleep;
    /// let begun = asleep();
    /// while asleep() == begun {} // until the only worker has nothing to do but wait
    /// drop(held);
    /// waits.get().unwrap();
    /// assert_eq!(runtime.stats().total().lock_waits, 1);
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    lock_waits,
}

/// One level's state, over all workers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LevelStats {
    /// The level's name.
    pub name: &'static str,
    /// The sum over the workers.
    pub total: WorkerLevelStats,
    /// Ready contexts that wait now. What was raised and has run at another level since, or was cancelled, is among
    /// them until a worker comes to it here.
    pub queued: usize,
    /// A bound on how long the oldest of them has waited; `None` if none waits. It is the time since something became
    /// ready while nothing of the level was known to wait, or, if that is less, since the entry that was taken last had
    /// become ready. So it is close where work is taken all the time, and on a level that was quiet. It is too long
    /// for a task that comes while all workers run what they took of its level long ago: no worker has seen meanwhile
    /// that nothing waits. How long work has waited in fact is in `latency`.
    pub oldest_wait: Option<Duration>,
    /// Tasks, closures, and stacks that go on: time from ready to running. What is woken inside of a poll counts as
    /// ready from the beginning of that poll: a clock reading would cost as much as two locked instructions. So behind
    /// a poll that computes for 20 ms before it wakes, this shows up to 20 ms too much.
    pub latency: LatencyHistogram,
}

impl Stats {
    pub(crate) fn of(job: &Job) -> Self {
        let worker = |(worker, times): (&CachePadded<Worker>, Times)| WorkerStats {
            levels: (job.account_of(worker).zip(&times.running))
                .map(WorkerLevelStats::of)
                .collect(),
            scheduling: clock::to_duration(worker.counters.scheduling.get()),
            searching: clock::to_duration(worker.counters.searching.get()),
            asleep: clock::to_duration(times.asleep),
        };
        let process = job.core.process;
        let each = job.core.workers.iter().zip(job.times());
        let workers: Vec<_> = each.map(worker).collect();
        let levels = (0..job.levels.len() as u8)
            .map(|level| level_stats(job, &workers, level))
            .collect();
        let alive = job.core.threads.alive();
        let threads_peak = job.core.threads.peak.load(Ordering::Relaxed);
        Stats {
            workers,
            levels,
            share: WorkerShare::of(job),
            threads: alive.min(threads_peak), // a thread that is about to begin is in the one before it is in the other
            threads_peak,
            threads_refused: job.core.threads.refused.load(Ordering::Relaxed),
            panicked: job.tasks.panicked.load(Ordering::Relaxed),
            overruns: (job.overrunning.overruns).list(
                job.levels.names(),
                job.overrunning_now(),
                process,
            ),
            lowerings: job.core.demoted_stacks.count.load(Ordering::Relaxed),
            real_time: job.core.real_time && crate::sys::thread::can_real_time(),
            can_raise: crate::sys::thread::can_raise(),
        }
    }

    /// The sum over all workers and levels.
    pub fn total(&self) -> WorkerLevelStats {
        self.levels.iter().map(|level| level.total).sum()
    }

    /// What happened after `earlier`, a snapshot of the same runtime: the differences of all counters, histograms and
    /// spans of time. What is a state and not a counter (threads, queues, the longest overrun) is as in `self`.
    ///
    /// ```
    /// let runtime = urgency::Runtime::builder().workers(1).build()?;
    /// runtime.spawn(async {}).get().unwrap();
    /// let before = runtime.stats();
    /// runtime.spawn(async {}).get().unwrap();
    /// let minute = runtime.stats().since(&before);
    /// assert_eq!((minute.levels[0].total.tasks, minute.levels[0].latency.len()), (1, 1));
    /// # Ok::<(), urgency::BuildError>(())
    /// ```
    pub fn since(&self, earlier: &Self) -> Self {
        let workers = self.workers.iter().zip(&earlier.workers);
        let levels = self.levels.iter().zip(&earlier.levels);
        Stats {
            workers: workers.map(|(now, then)| now.since(then)).collect(),
            levels: levels.map(|(now, then)| now.since(then)).collect(),
            share: self.share.since(&earlier.share),
            threads_refused: self.threads_refused.saturating_sub(earlier.threads_refused),
            panicked: self.panicked.saturating_sub(earlier.panicked),
            lowerings: self.lowerings.saturating_sub(earlier.lowerings),
            overruns: Overrun::since(&self.overruns, &earlier.overruns),
            ..*self
        }
    }

    /// These are the last of a job: nothing of it waits, goes on or has a worker, though the scheduler may still have
    /// entries of tasks that were cancelled, and the thread that ended the last task.
    pub(crate) fn over(mut self) -> Self {
        for level in &mut self.levels {
            (level.queued, level.oldest_wait) = (0, None);
        }
        (self.share.serving, self.share.entitled) = (0, None);
        self.overruns.iter_mut().for_each(Overrun::come_back);
        self
    }
}

impl WorkerStats {
    /// As [`Stats::since`], of one worker.
    pub fn since(&self, earlier: &Self) -> Self {
        let levels = self.levels.iter().zip(&earlier.levels);
        WorkerStats {
            levels: levels.map(|(now, then)| now.since(then)).collect(),
            scheduling: self.scheduling.saturating_sub(earlier.scheduling),
            searching: self.searching.saturating_sub(earlier.searching),
            asleep: self.asleep.saturating_sub(earlier.asleep),
        }
    }
}

impl LevelStats {
    /// As [`Stats::since`], of one level.
    pub fn since(&self, earlier: &Self) -> Self {
        LevelStats {
            total: self.total.since(&earlier.total),
            latency: self.latency.since(&earlier.latency),
            ..*self
        }
    }
}

impl Sum for WorkerLevelStats {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(WorkerLevelStats::default(), |mut sum, one| {
            sum += one;
            sum
        })
    }
}

fn level_stats(job: &Job, workers: &[WorkerStats], level: u8) -> LevelStats {
    let each = job.core.workers.iter();
    let histograms = each.map(|worker| &job.at(worker, level).latency);
    let place = usize::from(level);
    LevelStats {
        name: job.levels.names()[place],
        total: workers.iter().map(|worker| worker.levels[place]).sum(),
        queued: job.queued(level),
        oldest_wait: job.oldest_wait(level).map(clock::to_duration),
        latency: histograms.map(LatencyHistogram::of).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_differences_is_the_difference_of_sums() {
        let of = |tasks, running| WorkerLevelStats {
            tasks,
            running: Duration::from_millis(running),
            ..WorkerLevelStats::default()
        };
        let (before, after) = ([of(1, 5), of(7, 0)], [of(4, 9), of(7, 2)]);
        let since = after.iter().zip(&before).map(|(now, then)| now.since(then));
        let since: WorkerLevelStats = since.sum();
        let sums = [before, after].map(|all| all.into_iter().sum::<WorkerLevelStats>());
        assert_eq!((since.tasks, since.running), (3, Duration::from_millis(6)));
        assert_eq!(sums[1].since(&sums[0]).tasks, since.tasks);
        assert_eq!(sums[0].since(&sums[1]).tasks, 0, "the wrong way round");
    }
}
