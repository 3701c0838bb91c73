//! The way from any thread to its runtime, and what the rooms above ask about the calling code.
//!
//! The runtime of the calling code is the one that it has entered (`enter.rs`), else its stack's, else the global one.
//! Code that needs a stack of a runtime, as `join` does, has one already or is a plain thread that borrows one. A stack
//! of another level or of another runtime on the same workers is set aside meanwhile, as in a blocking call: it waits
//! for the inner one, and must not keep a worker from it.

use super::{
    Runtime,
    enter::{entered, entered_again},
};
use crate::{
    rank::LevelId,
    reactor::driver::Driver,
    sched::{
        job::Job,
        poll_context,
        serve::run,
        stack::{FOR_ANYTHING, Me, Stack},
        switch::block::{blocking, give_kept_worker},
    },
    tasks::{self, TaskRef},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    sync::Arc,
};

/// The runtime of the calling thread, else the global one.
pub(crate) fn current() -> Arc<Job> {
    with_current(Job::arc)
}

/// The runtime of the calling code, if it has one.
pub(super) fn current_if_any() -> Option<Arc<Job>> {
    with_own(|job| job.map(Job::arc))
}

/// Runs `f` with the runtime of the calling code, else the global one.
fn with_current<R>(f: impl FnOnce(&Job) -> R) -> R {
    with_own(|job| f(job.unwrap_or_else(|| Runtime::global().job())))
}

/// Runs `f` with the runtime of the calling code, if it has one: entered, or of its stack.
fn with_own<R>(f: impl FnOnce(Option<&Job>) -> R) -> R {
    match entered() {
        Some(job) => f(Some(&job)),
        None => Stack::with_own(|me| f(me.map(Me::runtime))),
    }
}

/// The level of the calling code on `job`: its stack's level, or else the least urgent one.
pub(crate) fn level_on(job: &Job) -> u8 {
    Stack::with_own(|me| match me {
        Some(me) if me.is_of(job) => me.level(),
        _ => job.least_urgent(),
    })
}

/// As [`level_on`] for new work, and the level by which the waits of the calling code are judged. A level that its task
/// inherits by a lock ends with the lock, so new work has none of it. (A stolen fork does not know what its task
/// inherits.)
pub(crate) fn levels_on(job: &Job) -> (u8, u8) {
    Stack::with_own(|me| match me {
        Some(me) if me.is_of(job) => match (me.level(), me.waits_as()) {
            (level, FOR_ANYTHING) => (level, level),
            (level, waits_as) if level == waits_as || me.runs_fork() => (level, waits_as),
            (level, waits_as) => {
                let own = me.with_task(|task| task.map(TaskRef::own_level));
                (own.unwrap_or(level), waits_as)
            }
        },
        _ => (job.least_urgent(), job.least_urgent()),
    })
}

#[track_caller]
pub(crate) fn rank_on(job: &Job, level: LevelId) -> u8 {
    let count = job.levels.len();
    assert!(
        usize::from(level.rank()) < count,
        "there is no level {level} in a runtime with {count} level(s): it was built with {:?}; use a \
         level below {count}, or build the runtime with `Runtime::builder().levels::<..>()`",
        job.levels.names()
    );
    level.rank()
}

/// The driver of the calling thread's runtime.
pub(crate) fn driver() -> std::io::Result<Arc<Driver>> {
    with_current(|job| job.core.driver().cloned())
}

/// A driver that goes on to serve: of the calling code's runtime, or else of the global one. It starts no runtime.
pub(crate) fn live_driver() -> Option<Arc<Driver>> {
    let of = |job: &Job| {
        // In a child of `fork` the parent's driver serves nothing.
        let driver = job.core.process.is_this().then(|| job.core.driver().ok());
        driver?.filter(|driver| !driver.is_shut()).cloned()
    };
    let own = with_own(|job| job.and_then(of));
    own.or_else(|| Runtime::global_if_any().and_then(|runtime| of(runtime.job())))
}

/// Runs `f` on the calling thread's stack; a plain thread borrows one of the global runtime.
pub(crate) fn as_stack<R>(f: impl FnOnce(Me<'_>) -> R) -> R {
    Stack::with_current(|me| match me {
        Some(me) => f(me),
        None => as_external(f),
    })
}

fn as_external<R>(f: impl FnOnce(Me<'_>) -> R) -> R {
    let job = current();
    // Inside of a blocking call the levels come from the code around it.
    let (level, waits_as) = Stack::with_own(|aside| {
        let aside = aside.filter(|aside| aside.is_of(&job));
        (aside.map(|me| me.level()), aside.map(|me| me.waits_as()))
    });
    as_external_of(&job, level, |me| {
        waits_as
            .into_iter()
            .for_each(|level| me.set_waits_as(level));
        f(me)
    })
}

/// Runs `f` on a stack of `job`, at `level` if one is named. If the calling thread is such a stack
/// already, on that one.
pub(crate) fn as_external_of<R>(
    job: &Arc<Job>,
    level: Option<u8>,
    f: impl FnOnce(Me<'_>) -> R,
) -> R {
    let is_there = |me: Me<'_>| me.is_of(job) && level.is_none_or(|level| level == me.level());
    Stack::with_current(|outer| match outer {
        Some(me) if is_there(me) => {
            let _inside = entered_again(job);
            f(me)
        }
        // At another level, or in another runtime on the same workers: the outer stack waits for the inner one, and
        // must not keep a worker from it.
        Some(outer) if outer.is_in(&job.core) => blocking(|| as_external_of(job, level, f)),
        _ => on_external_of(job, level, f),
    })
}

/// Runs `f` on a stack of `job` that the calling thread borrows.
fn on_external_of<R>(job: &Arc<Job>, level: Option<u8>, f: impl FnOnce(Me<'_>) -> R) -> R {
    poll_context::may_wait();
    // Code of the runtime that is in a blocking call is part of what a shutdown waits for already.
    let is_own = Stack::is_aside_of(job);
    give_kept_worker();
    let _visit = (!is_own).then(|| match job.visit() {
        Some(visit) => visit,
        None => panic!(
            "a plain thread called `run`, `join`, `scope`, `block_on` or a function of `par` in a runtime that was shut \
             down; let the thread end first, or build another runtime"
        ),
    });
    let result = poll_context::outside_poll(|| {
        let binding = job.enter_external(level);
        let result = catch_unwind(AssertUnwindSafe(|| f(binding.me())));
        // Children of a scope that was opened on another stack: no other stack would ever run them.
        run::run_pushed_above(binding.me(), 0);
        job.leave_external(binding);
        result
    });
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// The level of the calling code. Outside any runtime: the least urgent level of the global one, which
/// is where [`spawn`](crate::spawn()) would put new work.
///
/// ```
/// use urgency::{Runtime, current_level, levels};
///
/// levels! { App: Interactive > Batch }
///
/// let runtime = Runtime::builder().levels::<App>().build()?;
/// let level = runtime.at(Batch).spawn(async { current_level() });
/// assert_eq!(level.get().unwrap(), Batch.into());
/// # Ok::<(), urgency::BuildError>(())
/// ```
pub fn current_level() -> LevelId {
    with_current(|job| job.levels.named(level_on(job)))
}

/// The level by which the calling code queues where it waits for something that is not a task. A plain thread has none:
/// it queues as the most urgent.
pub(crate) fn waiting_level() -> u8 {
    Stack::with_own(|me| me.map_or(0, |me| me.level()))
}

/// The calling code has waited in the queue of a lock since this [`ready_stamp`](poll_context::ready_stamp).
pub(crate) fn lock_waited(since: u64) {
    let ticks = poll_context::ready_stamp().saturating_sub(since);
    Stack::with_current(|me| {
        if let Some(me) = me {
            let counters = me.runtime().at(me.worker(), me.level());
            counters.lock_waits.add_as_any(1);
            counters.lock_waited.add_as_any(ticks);
        }
    });
}

/// How many bits of a task's name come from its address.
const NAME_BITS: u32 = 20;

fn name_of(header: NonNull<tasks::Header>) -> u64 {
    (header.addr().get() as u64 >> 4) & ((1 << NAME_BITS) - 1)
}

/// A name for the task whose code is running, in 52 bits: the number of its slot in the table of live tasks,
/// and a part of its address. Code of no task has the name of its stack's proxy. 0 if there is neither.
#[inline]
pub(crate) fn own_name() -> u64 {
    let name = |task: &TaskRef| name_of(task.as_raw()) << 32 | u64::from(task.live_slot());
    Stack::with_current(|me| {
        me.map_or(0, |me| {
            me.with_task(|task| task.map_or_else(|| me.proxy_name(), name))
        })
    })
}

/// Whether code of the calling code's runtime may run at the same time: on another worker, or on a plain thread.
pub(crate) fn others_run() -> bool {
    Stack::with_current(|me| me.is_none_or(|me| me.runtime().core.workers.len() > 1))
}

/// Whether the calling code is in a runtime of several levels.
pub(crate) fn is_leveled() -> bool {
    let leveled = |me: Me<'_>| me.runtime().levels.len() > 1;
    Stack::with_current(|me| me.is_some_and(leveled))
}

/// The task whose code is running, or else the proxy of its stack, if the runtime has several levels.
pub(crate) fn own_task() -> Option<TaskRef> {
    if !is_leveled() {
        return None;
    }
    Stack::with_current(|me| {
        let me = me?;
        me.with_task(|task| match task {
            Some(task) => Some(task.clone()),
            None => (me.proxy_name() != 0).then(|| me.proxy()).flatten(),
        })
    })
}

/// The task of the calling thread's runtime that has this name, or the proxy, if it lives.
pub(crate) fn task_named(name: u64) -> Option<TaskRef> {
    Stack::with_current(|me| {
        let job = me?.runtime();
        let is_it = |header| name_of(header) == name >> 32;
        let found = job.tasks.live.find(name as u32, is_it);
        found.or_else(|| job.proxy_named(name))
    })
}
