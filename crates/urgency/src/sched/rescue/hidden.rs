//! Forks that no worker sees, of stacks that do not come to them.
//!
//! A stack keeps its forks to itself until a worker is hungry. A child of a scope may sleep in the kernel until a
//! sibling has run. If all workers hold such children, no worker is hungry any more, and nothing waits that relief
//! (`relief.rs`) could see. So relief looks for stacks that keep forks to themselves:
//!
//! - at each expiry while a stack that lost its worker has not checked in;
//! - each [`PERIOD`] from the time on at which a stack forks while another worker is busy, or a thief begins to run a
//!   fork, or a worker without work has asked a stack for forks that it keeps to itself. The looks go on for as long as
//!   two workers of the job are busy, or a stack was asked. Before that one stack runs alone, and its forks are in its
//!   own order.
//!
//! A fork that goes on costs nothing for this. While no look is due, the first fork of each piece of work finds no room
//! in its deque (`room_to_begin` in `serve/run.rs`), and looks, as where a worker is hungry.
//!
//! A look asks these stacks to check in. If a stack has not answered at a later look, its forks are made public, and
//! wait like all else. Then rule 1 of relief takes the worker from the thread that sleeps. Public forks that are in no
//! pool count as hidden, too: while their owner runs, it puts them there when a worker is hungry.
//!
//! With one worker there is no thief: the children of a scope run one after the other, and a child that sleeps until a
//! sibling has run sleeps for good, unless something else makes relief look.
//!
//! *Named race, "theft under look"*: a look that is due switches itself off, *then* counts the busy workers. A thief
//! that finds the look switched on began before, so its worker is seen to be busy, or the fork has ended.
//!
//! # Rejected
//!
//! A look each four relief periods while any stack has private forks: that is 250 expiries a second in each fork-join
//! program, of some 50 us each. *One each 100 ms*: with 500 urgent requests a second up to two of a hundred met such an
//! expiry.

use crate::{
    sched::{job::Job, stack::Stack, worker::NO_LEVEL},
    sys::{clock, primitives::atomic::Ordering},
};
use std::time::Duration;

/// How often relief looks. Rare, since what is found is rare, and no more than late.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

impl Job {
    /// A thief begins to run a fork, or a worker without work has asked for hidden ones.
    #[inline]
    pub(in crate::sched) fn watch_hidden(&self) {
        // See "theft under look"; a plain load on most processors.
        if self.hidden_look.load(Ordering::SeqCst) == 0 {
            self.look_later();
        }
    }

    /// Whether a stack that forks from now on has to see to a look.
    #[inline]
    pub(in crate::sched) fn is_hidden_look_missing(&self) -> bool {
        self.hidden_look.load(Ordering::Relaxed) == 0 && self.core.idle.do_several_run()
    }

    /// A stack has forked, and looks around.
    pub(in crate::sched) fn watch_hidden_beside_others(&self) {
        if self.is_hidden_look_missing() {
            self.look_later();
        }
    }

    #[cold]
    fn look_later(&self) {
        let due = clock::now() + clock::ticks(PERIOD.as_nanos() as f64);
        let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
        let looks = &self.hidden_look;
        if looks.compare_exchange(0, due, order, failed).is_ok() {
            self.set_timer_for_look();
        }
    }

    fn set_timer_for_look(&self) {
        if !self.core.arm_seldom() {
            // The next thread that sees to a look tries again.
            self.hidden_look.store(0, Ordering::Relaxed);
        }
    }

    /// An expiry is over, and has switched the timer off.
    pub(super) fn rearm_for_hidden(&self) {
        if self.hidden_look.load(Ordering::Relaxed) != 0 {
            self.set_timer_for_look();
        }
    }

    /// The relief timer expired. Whether a stack that must be looked at again in some periods was asked.
    pub(super) fn look_for_hidden(&self) -> bool {
        let due = self.hidden_look.load(Ordering::Relaxed);
        let is_due = due != 0 && clock::now() >= due;
        if is_due {
            self.hidden_look.swap(0, Ordering::SeqCst);
        }
        let overruns = self.is_any_overrunning();
        let asked = (is_due || overruns) && self.show_hidden_of_silent();
        if is_due && (asked || self.are_several_busy()) {
            self.look_later();
        }
        asked && overruns
    }

    fn are_several_busy(&self) -> bool {
        let mut busy = self.workers().filter(|worker| worker.level() != NO_LEVEL);
        busy.nth(1).is_some()
    }

    /// Asks the stacks that hold workers and have forks that are in no pool to check in. If a stack has not answered
    /// since the last expiry, its forks go there. Whether any was asked.
    fn show_hidden_of_silent(&self) -> bool {
        let mut asked = false;
        for worker in self.workers() {
            let is_seen =
                |stack: &Stack| stack.deque.seems_public() && stack.pooled.has(stack.level());
            let hides =
                |stack: &&Stack| stack.is_of(self) && !stack.deque.seems_empty() && !is_seen(stack);
            let holder = self.core.holder(worker).filter(hides);
            let Some(stack) = holder.filter(|_| worker.level() != NO_LEVEL) else {
                continue;
            };
            if !stack.is_silent() {
                asked = true;
            } else {
                self.show_forks(stack);
            }
        }
        asked
    }
}
