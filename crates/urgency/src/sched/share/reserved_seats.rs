//! Seats that wait: a worker may be idle while levels have work that its seat does not serve.
//!
//! Under most schedules idle workers are all alike: any of them will take whatever is ready. Under *adaptive* and
//! *fixed shares* a seat may wait for its level, and then a wake-up must go to a worker that will serve it.
//!
//! # The invariant
//!
//! **No worker is idle while anything is offered at a level that its seat serves.** (With seats that donate, that is
//! every level, and this is the greedy principle.) Three steps can break the invariant. The thread that makes one looks
//! afterwards, behind a full barrier:
//!
//! 1. *An insertion* at level L, after the announcement: claims an idle worker whose seat serves L
//!    ([`Want::Serving`]). It cannot leave the entry to a searcher, which may have another seat.
//! 2. *A release*, after the worker's bit is in the idle set: reads its seat, then looks at those levels
//!    ([`Job::is_anything_left_to`]).
//! 3. *The seat assigner*, after the seats are written: looks at the levels and the idle set (`Job::reseated`; after a
//!    quantum, [`Job::claim_reseated`]).
//!
//! Of any two of them, one sees what the other wrote. And one race has three parties: an inserter claims a worker for
//! its *old* seat, and the worker, started, finds nothing that its *new* seat serves. The entry was announced before
//! that claim read the old seat. The seat assigner looks after it wrote the new seat, so it sees the entry and starts a
//! worker that serves it now. As a second net, a worker that finds nothing starts another that would find something.
//!
//! A started worker starts the next one, as ever: [`Job::wake_next`](crate::sched::job::Job) asks for idle workers
//! that serve what is left.
//!
//! # Forks
//!
//! A fork is private until a worker is hungry. Here a worker is hungry only if its seat serves the level
//! ([`Job::is_anybody_hungry`]): otherwise each fork would go the long way for a worker that will not take it. So a
//! worker that goes idle *shows* the forks that it may not take ([`Job::show_forks`]): it makes them public and puts
//! the deque into the pool, where the seat assigner sees it as work that waits. After a quantum the seat assigner does
//! the same for idle workers with new seats.
//!
//! # Not covered by seats
//!
//! A fork for one certain worker (`pinned.rs`), the work that came with a hand-off, and forks stolen back from a thief:
//! they are the worker's, or the stack's, whatever the seat.

use crate::protocol::fence;
use crate::sched::{
    job::Job,
    machine::claim::Want,
    stack::Me,
    worker::{NO_LEVEL, Worker},
};
use urgency_policy::level::LevelPolicy;

impl Job {
    /// The idle workers whose seats serve one of these levels.
    pub(in crate::sched) fn idle_serving(&self, levels: u64) -> impl Iterator<Item = &Worker> {
        let workers = self.core.workers.iter().map(|worker| &**worker);
        workers.filter(move |worker| {
            self.core.idle.contains(worker.id) && self.seats.of(worker).serves_any(levels)
        })
    }

    /// Whether something is offered that an idle worker would serve, if there is one.
    pub(crate) fn is_offered_to_idle(&self) -> bool {
        if self.seats.waits() {
            return self.idle_serving(self.levels_offered()).next().is_some();
        }
        self.most_urgent_offered().is_some()
    }

    /// The look after a release, where seats may wait: rule 2 of the module's text.
    #[cold]
    pub(crate) fn is_anything_left_to(&self, me: Option<Me<'_>>, worker: &Worker) -> bool {
        let seat = self.seats.of(worker);
        let offered = self.levels_offered();
        if seat.serves_any(offered) {
            return true;
        }
        if let Some(other) = self.claim(Want::Serving(offered)) {
            self.start(other);
        }
        self.watch_queued();
        self.ask_for_forks(me, worker);
        fence::heavy();
        let mut left = false;
        for stack in self.running_besides(me) {
            if seat.serves_any(1 << stack.level()) {
                left |= !stack.deque.seems_empty();
            } else {
                self.show_forks(stack);
            }
        }
        if self.running_besides(me).next().is_some() {
            self.arm_for_quantum();
        }
        left
    }

    /// After a quantum: the stacks that run at the levels of idle workers share their forks, or have them shown.
    pub(crate) fn show_forks_to_idle(&self) {
        for worker in self.workers() {
            let level = worker.level();
            if level != NO_LEVEL
                && self.idle_serving(1 << level).next().is_some()
                && let Some(stack) = self.core.holder(worker)
            {
                stack.attention.request(crate::protocol::attention::SHARE);
                self.show_forks(stack);
            }
        }
    }

    /// The relief timer expired. An idle worker whose new seat serves what is offered.
    pub(crate) fn claim_reseated(&self) -> Option<&Worker> {
        if !self.seats.waits() {
            return None;
        }
        self.arm_for_quantum();
        self.claim(Want::Offered)
    }

    /// Under quanta: while one worker runs and another is idle, the quantum ends though nothing is queued.
    pub(crate) fn arm_for_quantum(&self) {
        if self.seats.has_quanta()
            && self.core.idle.any()
            && self.workers().any(|worker| worker.level() != NO_LEVEL)
        {
            self.arm_relief();
        }
    }

    /// Whether a worker without work serves this level.
    #[cold]
    pub(crate) fn is_hungry_for(&self, level: u8) -> bool {
        let mut free = self.core.workers.iter().filter(|w| w.is_free_for(self));
        free.any(|worker| self.seats.of(worker).serve(1 << level).is_some())
    }
}
