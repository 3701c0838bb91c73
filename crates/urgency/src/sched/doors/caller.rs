//! What the scheduler knows of the calling code: whether it may wait, for which task it waits, whether its runtime
//! ends.
//!
//! The handles of tasks ask by [`Stacks`], through the scheduler of the awaited task.

use crate::{
    inherit::record,
    sched::{
        poll_context,
        serve::run,
        stack::{FOR_ANYTHING, Me, Stack},
    },
    tasks::{Caller, JoinErrorKind, Stopped, TaskRef},
};
use std::{panic::resume_unwind, sync::atomic::Ordering};

/// Whether the calling code is a task of a runtime that is shut down. Then the task is dropped when its poll returns
/// pending. The caller makes the poll pending: the task must not learn, by an error or a panic, of what ends together
/// with it.
#[cold]
pub(crate) fn ends_with_runtime() -> bool {
    if !poll_context::polls_task() || !is_shut() {
        return false;
    }
    run::with_current_task(|task| {
        // The task runs, so this only marks it. The shutdown has the task in its list, but may not have reached it yet.
        task.map(|task| task.clone().shut_down()).is_some()
    })
}

/// The calling code waits, on its stack, for what its runtime can never bring, because it was shut down. If the code
/// belongs to a task, it unwinds, and the task ends as one that was shut down.
#[cold]
pub(crate) fn unwind_with_runtime() {
    let is_of_task = |me: Me<'_>| me.task().is_some() || me.runs_fork();
    if is_shut() && Stack::with_current(|me| me.is_some_and(is_of_task)) {
        resume_unwind(Box::new(Stopped));
    }
}

/// Whether the calling code is on a stack of a runtime that is shut down.
pub(crate) fn is_shut() -> bool {
    Stack::with_current(|me| me.is_some_and(|me| me.runtime().tasks.live.is_closed()))
}

/// Whether the calling code is on a stack of a runtime that has ended: no event or timer comes for it any more.
pub(crate) fn has_ended() -> bool {
    let ended = |me: Me<'_>| me.runtime().closing.load(Ordering::SeqCst);
    Stack::with_current(|me| me.is_some_and(ended))
}

/// Callers on stacks of a runtime, or on plain threads.
pub(crate) struct Stacks;

impl Caller for Stacks {
    /// Raises `task` to the level of the calling code, if that code is of the task's runtime.
    fn boost(&self, task: &TaskRef) {
        Stack::with_own(|me| {
            if let Some(me) = me.filter(|me| task.is_of(me.runtime())) {
                task.boost_for(me.level());
            }
        });
    }

    /// May the calling code wait for `awaited`? A plain thread may wait for anything, and so may code of another
    /// runtime.
    ///
    /// Code has two levels: the level at which it was created, and the level to which it was raised. Either will do, on
    /// either side. A level that the awaited task only inherits does not count: it may end before the wait does. A
    /// stolen fork has the levels of the code that forked it; its thief does not know which task that code is part of.
    fn may_wait(&self, awaited: &TaskRef) -> Result<(), JoinErrorKind> {
        Stack::with_current(|me| {
            let Some(me) = me.filter(|me| awaited.is_of(me.runtime())) else {
                return Ok(());
            };
            if run::with_current_task(|task| task.is_some_and(|task| task.id() == awaited.id())) {
                return Err(JoinErrorKind::WaitsForItself);
            }
            let base = me.waits_as();
            if base == FOR_ANYTHING {
                return Ok(());
            }
            let levels = &me.runtime().levels;
            let own = awaited.own_level();
            let may_wait = |waiter| {
                levels.may_wait(waiter, awaited.base_level()) || levels.may_wait(waiter, own)
            };
            let raised_enough = || awaited.is_boosted() && own <= base;
            if may_wait(base) || may_wait(me.level()) || raised_enough() {
                return Ok(());
            }
            Err(JoinErrorKind::Inversion {
                waiter: levels.named(base),
                awaited: levels.named(own),
            })
        })
    }

    /// The current task begins to wait for another of its runtime, or the calling code for a task of a job on the same
    /// workers.
    fn waiting_for(&self, awaited: &TaskRef, ticket: u64) {
        let lent_to = Stack::with_current(|me| {
            let me = me?;
            if !awaited.is_of(me.runtime()) {
                return Some(me.runtime().core.clone());
            }
            // In a job of one level no task is raised.
            if me.runtime().levels.len() > 1 {
                run::with_current_task(|task| {
                    if let Some(task) = task {
                        task.begin_wait(awaited, ticket);
                    }
                });
            }
            None
        });
        if let Some(core) = lent_to {
            let loan = core.lend_for(awaited);
            loan.into_iter()
                .for_each(|loan| awaited.keep_loan(ticket, loan));
        }
    }

    /// The calling code has the result of another task.
    fn took(&self, awaited: &TaskRef) {
        record::took(awaited);
    }

    /// The current task, or other code, ended its wait for another.
    fn waited_for(&self, awaited: &TaskRef, ticket: u64) {
        awaited.end_loan(ticket);
        run::with_current_task(|task| {
            if let Some(task) = task {
                task.end_wait(awaited, ticket);
            }
        });
    }

    fn ends_with_runtime(&self) -> bool {
        ends_with_runtime()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Runtime, sync::Notify};
    use std::{
        sync::Arc,
        thread,
        time::{Duration, Instant},
    };

    crate::levels! {
        Two: Urgent > Batch
    }

    /// How many references a task has while another waits for it.
    fn references(runtime: &Runtime) -> usize {
        let go = Arc::new(Notify::new());
        let awaited = runtime.spawn(go.clone().notified_owned());
        let seen = awaited.task().clone();
        let waits = runtime.spawn(awaited);
        let waiter = waits.task().clone();
        let limit = Instant::now() + Duration::from_secs(20);
        let state = loop {
            let is_awaited = format!("{seen:?}").contains("waiter");
            // Once it is awaited, the poll that noted the wait has ended if no poll runs.
            let runs = [&seen, &waiter].map(|task| format!("{task:?}").contains("running"));
            if is_awaited && runs == [false; 2] {
                break format!("{seen:?}");
            }
            assert!(Instant::now() < limit, "{seen:?}");
            thread::yield_now();
        };
        go.notify_one();
        waits.get().unwrap().unwrap();
        let words: Vec<_> = state.split(' ').collect();
        let place = words.iter().position(|word| word.starts_with("references"));
        words[place.unwrap() - 1].parse().unwrap()
    }

    /// The waiting task's note counts one.
    #[test]
    fn a_wait_is_noted_only_where_a_task_can_be_raised() {
        let build = |builder: crate::Builder| builder.workers(1).build().unwrap();
        let of_two = references(&build(Runtime::builder().levels::<Two>()));
        let of_one = references(&build(Runtime::builder()));
        assert_eq!(of_two, of_one + 1);
    }
}
