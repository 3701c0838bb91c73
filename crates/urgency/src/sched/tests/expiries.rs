//! How many workers one expiry of relief takes: from stacks whose threads sleep in the kernel, and, for more urgent
//! work, from stacks that run.
//!
//! Each look of relief is counted while a test asks for it. Before the look it is noted how many workers the look
//! *owes*: as many as there are pieces of waiting work, as far as there are stacks that have left a request unanswered
//! for long enough, and whose threads sleep (rule 1) or which serve something less urgent than what waits (rule 2).
//!
//! What may delay a worker is that a look comes too early, and nothing else: before the work has been inserted, or
//! before the request is half a period old. Such a look owes nothing for it. But it asks all stacks, so the next one
//! owes everything.

use super::steps::{Batch, Urgent, runtime};
use crate::{
    Runtime,
    protocol::attention::{CHECK_IN, PREEMPT},
    sched::{
        job::Job,
        rescue::{relief::Waiting, silence::answer_time},
        stack::Stack,
        worker::{NO_LEVEL, Worker},
    },
    sys::clock,
};
use std::{
    array, hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use urgency_policy::level::LevelPolicy;

const WORKERS: usize = 8;

/// How often it is tried: an expiry may come before all of the waiting work has been inserted.
const TRIES: usize = 20;

/// What one look of relief came to.
#[derive(Clone, Copy, Debug)]
pub(in crate::sched) struct Look {
    owed: usize,
    revoked: usize,
    /// How many stacks it should have asked for something, and has not, though work was left.
    unasked: usize,
}

/// What was there when a look began.
pub(in crate::sched) struct Begun {
    /// The workers whose stacks are to be asked, and for what. (One that comes back to its stack while the look goes on
    /// is none of them.)
    to_ask: Vec<(usize, u32)>,
    waiting: usize,
    owed: usize,
    /// How many workers the expiry had taken before the look.
    before: usize,
}

impl Job {
    /// A look begins. `has_worker`: another piece of work has one already, by the same expiry.
    pub(in crate::sched) fn begin_look(
        &self,
        waiting: &Waiting,
        has_worker: bool,
    ) -> Option<Begun> {
        self.core.looks.lock().as_ref()?;
        let owes = |worker: &&Worker| {
            let holder = self.user_code_on(worker);
            holder.is_some_and(|stack| {
                stack.must_be_found_blocked() || self.is_late_for(waiting.levels, worker, stack)
            })
        };
        let most = self.workers().filter(owes).count();
        let to_ask = self.workers().filter_map(|worker| {
            let stack = self.user_code_on(worker)?;
            let request = if self.is_drawn_to(waiting.levels, worker) {
                PREEMPT
            } else {
                stack.sleeps().then_some(CHECK_IN)?
            };
            Some((worker.id, request))
        });
        Some(Begun {
            to_ask: to_ask.collect(),
            waiting: waiting.count(),
            owed: most.min(waiting.count()),
            before: usize::from(has_worker),
        })
    }

    /// It ends.
    pub(in crate::sched) fn end_look(&self, begun: Option<Begun>, revoked: usize) {
        let (Some(begun), Some(looks)) = (begun, &mut *self.core.looks.lock()) else {
            return;
        };
        let is_unasked = |&&(id, request): &&(usize, u32)| {
            let holder = self.user_code_on(&self.core.workers[id]);
            holder.is_some_and(|stack| !stack.attention.is_pending(request))
        };
        let is_left = begun.waiting > revoked;
        let unasked = begun.to_ask.iter().filter(|it| is_left && is_unasked(it));
        let unasked = unasked.count();
        looks.push(Look {
            owed: begun.before + begun.owed,
            revoked: begun.before + revoked,
            unasked,
        });
    }

    /// Rule 2.
    fn is_late_for(&self, levels: u64, worker: &Worker, stack: &Stack) -> bool {
        let since = worker.wanted_since();
        let is_late = since != 0 && clock::now().saturating_sub(since) >= answer_time();
        self.is_drawn_to(levels, worker) && is_late && stack.attention.is_pending(PREEMPT)
    }

    fn is_drawn_to(&self, levels: u64, worker: &Worker) -> bool {
        let mut seat = self.seats.of(worker);
        seat.abandon_for(levels, worker.level()).is_some()
    }

    /// The stack with this worker, if it runs code of the program.
    fn user_code_on(&self, worker: &Worker) -> Option<&Stack> {
        let stack = self.core.holder(worker)?;
        let runs = worker.level() != NO_LEVEL && stack.attention.visit().is_some();
        (runs && stack.is_of(self)).then_some(stack)
    }
}

/// All workers' threads sleep.
fn all_sleep(runtime: &Runtime) -> bool {
    let core = &runtime.job().core;
    core.workers.iter().all(|worker| {
        let holder = core.holder(worker);
        worker.level() != NO_LEVEL && holder.is_some_and(|stack| stack.sleeps())
    })
}

/// Runs `program` where all workers are blocked.
fn beside_blocked(program: impl FnOnce(&Runtime)) {
    let runtime = runtime(WORKERS, Some(WORKERS));
    let core = &runtime.job().core;
    let (tell, told) = mpsc::channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let mut blocked = Vec::new();
    let limit = Instant::now() + Duration::from_secs(60);
    while !all_sleep(&runtime) {
        assert!(Instant::now() < limit, "some worker is not blocked");
        // An expiry may take a worker from one of them for another one that has not begun.
        if blocked.len() < WORKERS || core.idle.any() {
            let told = told.clone();
            let wait = move || told.lock().unwrap().recv().unwrap();
            blocked.push(runtime.at(Urgent).spawn_fn(wait));
        } else {
            thread::sleep(Duration::from_millis(1));
        }
    }
    program(&runtime);
    blocked.iter().for_each(|_| tell.send(()).unwrap());
    blocked.into_iter().for_each(|task| task.get().unwrap());
}

/// Runs `program` where all workers run something that comes to no scheduling point.
fn beside_running(program: impl FnOnce(&Runtime)) {
    let runtime = runtime(WORKERS, Some(WORKERS));
    let (begun, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let running: [_; WORKERS] = array::from_fn(|_| {
        let (begun, stop) = (begun.clone(), stop.clone());
        runtime.at(Batch).spawn_fn(move || {
            begun.fetch_add(1, SeqCst);
            while !stop.load(SeqCst) {
                hint::spin_loop();
            }
        })
    });
    while begun.load(SeqCst) < WORKERS {
        thread::yield_now();
    }
    program(&runtime);
    stop.store(true, SeqCst);
    running.into_iter().for_each(|task| task.get().unwrap());
}

/// Tasks that come back when all workers are in one of them. What the looks came to meanwhile.
fn all_meet(runtime: &Runtime, level: impl Into<crate::LevelId>) -> Vec<Look> {
    let at = runtime.at(level.into());
    let core = &runtime.job().core;
    *core.looks.lock() = Some(Vec::new());
    let met = Arc::new(AtomicUsize::new(0));
    let tasks: [_; WORKERS] = array::from_fn(|_| {
        let met = met.clone();
        at.spawn_fn(move || {
            met.fetch_add(1, SeqCst);
            while met.load(SeqCst) < WORKERS {
                thread::yield_now();
            }
        })
    });
    tasks.into_iter().for_each(|task| task.get().unwrap());
    core.looks.lock().take().unwrap()
}

/// No look gives less than it owes, and one of them gives all.
fn assert_all_at_one_expiry(mut one_try: impl FnMut() -> Vec<Look>) {
    let mut most = Vec::new();
    for _ in 0..TRIES {
        let looks = one_try();
        let is_kept = |look: &Look| look.revoked >= look.owed && look.unasked == 0;
        assert!(looks.iter().all(is_kept), "{looks:?}");
        most.push(looks.iter().map(|look| look.revoked).max());
        if most.last() == Some(&Some(WORKERS)) {
            break;
        }
    }
    assert!(
        most.contains(&Some(WORKERS)),
        "workers for each expiry: {most:?}"
    );
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn all_blocked_threads_lose_their_workers_to_less_urgent_tasks_at_one_expiry() {
    assert_all_at_one_expiry(|| {
        let mut looks = Vec::new();
        beside_blocked(|runtime| looks = all_meet(runtime, Batch));
        looks
    });
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos relieves without need")]
fn as_many_running_threads_lose_their_workers_at_one_expiry_as_more_urgent_tasks_wait() {
    assert_all_at_one_expiry(|| {
        let mut looks = Vec::new();
        beside_running(|runtime| looks = all_meet(runtime, Urgent));
        looks
    });
}
