//! A thread in `block_on` that *lends* itself: tasks are polled on it while its future waits, as in a current-thread
//! runtime of Tokio's.
//!
//! It does so in a runtime of [`Builder::new_current_thread`](crate::Builder::new_current_thread), which has one worker
//! and one level. The polls run on top of the wait, with nothing of the waiting code in their way: it has no task and
//! no forks, so what the polls fork begins at the deque's first index. What they make ready stays in the stack's ring
//! until the polls end. (Each had a turn of its own, at whose end the ring went to the pool: 16 tasks in a `JoinSet`
//! took 1.63 times the instructions that they take with Tokio.)
//!
//! Work that is no poll gets another thread.

use crate::{
    sched::{
        Work,
        core::period,
        inherit::inheriting::run_as,
        job::Job,
        poll_context,
        serve::{run, turns::MOST_TURNS},
        stack::Me,
    },
    sys::{
        clock,
        primitives::atomic::{Ordering, fence},
    },
    tasks::TaskRef,
};

impl Job {
    /// Whether `me` *lends* its thread while its code waits: tasks are polled there, as in a current-thread runtime of
    /// Tokio's. The code must be the plain thread's own. A task that waits on top of it holds it up.
    pub(crate) fn lends(&self, me: Me<'_>) -> bool {
        self.lends
            && self.is_visited_here()
            && me.with_task(|task| task.is_none())
            && me.deque.bottom() == 0
            && !self.core.is_shared()
    }

    /// As [`Job::suspend`], of a stack that lends its thread. What is ready comes before a woken body, as in Tokio:
    /// programs count on it.
    pub(crate) fn suspend_lending(&self, me: Me<'_>) {
        // All waits of a stack share one token: a wait of what ran may have consumed the wake-up. And if there are
        // other jobs by now, the thread does not decide where the worker goes.
        let goes_on = |waits| me.waits() == waits && self.lends(me);
        loop {
            let waits = me.waits();
            let other = self.poll_on_top(me, None, MOST_TURNS);
            if !goes_on(waits) {
                if let Some(work) = other {
                    self.put_back(me.worker(), work);
                }
                return;
            }
            if !self.suspend_or_run(me, true, other) || !goes_on(waits.wrapping_add(1)) {
                return;
            }
            self.look_if_due(me.worker());
        }
    }

    /// So many polls on top of this stack, which lends its thread: of this work, and of what is ready then. They end as
    /// well once they have taken a relief period: the stack's own code may be ready. Returns other work that comes
    /// before these.
    #[must_use]
    pub(in crate::sched) fn poll_on_top(
        &self,
        me: Me<'_>,
        mut first: Option<Work>,
        most: u32,
    ) -> Option<Work> {
        let (level, waits_as) = (me.level(), me.waits_as());
        let until = clock::now() + period();
        let polls = || {
            for _ in 0..most {
                match first.take().or_else(|| self.next_on_top(me)) {
                    Some(Work::Task(task)) if !task.is_closure() => self.poll_one_on_top(me, task),
                    work => return work,
                }
                // The clock was read as the poll ended.
                if me.worker().since() >= until {
                    break;
                }
            }
            None
        };
        let other = me.interrupts_wait(|| run_as(None, || poll_context::apart(polls)));
        self.flush_ring(&me);
        me.set_level(level);
        me.set_waits_as(waits_as);
        fence(Ordering::SeqCst);
        // A thread that raised the task of this stack meanwhile saw another task here, or the level of another.
        me.raised_meanwhile();
        other
    }

    fn next_on_top(&self, me: Me<'_>) -> Option<Work> {
        if let Some(task) = self.next_in_own_ring(me, me.worker()) {
            return Some(Work::Task(task));
        }
        // A look that finds nothing clears the level's bit, which the next insertion sets again.
        let is_any = self.is_queued(me.level());
        is_any
            .then(|| self.next_ready(me, me.worker(), u64::MAX))
            .flatten()
    }

    fn poll_one_on_top(&self, me: Me<'_>, task: TaskRef) {
        let (worker, level, now) = (me.worker(), task.level(), clock::now());
        poll_context::begin_poll(now);
        self.go(me, level);
        me.set_waits_as(task.base_level());
        me.set_task(Some(task.as_raw()));
        let claimed = |task: &_| self.begins_task(me, worker, task, level, now);
        let ran = task.run_then(me.runner(), claimed, |_| ());
        me.set_task(None);
        poll_context::end_poll();
        run::run_pushed_above(me, 0);
        self.come_in(me);
        self.tasks.count_cancelled(ran);
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use crate::{runtime::Builder, sched::stack::Stack, scheduling_point, spawn, yield_now};
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        },
        time::{Duration, Instant},
    };

    /// In the pool they would cost twice as much.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos leaves rings out at times")]
    fn what_the_body_spawns_is_in_the_ring_of_its_stack_until_relief_looks() {
        let runtime = Builder::new_current_thread().build().unwrap();
        // An expiry may come first.
        let in_ring = (0..100).filter(|_| {
            runtime.block_on(async {
                let task = spawn(async {});
                let was_in_ring = Stack::with_current(|me| {
                    let me = me.unwrap();
                    let (job, was_in_ring) = (me.runtime(), !me.ring.is_empty());
                    job.empty_rings_of_long();
                    assert!(me.ring.is_empty());
                    was_in_ring
                });
                task.await.unwrap();
                was_in_ring
            })
        });
        assert!(in_ring.count() > 50);
    }

    /// 64 of them came first.
    #[test]
    fn a_woken_body_does_not_wait_for_many_polls_that_compute() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let (polls, stop) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        runtime.block_on(async {
            let (counts, stops) = (polls.clone(), stop.clone());
            let computation = spawn(async move {
                while !stops.load(SeqCst) {
                    counts.fetch_add(1, SeqCst);
                    let end = Instant::now() + Duration::from_millis(2);
                    while Instant::now() < end {}
                    yield_now().await;
                }
            });
            for _ in 0..5 {
                let before = polls.load(SeqCst);
                spawn(async {}).await.unwrap();
                let polls = polls.load(SeqCst) - before;
                assert!(polls < 10, "the body waited for {polls} polls");
            }
            stop.store(true, SeqCst);
            computation.await.unwrap();
        });
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos leaves turns to other threads")]
    fn a_body_that_computes_gives_all_that_it_has_spawned_one_turn() {
        let runtime = Builder::new_current_thread().build().unwrap();
        let limit = Instant::now() + Duration::from_secs(20);
        // An expiry may take the worker of a thread that the kernel has stopped.
        let together = (0..15).filter(|_| {
            runtime.block_on(async {
                let ran = Arc::new(AtomicUsize::new(0));
                for _ in 0..8 {
                    let ran = ran.clone();
                    spawn(async move { ran.fetch_add(1, SeqCst) }).detach();
                }
                while ran.load(SeqCst) == 0 {
                    assert!(Instant::now() < limit, "no task had a turn");
                    scheduling_point();
                }
                ran.load(SeqCst) == 8
            })
        });
        assert!(together.count() > 7);
    }
}
