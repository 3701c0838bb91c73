//! Hunger: which workers would come for a stack's fork.
//!
//! Forks are private until a worker is hungry, which makes forking cheap. Hungry are
//!
//! - a worker that searches, or is idle, and serves the level (`search.rs`, `reserved_seats.rs`), but for those in
//!   reserve (`reserve.rs`);
//! - a worker that serves something *less urgent*: urgent work gets all workers, forked work as well;
//! - a donor that misses the level of its round (`rounds.rs`);
//! - a worker of another job, if the policy gives this one more workers than it has (`cores/at_once.rs`).
//!
//! # Workers below
//!
//! Workers below have work, so nothing wakes them, and their stacks look at nothing but their attention words. Forks
//! reach them as any other urgent work does: the deque goes into the pool, and that alerts them (`insert.rs`), or has
//! relief revoke them (`relief.rs`). When forks are published:
//!
//! 1. A stack that begins while a worker may serve something below has no room: its first fork looks closer, and is
//!    published if such a worker is there.
//! 2. Public forks are enough until they are gone. If the owner takes the last public fork back, the owner has no room
//!    again (`Me::pop_public`). If a thief takes it, the thief asks the owner to share ([`Job::ask_if_last`]).
//! 3. A worker that goes down to a less urgent level asks stacks above to share, and sees to it that their public
//!    forks are in the pool ([`Job::miss_above`]). It has shown its level before it looks, as the stack of step 1 has:
//!    one of the two sees the other. It asks [`MOST_ALERTED`] stacks, others each time. If more are above, the next
//!    expiry of relief asks them all, within four periods ([`Job::leave_asking`]).
//! 4. The stack above that has a public fork has no room until the workers below have come, so it looks again at its
//!    next scheduling point. A worker below that has left the request unanswered for [`ANSWER`] by then is revoked
//!    ([`Job::press_below`]).
//! 5. A stack in a long leaf answers nothing. So each asker, of steps 2 and 3, arms the relief timer if the stack has
//!    forks, and an expiry makes them public ([`Job::show_hidden_from_below`]).
//!
//! *Named race, "go down under forget"*: a worker goes down while a third party has taken the group or the level of a
//! stack above out of its word by mistake (`groups.rs`, `served.rs`). The worker does not see the stack, and the stack
//! has looked before the worker went down. The third party finds the mistake, and leaves the asking to the next expiry.
//!
//! # Rejected
//!
//! To revoke a worker below as soon as there is a fork for it: a stack that comes to a scheduling point soon hands its
//! worker over in 3 to 5 µs, and to wake a thread on the other processor takes 30.
//!
//! A fork that is not stolen pays for this only while a worker serves something less urgent and no fork is public.

use crate::protocol::attention::{PREEMPT, SHARE};
use crate::sys::primitives::atomic::{Ordering, fence};
use crate::{
    protocol::{deque::Popped, own::Own},
    sched::{
        job::Job,
        rescue::revoke::Cause,
        stack::{Me, Stack},
        worker::{NO_LEVEL, Worker},
    },
    sys::clock,
};
use urgency_policy::level::{LevelPolicy, Prompt};

/// How long a stack that is asked to give way has for its next scheduling point before more urgent forks take its
/// worker, in nanoseconds: what it costs to wake a thread.
const ANSWER: f64 = 50_000.0;

/// How many workers one insertion alerts at most, others each time. One of them takes the entry; if none of them comes
/// to a scheduling point within a period, relief asks the rest. So many stacks one worker that goes down asks at most.
pub(in crate::sched) const MOST_ALERTED: usize = 8;

impl Job {
    /// Whether a worker is hungry for forks of this level: a stack that starts now should publish its first one.
    #[inline]
    pub(crate) fn is_anybody_hungry(&self, level: u8) -> bool {
        self.is_anybody_free(level) || self.is_anybody_below(level, None)
    }

    /// As [`Job::is_anybody_hungry`], at the cost of a load or two; `true` may be wrong.
    #[inline]
    pub(crate) fn may_anybody_be_hungry(&self, level: u8) -> bool {
        self.is_anybody_free(level) || self.served.below(level) != 0
    }

    /// Whether a worker without work, or a donor, would take forks of this level.
    #[inline]
    pub(crate) fn is_anybody_free(&self, level: u8) -> bool {
        if !self.core.idle.is_any_hungry() {
            return self.seats.is_missed(level);
        }
        !self.seats.waits() || self.is_hungry_for(level)
    }

    /// Whether a worker, other than `except`, serves something less urgent than `level`: it would not come to `level`'s
    /// forks by itself, but would leave its work for them.
    #[inline]
    pub(crate) fn is_anybody_below(&self, level: u8, except: Option<usize>) -> bool {
        let below = self.served.below(level);
        below != 0 && self.is_anybody_below_cold(level, below, except)
    }

    #[cold]
    fn is_anybody_below_cold(&self, level: u8, below: u64, except: Option<usize>) -> bool {
        // What the caller has made public is seen by a worker that goes below later.
        fence(Ordering::SeqCst);
        let mut stale = 0;
        for lower in each_level(below) {
            let mut at = self.serving_at(lower, 0).map(|worker| worker.id);
            match at.next() {
                None => stale |= 1 << lower,
                first if first == except && at.next().is_none() => {}
                Some(_) => return self.is_one_drawn(level, except),
            }
        }
        let shown = || self.levels_shown(stale);
        if stale != 0 && self.served.clear(stale, shown) != 0 {
            self.alert_below(level);
            self.leave_asking();
            return true;
        }
        false
    }

    /// Some worker serves something less urgent. Whether one of them would leave it.
    fn is_one_drawn(&self, level: u8, except: Option<usize>) -> bool {
        if !self.seats.is_on() {
            return true;
        }
        let drawn = |worker: &Worker| {
            let serves = worker.level();
            serves != NO_LEVEL && self.seats.of(worker).is_drawn_by(level, serves)
        };
        let mut others = self.workers().filter(|worker| Some(worker.id) != except);
        others.any(drawn)
    }

    /// The workers that serve `level`; `turn` says where to begin. Groups without one are forgotten.
    pub(crate) fn serving_at(&self, level: u8, turn: u32) -> impl Iterator<Item = &Worker> {
        let groups = self.serving.at(level, turn);
        groups.flat_map(move |group| {
            let mut members = self.members_at(group, level).peekable();
            if members.peek().is_none() {
                self.forget(group, level);
                members = self.members_at(group, level).peekable();
            }
            members
        })
    }

    /// Nobody in this group was found to serve `level`.
    #[cold]
    fn forget(&self, group: usize, level: u8) {
        let is_served = || self.members_at(group, level).next().is_some();
        if self.serving.is_one() || !self.serving.clear(level, group, is_served) {
            return;
        }
        // Others may have looked meanwhile: one that clears the level, an insertion, or a worker that went below.
        self.served.show(level);
        self.leave_asking();
        if let Some(above) = Prompt.serve(self.pools.ready.levels_after_writes()) {
            let workers = self.members_at(group, level);
            workers.for_each(|worker| self.alert(worker, above));
        }
    }

    fn members_at(&self, group: usize, level: u8) -> impl Iterator<Item = &Worker> {
        let members = &self.core.workers[self.serving.members(group)];
        let members = members.iter().map(|worker| &**worker);
        members.filter(move |worker| worker.level_in(self) == level)
    }

    /// These levels, less the levels that no worker serves.
    fn levels_shown(&self, levels: u64) -> u64 {
        let is_served = |level: &u8| {
            let mut groups = self.serving.at(*level, 0);
            groups.any(|group| self.members_at(group, *level).next().is_some())
        };
        each_level(levels)
            .filter(is_served)
            .fold(0, |shown, level| shown | 1 << level)
    }

    /// The worker shows that it serves `level`, and has just come there from something else: rule 3.
    #[inline]
    pub(crate) fn shows(&self, worker: &Worker, level: u8) {
        if self.pools.are_several() {
            self.serving.show(level, worker.id);
            self.served.show(level);
            self.watch_overrunning(level);
            if self.served.above(level) != 0 {
                self.miss_above(worker, level);
            }
        }
    }

    #[cold]
    fn miss_above(&self, worker: &Worker, level: u8) {
        let seat = self.seats.of(worker);
        // The level that the caller shows is seen by a stack that publishes later.
        fence(Ordering::SeqCst);
        let served = self.served.above(level);
        let drawing =
            (0..level).filter(|above| served >> above & 1 == 1 && seat.is_drawn_by(*above, level));
        let turn = turn_now();
        let mut others = drawing
            .flat_map(|above| self.serving_at(above, turn))
            .filter_map(|other| self.core.holder(other));
        for stack in others.by_ref().take(MOST_ALERTED) {
            self.ask_to_share(stack);
        }
        if others.next().is_some() {
            self.leave_asking();
        }
    }

    /// Stacks above some worker were not asked to share: the next expiry of relief asks them.
    fn leave_asking(&self) {
        self.core.leave_to(&self.unasked);
    }

    /// A thief took a fork of `stack`, at `level`. `more`: it leaves further public forks. Without an entry in the pool
    /// only their owner and a searcher find these, so there is none only while the owner runs and nobody is hungry. (An
    /// owner that stops makes an entry, if it does not see the one that the thief has taken. Then the thief sees that
    /// the owner has stopped.)
    #[inline]
    pub(crate) fn leave_rest(&self, thief: &Worker, stack: &Stack, level: u8, more: bool) {
        if !more {
            self.ask_if_last(thief, stack, level);
        } else if !self.core.idle.may_hold_back()
            || stack.attention.visit().is_none()
            || self.is_anybody_hungry(level)
        {
            self.insert_deque(stack);
        }
    }

    /// Rule 2, of the last public fork.
    #[inline]
    fn ask_if_last(&self, thief: &Worker, stack: &Stack, level: u8) {
        if self.is_anybody_below(level, Some(thief.id)) {
            self.ask_to_share(stack);
        }
    }

    /// The calling stack `me` has public forks that workers below may come for. Whether it is to look again soon: rule
    /// 4.
    #[cold]
    pub(crate) fn press_below(&self, me: Me<'_>, level: u8) -> bool {
        self.insert_deque(&me);
        let answer = clock::ticks(ANSWER);
        let now = clock::now();
        let mut late = None;
        let mut waits = false;
        for worker in self.some_below(level) {
            if !self.seats.of(worker).is_drawn_by(level, worker.level()) {
                continue;
            }
            let Some(stack) = self.core.holder(worker) else {
                continue;
            };
            let since = worker.wanted_since();
            let is_asked = since != 0 && stack.attention.is_pending(PREEMPT);
            if is_asked && now.saturating_sub(since) >= answer {
                late = late.or(Some(worker));
            }
            waits |= is_asked && !stack.attention.is_revoked();
        }
        let revoked = late.and_then(|worker| self.revoke_counted(worker, None, Cause::Urgency));
        if let Some(worker) = revoked {
            self.start(worker);
        }
        waits
    }

    /// Public forks may be in no pool, if they were published for a worker that has found something else.
    fn ask_to_share(&self, stack: &Stack) {
        if stack.deque.seems_public() {
            return self.insert_deque(stack);
        }
        stack.attention.request(SHARE);
        if !stack.deque.seems_empty() {
            self.arm_relief();
        }
    }

    /// Puts all forks of a running stack where others see them, without the stack. Whether it has any. If another
    /// thread is at the deque, the next expiry of relief looks again.
    pub(in crate::sched) fn show_forks(&self, stack: &Stack) -> bool {
        let has_any = stack.deque.raise_all().unwrap_or_else(|| {
            self.arm_relief();
            stack.deque.seems_public()
        });
        if has_any {
            self.insert_deque(stack);
        }
        has_any
    }

    /// Relief expired: forks that a stack in a long leaf keeps to itself go where workers below see them (rule 5), and
    /// stacks are asked that were not (rule 3).
    pub(crate) fn show_hidden_from_below(&self) {
        let asks =
            self.unasked.load(Ordering::Relaxed) && self.unasked.swap(false, Ordering::AcqRel);
        for worker in self.workers() {
            let level = worker.level();
            if level == NO_LEVEL {
                continue;
            }
            let Some(stack) = self.core.holder(worker) else {
                continue;
            };
            let is_empty = stack.deque.seems_empty();
            if is_empty && !asks || !self.is_anybody_below(level, None) {
                continue;
            }
            if is_empty {
                stack.attention.request(SHARE);
            } else if stack.deque.seems_public() {
                self.insert_deque(stack);
            } else {
                self.show_forks(stack);
            }
        }
    }
}

/// A number that says where a look at some workers begins: another one each microsecond.
pub(in crate::sched) fn turn_now() -> u32 {
    (clock::now() >> 10) as u32
}

/// These levels, the least urgent first.
pub(in crate::sched) fn each_level(mut levels: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let least = 63u32.checked_sub(levels.leading_zeros())?;
        levels &= !(1 << least);
        Some(least as u8)
    })
}

impl Own<'_, Stack> {
    /// The stack takes its youngest fork back, the one at `index`.
    ///
    /// # Safety
    /// As [`Own::pop`] of a deque.
    #[inline(always)]
    pub(crate) unsafe fn pop_fork(self, index: usize) -> Popped {
        // SAFETY: by the caller's promise.
        unsafe { self.deque().pop(index, || self.pop_public(index)) }
    }

    /// The fork is public: rule 2.
    ///
    /// # Safety
    /// As [`Own::pop_public`] of a deque.
    #[cold]
    #[inline(never)]
    unsafe fn pop_public(self, index: usize) -> Popped {
        // SAFETY: by the caller's promise.
        let popped = unsafe { self.deque().pop_public(index) };
        match popped {
            Popped::Mine => self.took_back(),
            Popped::Stolen => self.child_memory().start_over(),
        }
        if self.runtime().served.below(self.level()) != 0 && !self.deque.seems_public() {
            self.attention().look_at_next_fork();
        }
        popped
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use crate::{
        Runtime,
        protocol::deque::Stolen,
        sched::{
            machine::claim::Want,
            tests::{fork, stack_of},
        },
    };

    /// The thief was lowered, and waits for other processes: the thread that looks must go on to the events.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos lets a thief come in vain")]
    fn an_expiry_does_not_wait_for_a_thief_but_looks_again() {
        let runtime = Runtime::builder().workers(1).build().unwrap();
        let job = runtime.job();
        // No thread waits in the poller, so no expiry comes between the two looks.
        while job.core.pollers.enter(2) {}
        let (binding, stack) = stack_of(job);
        fork(binding.me());
        assert!(binding.me().deque().publish(true));
        let look = |_, _| {
            assert!(!job.core.relief_timer.is_set());
            job.show_forks(&stack);
            assert!(job.core.relief_timer.is_set());
        };
        let stolen = stack.deque.steal(false, || true, look);
        assert!(matches!(stolen, Stolen::Forked(..) | Stolen::Contended));
        assert!(!job.show_forks(&stack), "the fork is gone");
    }

    /// The other worker went idle between the look that gave the stack its room and the moment when its worker showed
    /// a level: it saw nobody to ask for forks.
    #[test]
    fn the_first_fork_looks_around_if_a_worker_went_idle_before_the_level_was_shown() {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let job = runtime.job();
        let (binding, _stack) = stack_of(job);
        let me = binding.me();
        me.hold(job.claim(Want::Any).unwrap());
        job.go_at(me, 0, crate::sys::clock::now(), me.deque.room());
        assert!(me.attention.is_wanted());
        job.come_in(me);
        job.release(me.worker());
    }
}
