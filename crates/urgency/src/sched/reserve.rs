//! The reserve: workers beyond the processors, and when they are needed for forked jobs after all.
//!
//! In a runtime with more workers than processors some idle workers are not hungry (`idle.rs`): the stacks that run keep
//! their jobs to themselves. That is right while these use the processors. A stack whose thread sleeps in the kernel
//! uses none, and programs have such runtimes for its sake.
//!
//! 1. A stack that goes to user code while there is a reserve arms the relief timer, for some periods (`alarm.rs`).
//! 2. An expiry counts the stacks that have not answered since the last one, and whose threads sleep in the kernel. So
//!    many fewer are in reserve from then on. All stacks that run are asked to check in.
//! 3. If there are fewer in reserve than before, a worker is started. It is hungry, so it asks for jobs, or takes hidden
//!    ones, and starts the next worker if there are more.
//! 4. While a stack has jobs, or the reserve is smaller than the processors demand, the timer is armed again. So what
//!    was found is never older than some periods while anything is forked.
//!
//! A loop whose items sleep in the kernel gets more workers with each expiry: 2, 4, 8, ... on two processors.

use super::{attention::CHECK_IN, relief::note_run_time, shared::Shared, worker::NO_LEVEL};
use crate::os;
use std::sync::atomic::Ordering;

impl Shared {
    /// A stack goes to user code: rule 1.
    #[inline]
    pub(crate) fn watch_reserve(&self) {
        if self.idle.has_reserve() && !self.threads.alarm.is_set() {
            self.watch_reserve_cold();
        }
    }

    #[cold]
    fn watch_reserve_cold(&self) {
        if !self.centre.is_on() {
            self.arm_late();
        }
    }

    /// The relief timer expired: rules 2 to 4.
    pub(super) fn recount_reserve(&self) {
        if !self.idle.has_reserve() || self.centre.is_on() {
            return;
        }
        let (mut blocked, mut has_jobs) = (0, false);
        for worker in &self.workers {
            if worker.level() == NO_LEVEL {
                continue;
            }
            let Some(stack) = self.holder(worker) else {
                continue;
            };
            has_jobs |= !stack.deque.seems_empty();
            if !stack.attention.is_pending(CHECK_IN) {
                note_run_time(stack);
                stack.attention.request(CHECK_IN);
            } else if os::thread::is_blocked(stack.tid.load(Ordering::Relaxed)) {
                blocked += 1;
            }
        }
        if self.idle.set_blocked(blocked)
            && has_jobs
            && let Some(worker) = self.claim_idle()
        {
            self.start(worker);
        }
        if has_jobs {
            self.arm_late();
        }
    }
}
