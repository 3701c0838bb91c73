//! Code of the program that is called where a demand changes: the name of a thread that is started, and what goes with
//! the last reference to a runtime. It may change the same job's demand, and wait for another thread that does.

mod common;

use common::{ends, poll, until};
use std::{
    cell::Cell,
    future::pending,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    thread,
};
use urgency::{
    Runtime, Shutdown,
    jobs::{CoreSet, JobControl, JobHandle},
    join,
    life::PanicPolicy,
    policy::cores::{CorePolicy, Cores, Decision, DecisionError, Demand, Event, Shares},
    spawn, spawn_fn,
};

/// More than a runtime keeps threads without work.
const WORKERS: usize = 8;

/// How often a runtime ends while a thread looks at all that waits for a job.
const ROUNDS: usize = common::rounds(if cfg!(urgency_chaos) { 3_000 } else { 15_000 });

thread_local! {
    /// Whether the calling thread is the test's that changes demands.
    static CHANGES: Cell<bool> = const { Cell::new(false) };
}

/// Changes the job's demand when it is dropped, and says whether the thread was the one that changes demands.
struct Asks(JobControl, mpsc::Sender<bool>);

impl Drop for Asks {
    fn drop(&mut self) {
        self.0.set_demand(self.0.demand()).unwrap();
        let _ = self.1.send(CHANGES.get());
    }
}

/// A runtime beside the jobs, with which this goes.
fn beside(keeper: &Runtime, goes: Asks) -> Runtime {
    let on_panic = PanicPolicy::call(move |_| {
        let _ = &goes;
    });
    let builder = Runtime::builder().share_workers_with(keeper);
    builder.on_panic(on_panic).build().unwrap()
}

/// A job that forks until it is over.
fn forks(set: &CoreSet) -> (JobHandle<()>, Arc<AtomicBool>) {
    let end = Arc::new(AtomicBool::new(false));
    let its = end.clone();
    let root = move || {
        while !its.load(SeqCst) {
            join(|| (), || ());
        }
    };
    (set.spawn_fn(root).unwrap(), end)
}

/// *Shares*, which wait inside of the first decision of the thread that changes demands after they were told to.
#[derive(Clone, Default)]
struct Waits {
    shares: Shares,
    is_to_wait: Arc<AtomicBool>,
    waits: Arc<AtomicBool>,
}

impl CorePolicy for Waits {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if CHANGES.get() && self.is_to_wait.swap(false, SeqCst) {
            self.waits.store(true, SeqCst);
            while self.waits.load(SeqCst) {
                thread::yield_now();
            }
        }
        self.shares.decide(event, cores, to)
    }
}

#[test]
fn what_goes_with_a_runtime_that_ends_during_a_change_may_change_the_same_job() {
    // With a least number of cores the policy is asked before the change, too.
    for min_cores in [0, 1] {
        ends(move || {
            let policy = Waits::default();
            let keeper = Runtime::builder().workers(2).core_policy(policy.clone());
            let keeper = keeper.build().unwrap();
            let set = CoreSet::beside(&keeper);
            let (job, end) = forks(&set);
            let (gone, is_gone) = mpsc::channel();
            thread::scope(|threads| {
                threads.spawn(|| {
                    CHANGES.set(true);
                    let weights = [1, 2].into_iter().cycle();
                    let mut demands = weights.map(|weight| Demand {
                        weight,
                        min_cores,
                        ..Demand::default()
                    });
                    while !end.load(SeqCst) {
                        job.set_demand(demands.next().unwrap()).unwrap();
                    }
                });
                // Another look at the jobs may have been the last to know of a runtime.
                let mut was_inside = false;
                while !was_inside {
                    let runtime = beside(&keeper, Asks(job.control(), gone.clone()));
                    policy.is_to_wait.store(true, SeqCst);
                    until(|| policy.waits.load(SeqCst));
                    drop(runtime);
                    policy.waits.store(false, SeqCst);
                    was_inside = is_gone.recv().unwrap();
                }
                end.store(true, SeqCst);
            });
            job.get().unwrap();
        });
    }
}

#[test]
fn what_goes_with_a_runtime_that_has_waited_for_a_job_may_change_that_job() {
    ends(|| {
        let keeper = Runtime::builder().workers(2).build().unwrap();
        let set = CoreSet::beside(&keeper);
        let (tell, told) = mpsc::channel();
        let root = async move {
            tell.send(spawn(pending::<()>())).unwrap();
            pending::<()>().await;
        };
        // A job of priority 0 inherits nothing, and looks at no runtime's.
        let job = set.job().priority(5).spawn(root).unwrap();
        let mut part = told.recv().unwrap();
        let end = AtomicBool::new(false);
        thread::scope(|threads| {
            threads.spawn(|| {
                while !end.load(SeqCst) {
                    job.set_demand(job.demand()).unwrap();
                }
            });
            let (gone, is_gone) = mpsc::channel();
            for _ in 0..ROUNDS {
                let runtime = beside(&keeper, Asks(job.control(), gone.clone()));
                // Its code begins to wait, and gives the handle away. No waker of its task stays there.
                let waits = runtime.spawn_fn(move || {
                    assert!(poll(Pin::new(&mut part)).is_pending());
                    part
                });
                part = waits.get().unwrap();
                runtime.shutdown(Shutdown::Drain);
                drop(runtime);
                is_gone.recv().unwrap();
                // Only now does that wait end.
                assert!(poll(Pin::new(&mut part)).is_pending());
            }
            end.store(true, SeqCst);
        });
        job.cancel();
    });
}

/// Changes a job's demand while another thread does, and waits for the lock in the name of a thread. `false`: it needed
/// no thread, since the one that waits for events was there.
fn is_changed_meanwhile() -> bool {
    let (lock, is_asked) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
    let (theirs, asked) = (lock.clone(), is_asked.clone());
    let name = move || {
        if CHANGES.get() {
            asked.store(true, SeqCst);
            drop(theirs.lock());
        }
        String::from("named")
    };
    let runtime = Runtime::builder().workers(WORKERS).thread_name_fn(name);
    let set = CoreSet::beside(&runtime.build().unwrap());
    let end = Arc::new(AtomicBool::new(false));
    let its = end.clone();
    let root = move || {
        let yields = |end: Arc<AtomicBool>| {
            while !end.load(SeqCst) {
                thread::yield_now();
            }
        };
        for _ in 1..WORKERS {
            let its = its.clone();
            spawn_fn(move || yields(its)).detach();
        }
        yields(its);
    };
    let job = set.job().max_cpus(1).spawn_fn(root).unwrap();
    let may_have = |max_cores, weight| {
        let demand = Demand {
            max_cores,
            weight,
            ..Demand::default()
        };
        job.set_demand(demand).unwrap();
    };
    thread::scope(|threads| {
        let locked = lock.lock().unwrap();
        let other = threads.spawn(|| {
            CHANGES.set(true);
            // The first of them may find spare threads.
            (2..=WORKERS).for_each(|cores| may_have(cores, 1));
        });
        until(|| is_asked.load(SeqCst) || other.is_finished());
        may_have(1, 2);
        drop(locked);
    });
    end.store(true, SeqCst);
    job.get().unwrap();
    is_asked.load(SeqCst)
}

#[test]
fn a_demand_is_changed_while_another_change_of_it_waits_for_the_name_of_a_thread() {
    ends(|| while !is_changed_meanwhile() {});
}
