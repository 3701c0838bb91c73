//! Fair rounds: the end of each worker's round, and its next primary level.
//!
//! A runtime with a fairness criterion gives each worker a primary level for a round of 5 ms
//! (`urgency_policy::level::Rounds`; Fairness in Responsive Parallelism, section 4). The worker's *seat* decides at the
//! same places as without one: what a free worker serves, and what a busy one is alerted for. Without a
//! criterion every seat is the prompt one.
//!
//! # Protocol
//!
//! 1. The relief timer is armed exactly while work waits and no worker is idle, which is the only time in which
//!    any level is owed anything. So rounds end where it expires ([`Shared::end_rounds`]), and nothing
//!    ticks besides.
//! 2. Each expiry, 1 ms apart, ends the rounds that have lasted 5 ms. A round is charged as long as it was, and the next
//!    level drawn, under the one lock of the centre.
//! 3. A worker whose new seat draws it elsewhere is alerted (PREEMPT), and abandons its stack at its next
//!    scheduling point. For a relief period nobody takes it from there ([`Shared::is_settled`]): a taken stack is in no
//!    pool until it checks in, and the next round may be its level's. If it comes to none by the next expiry, relief takes the worker from its stack, as from any
//!    that does not check in; the worker serves by its seat.
//!    Only a thread that has *run* since, and still has not checked in, is demoted: the others come to their scheduling
//!    point when the kernel lets them, and until then their level lacks them.
//! 4. A worker that is idle when its round ends has taken nothing from anybody. Its next round is drawn
//!    when it is busy at an expiry, and the one before is not charged.
//!
//! A seat is a hint for those who alert: whoever decides for a worker reads it again.

use super::{
    attention::PREEMPT,
    shared::{RELIEF_PERIOD, Shared},
    worker::{NO_LEVEL, Worker},
};
use crate::os::clock;
use std::sync::{Mutex, MutexGuard, OnceLock, atomic::Ordering};
use urgency_policy::level::{Criterion, LevelPolicy, ROUND_NANOS, Rounds};

/// The centre, if there is a criterion.
#[derive(Debug, Default)]
pub(crate) struct Fair {
    rounds: OnceLock<Mutex<Rounds>>,
}

impl Fair {
    fn lock(rounds: &Mutex<Rounds>) -> MutexGuard<'_, Rounds> {
        rounds.lock().expect("nothing panics under this lock")
    }

    /// Whether there is a criterion.
    pub(crate) fn is_on(&self) -> bool {
        self.rounds.get().is_some()
    }

    /// From the next round on, this criterion holds.
    pub(crate) fn set(&self, criterion: Criterion) {
        let mut criterion = Some(criterion);
        let rounds = self.rounds.get_or_init(|| {
            let first = criterion.take().expect("called once");
            Mutex::new(Rounds::new(first))
        });
        if let Some(criterion) = criterion {
            Self::lock(rounds).change(criterion);
        }
    }
}

impl Shared {
    /// Whether a worker's round has lasted long enough for its stack to have noticed.
    pub(crate) fn is_settled(&self, worker: &Worker) -> bool {
        let seated_at = worker.seated_at().load(Ordering::Relaxed);
        seated_at == 0
            || clock::now() - seated_at > clock::ticks(RELIEF_PERIOD.as_nanos() as f64 / 2.0)
    }

    /// The relief timer expired: step 2 of the module's text.
    pub(crate) fn end_rounds(&self) {
        let Some(rounds) = self.fair.rounds.get() else {
            return;
        };
        let levels = self.ready.levels_after_writes();
        if levels == 0 {
            return;
        }
        let mut rounds = Fair::lock(rounds);
        let now = clock::now();
        // An expiry is late rather than early: a round that ends before the middle of the next period is over.
        let due = clock::ticks(ROUND_NANOS as f64 - 500_000.0);
        for worker in &self.workers {
            let serves = worker.level();
            if serves == NO_LEVEL {
                worker.seated_at().store(0, Ordering::Relaxed);
                continue;
            }
            let seated_at = worker.seated_at().load(Ordering::Relaxed);
            let lasted = now.saturating_sub(seated_at);
            if seated_at != 0 && lasted < due {
                continue;
            }
            if seated_at != 0
                && let Some(primary) = worker.seat().primary()
            {
                let nanos = clock::to_duration(lasted).as_nanos();
                rounds.charge(primary, u64::try_from(nanos).unwrap_or(u64::MAX));
            }
            worker.set_primary(rounds.draw());
            worker.seated_at().store(now, Ordering::Relaxed);
            if worker.seat().abandon_for(levels, serves).is_some()
                && let Some(stack) = self.holder(worker)
            {
                stack.attention.request(PREEMPT);
            }
        }
    }
}
