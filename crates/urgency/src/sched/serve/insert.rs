//! Insertion: how ready work gets in.
//!
//! Every way in (a task is spawned or woken, a stack's wait is over, a stack is abandoned, forks are published) ends in
//! [`Job::announced`]:
//!
//! 1. the entry is in the pool, in a shard of it;
//! 2. the shard is shown and the level's bit is set (a full barrier);
//! 3. workers that serve a less urgent level, [`MOST_ALERTED`] at most, are alerted through their stacks' attention
//!    words: the prompt principle. An alerted worker that finds nothing has lost a look, not its place: it takes the
//!    work first and abandons its stack only if it got some;
//! 4. if no worker searches, an idle worker is started that is not in reserve (`idle.rs`);
//! 5. if there is none, the relief timer is armed: a stack must check in within a millisecond, or within four if all
//!    that waits is forks of stacks that run.
//!
//! A wake-up from inside a task's poll may skip step 4 once: the poll is about to end, and then this
//! worker takes the entry itself. That is what makes a ping-pong of two tasks cost no system call. If
//! the poll does not end, the relief timer starts the idle worker.
//!
//! Such an entry goes into the polling stack's own ring. In a runtime of one level it needs no barrier, which costs
//! as much as the rest of a wake-up: its stack looks at it when the poll ends, and that return to the scheduler is a
//! barrier. For a poll that does not end, the expiry of relief brings the barrier, to all processors (`fence::heavy`).
//! With several levels, a less urgent worker may have to move up for the entry at once.
//!
//! A thread that comes from the poller inserts a *batch*: steps 3 to 5 follow when all entries are in, and
//! not for the one that it is going to run itself.

use crate::protocol::attention::PREEMPT;
use crate::{
    protocol::fence,
    sched::{
        StolenFork,
        forks::hunger::{MOST_ALERTED, each_level, turn_now},
        job::Job,
        machine::claim::Want,
        order::entry::Entry,
        poll_context,
        stack::{Me, Stack},
        worker::{NO_LEVEL, Worker},
    },
    sys::{chaos, clock},
    tasks::TaskRef,
};
use std::{ptr, sync::Arc};
use urgency_policy::pool::Arrival;

impl Job {
    /// A task became ready.
    #[inline(always)]
    pub(crate) fn insert_task(&self, task: TaskRef) {
        let level = task.level();
        if self.pools.has_queues(level) {
            return self.insert_task_into_queues(task);
        }
        let Some(task) = poll_context::push_to_ring(self, task) else {
            Stack::with_current(|me| {
                let me = me.expect("a stack that polls a task has pushed into its ring");
                if self.pools.rings_are_light && poll_context::defer_wake_up(self) {
                    self.inserted_lightly(me, level);
                } else {
                    self.pools.announce_ring(&me, me.worker(), level);
                    self.announced(level, false);
                }
                // Another thread may have taken the worker, and emptied the ring, before the push.
                if me.attention.is_revoked() {
                    self.flush_ring(&me);
                }
            });
            return;
        };
        // Aging places what becomes ready for a task's sake alike; other orders tell more arrivals apart
        // (`arrival.rs`).
        self.put_into_shard(level, Arrival::Task, Entry::Task(task));
    }

    /// Puts an entry into the pool of its level.
    #[inline]
    pub(crate) fn put(&self, level: u8, arrival: Arrival, entry: Entry) {
        let pool = self.pools.at(level);
        match pool.queues() {
            None => self.put_into_shard(level, arrival, entry),
            Some(queues) => {
                let is_forks = entry.is_forks();
                self.put_into_queues(queues, level, arrival, entry);
                self.pools.ready.announce(level);
                self.announced(level, is_forks);
            }
        }
    }

    #[inline]
    fn put_into_shard(&self, level: u8, arrival: Arrival, entry: Entry) {
        let number = self.shard_for(arrival);
        let shard = self.pools.at(level).shard(number);
        let is_forks = entry.is_forks();
        let stamp = shard.push(arrival, entry);
        self.pools.announce_shard(level, number, stamp);
        self.announced(level, is_forks);
    }

    /// What is left in the ring of `stack`, whose worker goes elsewhere, goes into the pool.
    #[inline]
    pub(crate) fn flush_ring(&self, stack: &Stack) {
        if !stack.ring.is_empty() {
            self.flush_ring_cold(stack);
        }
    }

    #[cold]
    fn flush_ring_cold(&self, stack: &Stack) {
        while let Some(task) = stack.pop_ring() {
            if !task.is_of(self) {
                task.put_back();
                continue;
            }
            let level = task.level();
            self.put(level, Arrival::Task, Entry::Task(task));
        }
    }

    /// An idle worker goes to a stack that can go on, and is in its pool. `false`: there is none for its level.
    pub(in crate::sched) fn resume_with_idle(&self, stack: &Arc<Stack>) -> bool {
        let level = self.level_of(stack);
        let claimed = level.and_then(|level| self.claim_awake(Want::Serving(1 << level)));
        if let Some(worker) = claimed {
            self.give_to_ready(worker, stack);
        }
        claimed.is_some()
    }

    /// A worker that was claimed goes to a stack that can go on, or, if another thread acts on that, looks by itself.
    fn give_to_ready(&self, worker: &Worker, stack: &Arc<Stack>) {
        if self.claim_stack(stack) {
            self.deliver_clear(worker, stack);
        } else {
            // Not simply back: a stack that started meanwhile saw no hungry worker.
            self.start(worker);
        }
    }

    /// A stack's wait is over; the caller ended it and owes this entry. If a worker is idle, nothing
    /// older waits, and the stack gets it directly: one wake-up instead of two. But a thread that looks for events
    /// before it sleeps, and finds what its own stack waits for, has a worker: it takes the stack out of the pool.
    pub(crate) fn resume(&self, stack: Arc<Stack>) {
        let Some(level) = self.level_of(&stack) else {
            return;
        };
        stack.note_ready();
        let is_own = |own: Option<Me<'_>>| own.is_some_and(|own| ptr::eq(own.shared(), &*stack));
        if Stack::with_own(is_own) {
            return self.insert_resumable(stack);
        }
        let overtakes = || {
            self.pools
                .is_next_at(level)
                .then(|| self.revoke_overrun(level))?
        };
        let claimed = self.claim_awake(Want::Serving(1 << level));
        match claimed.or_else(overtakes) {
            Some(worker) => self.give_to_ready(worker, &stack),
            None => self.insert_resumable(stack),
        }
    }

    /// Puts a resumable stack at the tail of its level's pool; one that was handed a lock, among the stacks that are
    /// always first.
    pub(crate) fn insert_resumable(&self, stack: Arc<Stack>) {
        let Some(level) = self.level_of(&stack) else {
            return;
        };
        let arrival = if poll_context::grants() {
            Arrival::Abandoned
        } else {
            Arrival::Resumable
        };
        self.put(level, arrival, Entry::Stack(stack));
    }

    /// The level of `stack` among this job's. `None`: it has taken up another job since the caller saw it. If it could
    /// go on then, another entry was enough, and it needs none here.
    pub(in crate::sched) fn level_of(&self, stack: &Stack) -> Option<u8> {
        let level = stack.level();
        chaos::delay();
        // The second: the stack has been with another job between the looks at its level and its job.
        (stack.is_of(self) && usize::from(level) < self.pools.len()).then_some(level)
    }

    /// Puts an abandoned stack into its level's mugging queue.
    pub(crate) fn insert_abandoned(&self, stack: Arc<Stack>) {
        let level = stack.level();
        stack.note_ready();
        self.put(level, Arrival::Abandoned, Entry::Stack(stack));
    }

    /// A stolen fork goes back: no thread could be had for it.
    pub(crate) fn insert_fork(&self, forked: StolenFork) {
        let level = forked.origin.level;
        self.put(level, Arrival::Task, Entry::Fork(Box::new(forked)));
    }

    /// The deque of `stack` has public forks: it must be in the pool of their level. An entry from the time when the
    /// stack ran something at another level is left where it is, and is stale.
    pub(crate) fn insert_deque(&self, stack: &Stack) {
        self.insert_deque_as(stack, Arrival::PublicForks);
    }

    /// As [`Job::insert_deque`], of a stack that is about to wait if that is what arrives.
    pub(crate) fn insert_deque_as(&self, stack: &Stack, arrival: Arrival) {
        let level = stack.level();
        if stack.pooled.enter(level) {
            chaos::delay();
            // The second: the stack has been with another job between the looks at its level and its job.
            if !stack.is_of(self) || usize::from(level) >= self.pools.len() {
                return stack.insert_deque_elsewhere(level, arrival);
            }
            self.put(level, arrival, Entry::Deque(stack.arc()));
        }
    }

    /// Steps 3 to 5, for the forks of a stack or for something else. If these are no forks, step 5 needs no look at the
    /// stacks.
    #[inline]
    fn announced(&self, level: u8, is_forks: bool) {
        if poll_context::is_batch_of(self) {
            return;
        }
        if self.pools.are_several() {
            self.alert_below(level);
        }
        if self.searchers.count() != 0 && !self.seats.waits() {
            return;
        }
        if poll_context::defer_wake_up(self) {
            self.arm_relief();
        } else if is_forks {
            self.start_idle();
        } else {
            self.start_idle_after(level);
        }
    }

    /// As `Pools::announce_ring`, without a barrier, for an entry in the ring of the polling stack, in a runtime of one
    /// level. What others may miss of it meanwhile is made up for when the poll ends, or when relief expires.
    #[inline]
    fn inserted_lightly(&self, me: Me<'_>, level: u8) {
        fence::light();
        if !self.pools.is_announced(me.worker(), level) {
            self.pools.announce_ring(&me, me.worker(), level);
        }
        self.arm_light();
    }

    /// A poll of `me` ended, behind the barrier of its return to the scheduler: an entry that it made lightly may be
    /// hidden under a bit that was being cleared.
    #[inline]
    pub(crate) fn make_up(&self, me: Me<'_>) {
        let level = me.level();
        fence::behind_locked();
        if !self.pools.is_announced(me.worker(), level) && !me.ring.is_empty() {
            self.pools.announce_ring(&me, me.worker(), level);
        }
    }

    /// A batch of insertions ended, and the caller has a worker for one of the entries, or none. The
    /// others are in for steps 3 to 5.
    pub(crate) fn batch_inserted(&self, entries: usize, has_worker: bool) {
        if entries > usize::from(has_worker)
            && let Some(level) = self.most_urgent_queued()
        {
            self.rest_inserted(level);
        }
    }

    /// Steps 3 to 5 for all that is in, at `level` and below.
    pub(crate) fn rest_inserted(&self, level: u8) {
        if self.seats.is_on() {
            // A less urgent one may be what a seat draws its worker to.
            self.alert_drawn();
        } else if self.pools.are_several() {
            self.alert_below(level);
        }
        if self.searchers.count() == 0 || self.seats.waits() {
            self.start_idle();
        }
    }

    /// Alerts workers that serve something less urgent than `level`, the least urgent first. In fair rounds, all
    /// whose primary level it is; not one that serves its primary level.
    pub(crate) fn alert_below(&self, level: u8) {
        if self.seats.is_on() {
            self.workers().for_each(|worker| self.alert(worker, level));
        } else if self.served.below(level) != 0 {
            self.alert_some(level);
        }
    }

    #[inline(never)]
    fn alert_some(&self, level: u8) {
        self.some_below(level)
            .for_each(|worker| self.alert(worker, level));
    }

    /// Workers that serve something less urgent than `level`, the least urgent first: all of them if they are few, else
    /// others each time.
    pub(in crate::sched) fn some_below(&self, level: u8) -> impl Iterator<Item = &Worker> {
        let turn = turn_now();
        let levels = each_level(self.served.below(level));
        let workers = levels.flat_map(move |lower| self.serving_at(lower, turn));
        workers.take(MOST_ALERTED)
    }

    pub(in crate::sched) fn alert(&self, worker: &Worker, level: u8) {
        let serves = worker.level_in(self);
        if serves != NO_LEVEL && self.seats.of(worker).is_drawn_by(level, serves) {
            worker.want(level, clock::now());
            if let Some(holder) = self.core.holder(worker) {
                holder.attention.request(PREEMPT);
            }
        }
    }
}

impl Stack {
    /// The stack has taken up another job, whose pool has no entry for what this one has just noted as queued. If its
    /// owner published a fork meanwhile, it found the note. Both change the same word: the look behind the taking back
    /// sees that fork.
    #[cold]
    fn insert_deque_elsewhere(&self, level: u8, arrival: Arrival) {
        self.pooled.leave(level);
        if self.deque.seems_public()
            && let Some(job) = self.job()
        {
            // It may be this one again.
            job.insert_deque_as(self, arrival);
        }
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use crate::{
        Runtime,
        sched::tests::{fork, stack_of},
    };
    use std::{
        sync::atomic::Ordering,
        thread,
        time::{Duration, Instant},
    };

    crate::levels! { Order: Urgent > Usual > Idle }

    /// Threads that ended its wait, or raised it, saw it with code of the first job. An older entry was enough for the
    /// stack, and it has taken up a job with more levels.
    #[test]
    fn a_stack_that_has_gone_on_to_another_job_is_put_into_no_pool_of_the_first() {
        let first = Runtime::builder().workers(1).build().unwrap();
        let second = Runtime::builder().share_workers_with(&first);
        let second = second.levels::<Order>().build().unwrap();
        let job = first.job();
        let (mut binding, stack) = stack_of(second.job());
        // No worker is idle.
        let worker = job.claim(Want::Any).unwrap();
        job.resume(stack.clone());
        job.insert_resumable(stack.clone());
        // It had the level of the second job at the one look, and the first job at the other.
        binding.take_up(first.job().clone());
        binding.me().set_level(2);
        job.resume(stack.clone());
        job.insert_resumable(stack.clone());
        assert_eq!(job.queued(0), 0);
        binding.me().set_level(0);
        job.insert_resumable(stack);
        assert_eq!(job.queued(0), 1);
        job.release(worker);
    }

    /// The owner published a fork, and found that an entry was noted. The thread that noted it had seen the stack with
    /// another job, and takes the note back.
    #[test]
    fn a_stack_that_is_back_before_a_note_is_taken_back_has_an_entry() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job();
        let (binding, stack) = stack_of(job);
        assert!(stack.pooled.enter(0));
        let ran = fork(binding.me());
        assert!(binding.me().deque().publish(true));
        stack.insert_deque_elsewhere(0, Arrival::PublicForks);
        let limit = Instant::now() + Duration::from_secs(20);
        while !ran.load(Ordering::SeqCst) {
            assert!(Instant::now() < limit, "the fork is in no pool");
            thread::sleep(Duration::from_millis(1));
        }
    }
}
