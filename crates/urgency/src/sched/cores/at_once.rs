//! Decisions at the event: a job that starts does not wait for the relief timer, nor does a worker that is free, nor a
//! demand that changes.
//!
//! 1. *A job without a worker begins to wait*, and no worker is idle, or it may have none before the policy knows of it
//!    (a strict policy). The thread that made its work ready asks the policy, and asks the workers that are to leave
//!    for attention. A holder that comes to scheduling points leaves at the next one; from one that does not, an expiry
//!    of the relief timer revokes the worker (`mod.rs`), or the thread that asks does (`silent.rs`). So it is if the
//!    policy gave a job more workers than it had work for, and now it has more. A look that sees this leaves a mark
//!    with the job, as if donors missed all of its levels: a stack that begins makes its first fork public
//!    (`hunger.rs`).
//! 2. *The last worker leaves a job*, and several others have work, or one that may have no more than the policy gave
//!    it. The policy decides where the worker goes.
//! 3. *A demand changes* of a job that has work. The thread that changes it asks, as in 1. (A job that has none, such
//!    as a container that is taken for a job or parked after it, has no part in a decision.)
//! 4. *Code of the program asks the policy* (`CoreSet::request`), by a number that it puts down before it asks.
//!
//! A job asks once until a worker has come, or until the policy has seen it without work: not again each time when work
//! becomes ready, or when another worker is released and looks at all that wait. (A job that might ask again after each
//! expiry did so at such a release: one decision for each job that waited.)
//!
//! One thread decides at a time. A thread that comes meanwhile leaves its news to that one, which decides once more
//! (`protocol/turn.rs`): the thread may hold locks of the program, or be in the policy itself. What comes while a
//! thread decides for the second time is left to the relief timer: no thread decides for others without end.
//!
//! In a runtime without other jobs this is two loads, where an insertion has found no idle worker.

use super::State;
use crate::{
    protocol::attention::PREEMPT,
    sched::{
        core::{ANSWER_TIME, Core, JobList, RELIEF_PERIOD},
        job::Job,
    },
    sys::mutex::MutexGuard,
};
use crossbeam_queue::SegQueue;
use std::{
    iter, ptr,
    sync::atomic::{Ordering, fence},
};
use urgency_policy::cores::Boundary;

impl Job {
    /// Work waits here, and no worker is idle: event 1.
    #[inline]
    pub(in crate::sched) fn ask_for_worker(&self) {
        if self.core.is_policy_asked() {
            self.ask_for_worker_cold();
        }
    }

    #[cold]
    fn ask_for_worker_cold(&self) {
        let lacks =
            self.workers().next().is_none() || self.standing.lacks() && self.has_less_than_given();
        if lacks && self.standing.asks() {
            self.core.decide_at_once();
        }
    }

    /// A worker has come out of the idle set, and serves the job. If another job has workers, too, the relief timer
    /// asks the policy from now on; or whenever any job has, if the policy may say that a job is to have fewer.
    /// Fork-join jobs wait for nothing once they have a worker each, and would arm no timer.
    #[inline]
    pub(in crate::sched) fn begins_to_share(&self) {
        if self.core.is_policy_asked() {
            self.begins_to_share_cold();
        }
    }

    #[cold]
    fn begins_to_share_cold(&self) {
        let core = &self.core;
        // Of two jobs that get their first workers at the same time, one sees the other's. And an expiry of the timer
        // sees this worker, or the timer is not set here (`protocol/relief_timer.rs`).
        fence(Ordering::SeqCst);
        if !core.relief_timer.is_set()
            && (core.sharing.looks_always() || core.workers.iter().any(|w| w.is_of_other(self)))
        {
            self.arm_late();
        }
    }

    /// A worker has left for one of several jobs that wait: event 2, if it was the last.
    pub(super) fn ask_after_exit(&self) {
        if self.workers().next().is_none() {
            self.core.decide_at_once();
        }
    }

    /// The job asks for something else than before: event 3.
    pub(super) fn ask_after_change(&self) {
        let is_divided = self.core.is_policy_asked() || self.has_too_many();
        if is_divided && (self.workers().next().is_some() || self.levels_queued() != 0) {
            self.core.decide_at_once();
        }
    }

    /// Whether work of another job waits: a worker without work goes there, and does not search for long.
    #[inline]
    pub(in crate::sched) fn is_another_waiting(&self) -> bool {
        self.core.is_shared() && self.is_another_waiting_cold()
    }

    #[cold]
    fn is_another_waiting_cold(&self) -> bool {
        let jobs = self.core.jobs();
        let mut others = jobs.iter().filter(|job| !ptr::eq(&***job, self));
        others.any(|job| job.levels_queued() != 0)
    }

    /// Whether fewer workers serve the job than the policy gave it.
    pub(super) fn has_less_than_given(&self) -> bool {
        let given = self.standing.entitled().filter(|&given| given != 0);
        given.is_some_and(|given| self.workers().count() < given)
    }
}

impl State {
    /// The policy is to hear of these requests. Whether there are any.
    pub(super) fn hear(&mut self, requests: &SegQueue<u64>) -> bool {
        let is_any = !requests.is_empty();
        iter::from_fn(|| requests.pop()).for_each(|number| self.division.hear(number));
        is_any
    }
}

impl Core {
    /// Whether the policy has a word: several jobs share the workers, or a job that is alone may not have all of them.
    #[inline]
    pub(super) fn is_policy_asked(&self) -> bool {
        self.is_shared() || self.sharing.looks_always()
    }

    /// Whether anybody has to decide which workers a job has.
    pub(in crate::sched) fn is_to_divide(&self, jobs: &JobList) -> bool {
        self.is_policy_asked()
            || !self.sharing.requests.is_empty()
            || self.superfluous() > 0
            || jobs.iter().any(|job| job.has_too_many())
    }

    /// Code of the program asks the policy this: event 4.
    pub(crate) fn request(&self, number: u64) {
        self.sharing.requests.push(number);
        self.decide_at_once();
    }

    /// Asks the policy, and asks the workers that are to leave.
    fn decide_at_once(&self) {
        self.sharing.turn.tell();
        self.decide_news();
    }

    /// The thread has told news, or has given the turn back.
    pub(super) fn decide_news(&self) {
        for _ in 0..2 {
            // Let go of after the lock.
            let jobs;
            let Some(state) = self.sharing.turn.take_for_news() else {
                return;
            };
            jobs = self.jobs();
            self.decide_now(&jobs, state);
        }
        if self.sharing.turn.has_news() {
            self.arm_relief(RELIEF_PERIOD);
        }
    }

    fn decide_now(&self, jobs: &JobList, state: MutexGuard<'_, State>) {
        let moves = self.decide_moves_in(jobs, state);
        let mut leave = moves
            .iter()
            .filter(|going| going.at == Boundary::Point)
            .peekable();
        if leave.peek().is_some() {
            self.arm_relief(ANSWER_TIME);
        }
        let leave = leave.filter(|going| !self.takes_at_once(jobs, going));
        for stack in leave.filter_map(|going| self.holder(going.worker)) {
            stack.attention.request(PREEMPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Core;
    use crate::{Runtime, join, sched::stack::Delivery};
    use std::{
        sync::{
            Arc, OnceLock, Weak,
            atomic::{AtomicBool, AtomicUsize, Ordering},
            mpsc::channel,
        },
        time::Duration,
    };
    use urgency_policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Demand, Event, Shares,
    };

    /// *Shares*, of which a job has no more than its own.
    #[derive(Clone, Default)]
    struct Parts(Shares);

    impl CorePolicy for Parts {
        fn decide(
            &mut self,
            event: Event,
            cores: &Cores,
            to: &mut Decision,
        ) -> Result<(), DecisionError> {
            self.0.decide(event, cores, to)
        }
    }

    /// *Shares*, which wait inside of the first decision after they were told to.
    #[derive(Clone, Default)]
    struct Waits {
        shares: Shares,
        is_to_wait: Arc<AtomicBool>,
        waits: Arc<AtomicBool>,
        go_on: Arc<AtomicBool>,
    }

    impl CorePolicy for Waits {
        fn decide(
            &mut self,
            event: Event,
            cores: &Cores,
            to: &mut Decision,
        ) -> Result<(), DecisionError> {
            if self.is_to_wait.swap(false, Ordering::SeqCst) {
                self.waits.store(true, Ordering::SeqCst);
                while !self.go_on.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            }
            self.shares.decide(event, cores, to)
        }

        fn is_work_conserving(&self) -> bool {
            true
        }

        fn refuses(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_thread_in_a_decision_holds_up_neither_relief_nor_a_demand_without_least_cores() {
        let policy = Waits::default();
        let builder = Runtime::builder().workers(1);
        let one = builder.core_policy(policy.clone()).build().unwrap();
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        policy.is_to_wait.store(true, Ordering::SeqCst);
        let (done, is_done) = channel();
        std::thread::scope(|threads| {
            threads.spawn(|| one.job().core.request(1));
            while !policy.waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            threads.spawn(|| {
                let core = &one.job().core;
                assert!(core.share_workers(&core.jobs()).is_none());
                let demand = Demand {
                    max_cores: 1,
                    weight: 2,
                    ..Demand::default()
                };
                done.send(other.set_demand(demand)).unwrap();
            });
            let in_time = is_done.recv_timeout(Duration::from_secs(20));
            policy.go_on.store(true, Ordering::SeqCst);
            in_time.expect("it waits for the decision").unwrap();
        });
        assert_eq!(other.demand().weight, 2);
    }

    #[test]
    fn news_that_comes_while_another_thread_decides_is_decided_about_by_that_thread() {
        let policy = Waits::default();
        let builder = Runtime::builder().workers(1);
        let busy = builder.core_policy(policy.clone()).build().unwrap();
        // It seems to be set, so that it never expires: what happens, happens at an event.
        assert!(busy.job().core.relief_timer.arm());
        let [first, second] = [(); 2].map(|()| {
            Runtime::builder()
                .share_workers_with(&busy)
                .build()
                .unwrap()
        });
        let [begun, end] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (its, ends) = (begun.clone(), end.clone());
        let has_worker = busy.spawn_fn(move || {
            its.store(true, Ordering::SeqCst);
            while !ends.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        });
        let until = |is: &AtomicBool| {
            while !is.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
        };
        until(&begun);
        policy.is_to_wait.store(true, Ordering::SeqCst);
        std::thread::scope(|threads| {
            let deciding = threads.spawn(|| first.spawn_fn(|| ()).detach());
            until(&policy.waits);
            second.spawn_fn(|| ()).detach();
            policy.go_on.store(true, Ordering::SeqCst);
            deciding.join().unwrap();
        });
        assert!(first.stats().share.entitled.is_some());
        let knows = second.stats().share.entitled.is_some();
        end.store(true, Ordering::SeqCst);
        has_worker.get().unwrap();
        assert!(knows, "the policy has not heard of the second");
    }

    #[test]
    fn a_thread_that_a_decision_starts_for_the_timer_has_its_name_after_the_turn() {
        let (names, named) = channel();
        let core = Arc::new(OnceLock::<Weak<Core>>::new());
        let its = core.clone();
        let name = move || {
            let core = its.get().and_then(Weak::upgrade);
            let _ = names.send(core.is_some_and(|core| core.is_deciding()));
            String::from("named")
        };
        let builder = Runtime::builder().workers(2).thread_name_fn(name);
        let one = builder.build().unwrap();
        core.set(Arc::downgrade(&one.job().core)).unwrap();
        let core = &one.job().core;
        assert!(core.relief_timer.arm(), "it seems to be set");
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        for runtime in [&one, &other] {
            let (end, (begins, has_begun)) = (end.clone(), channel());
            let works = move || {
                begins.send(()).unwrap();
                while !end.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            };
            runtime.spawn_fn(works).detach();
            has_begun.recv().unwrap();
        }
        // No thread waits for events, nor is there one that could.
        let mut spares = Vec::new();
        while spares.len() + 2 < core.threads.alive() {
            // A thread that comes out may have to arm relief, and go in, once more.
            core.relief_timer.expire();
            core.driver().unwrap().notify();
            spares.extend(core.pop_spare());
            std::thread::yield_now();
        }
        named.try_iter().for_each(drop);
        core.request(1);
        let in_turn = named.recv_timeout(Duration::from_secs(20));
        end.store(true, Ordering::SeqCst);
        for spare in spares {
            spare.deliver(Delivery::Look);
        }
        assert_eq!(in_turn, Ok(false));
    }

    /// A runtime of two workers, both of which another one with this demand keeps busy, and what ends that. Its relief
    /// timer never expires: what happens, happens at an event.
    fn beside_a_busy_one(demand: Demand) -> (Runtime, Runtime, Arc<AtomicBool>) {
        let one = Runtime::builder().workers(2).build().unwrap();
        assert!(one.job().core.relief_timer.arm(), "it seems to be set");
        let builder = Runtime::builder().share_workers_with(&one);
        let other = builder.demand(demand).build().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let busy = Arc::new(AtomicUsize::new(0));
        for _ in 0..2 {
            let (busy, end) = (busy.clone(), end.clone());
            let works = move || {
                busy.fetch_add(1, Ordering::SeqCst);
                while !end.load(Ordering::Relaxed) {
                    join(|| (), || ());
                }
            };
            other.spawn_fn(works).detach();
        }
        while busy.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        (one, other, end)
    }

    /// Whether two forks run at the same time, before so much time has passed.
    fn has_both(runtime: &Runtime, within: Duration) -> bool {
        let (ended, ends) = channel();
        let forked = Arc::new(AtomicBool::new(false));
        let is_forked = forked.clone();
        let needs_both = move || {
            let left = || {
                while !is_forked.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
            };
            join(left, || is_forked.store(true, Ordering::SeqCst));
            let _ = ended.send(());
        };
        let needs_both = runtime.spawn_fn(needs_both);
        let both = ends.recv_timeout(within);
        forked.store(true, Ordering::SeqCst);
        needs_both.get().unwrap();
        both.is_ok()
    }

    #[test]
    fn a_job_that_begins_to_fork_gets_at_once_the_other_workers_that_it_was_given() {
        let less_urgent = Demand {
            priority: 1,
            ..Demand::default()
        };
        let (one, _other, end) = beside_a_busy_one(less_urgent);
        let has_both = has_both(&one, Duration::from_secs(20));
        end.store(true, Ordering::SeqCst);
        assert!(has_both, "its fork has not brought it the second worker");
    }

    #[test]
    fn a_job_that_was_quiet_has_at_once_what_it_saved_though_nobody_looked_meanwhile() {
        let (one, _other, end) = beside_a_busy_one(Demand::default());
        one.spawn_fn(|| ()).get().unwrap();
        // Its share of the time between, a core, pays for the other one, but not for longer than some milliseconds: the
        // kernel may not run a thread for so long.
        let has_both = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            has_both(&one, Duration::from_millis(20))
        });
        end.store(true, Ordering::SeqCst);
        assert!(has_both, "it has half of the workers");
    }

    #[test]
    fn a_worker_that_leaves_a_job_goes_at_once_to_the_one_that_had_all_that_it_was_given() {
        let builder = Runtime::builder().workers(2);
        let one = builder.core_policy(Parts::default()).build().unwrap();
        // It seems to be set, so that it never expires: what happens, happens at an event.
        assert!(one.job().core.relief_timer.arm());
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        let busy = Arc::new(AtomicUsize::new(0));
        let [leaves, second] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let until = |end: &Arc<AtomicBool>| {
            let (busy, end) = (busy.clone(), end.clone());
            move || {
                busy.fetch_add(1, Ordering::SeqCst);
                while !end.load(Ordering::Relaxed) {
                    join(|| (), || ());
                }
            }
        };
        let (ended, ends) = channel();
        let first = until(&second);
        other.spawn_fn(until(&leaves)).detach();
        one.spawn_fn(move || {
            first();
            ended.send(()).unwrap();
        })
        .detach();
        while busy.load(Ordering::SeqCst) < 2 {
            std::thread::yield_now();
        }
        one.set_demand(Demand::default()).unwrap();
        assert_eq!(one.stats().share.entitled, Some(1));
        let its = second.clone();
        one.spawn_fn(move || its.store(true, Ordering::SeqCst))
            .detach();
        leaves.store(true, Ordering::SeqCst);
        let both = ends.recv_timeout(Duration::from_secs(20));
        second.store(true, Ordering::SeqCst);
        assert!(
            both.is_ok(),
            "nobody asked the policy, and a worker is idle"
        );
    }
}
