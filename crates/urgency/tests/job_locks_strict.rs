//! Locks that the runtime does not know, between jobs, under policies that leave a job without a core: such a job runs
//! while everything sleeps that the policy gave a core, and only then.

mod common;

use common::ends;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};
use urgency::{
    jobs::{CoreSet, JobBuilder, JobHandle},
    join,
    policy::cores::{
        AtBoundary, Boundary, CorePolicy, Cores, Decision, DecisionError, Demand, Drep, Elastic,
        Event, Feedback, StaticEqual, Task,
    },
    scheduling_point, spawn_fn,
};

/// One core for each job of priority 0, as long as there are any. Others never have one.
#[derive(Clone)]
struct Urgent;

impl CorePolicy for Urgent {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        let urgent = cores.jobs().iter().filter(|job| job.demand().priority == 0);
        let mut owners = urgent.map(|job| job.id());
        cores
            .available()
            .try_for_each(|core| to.give(core, owners.next()))
    }
}

/// The job that started last has all cores.
#[derive(Clone)]
struct NewestFirst;

impl CorePolicy for NewestFirst {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        let newest = cores.jobs().last().map(|job| job.id());
        cores.available().try_for_each(|core| to.give(core, newest))
    }
}

fn cores(count: usize, policy: impl CorePolicy + Clone + Send + Sync + 'static) -> CoreSet {
    let builder = CoreSet::builder().cores(count).core_policy(policy);
    builder.build().unwrap()
}

/// A job of this shape for each core, each with a thread that sleeps in the kernel until it is sent something.
fn sleepers(shape: &JobBuilder, count: usize) -> (Vec<JobHandle<()>>, Sender<()>) {
    let (send, receive) = channel::<()>();
    let receive = Arc::new(Mutex::new(receive));
    let asleep = Arc::new(AtomicUsize::new(0));
    let sleeper = || {
        let (receive, asleep) = (receive.clone(), asleep.clone());
        let sleep = move || {
            asleep.fetch_add(1, SeqCst);
            receive.lock().unwrap().recv().unwrap();
        };
        shape.clone().spawn_fn(sleep).unwrap()
    };
    let jobs = (0..count).map(|_| sleeper()).collect();
    common::until(|| asleep.load(SeqCst) == count);
    (jobs, send)
}

/// All cores sleep until a job without a core has run.
fn a_late_job_wakes_sleepers(
    policy: impl CorePolicy + Clone + Send + Sync + 'static,
    demand: Demand,
) {
    for count in [1, 2] {
        let policy = policy.clone();
        ends(move || {
            let cores = cores(count, policy);
            let (jobs, send) = sleepers(&cores.job().demand(demand), count);
            let late = cores.job().priority(1).spawn_fn(move || {
                // At a fork a worker that is to leave leaves.
                join(|| common::fib(15), || common::fib(15));
                (0..count).for_each(|_| send.send(()).unwrap());
            });
            jobs.into_iter().for_each(|job| job.get().unwrap());
            late.unwrap().get().unwrap();
        });
    }
}

#[test]
fn a_job_without_a_core_runs_while_all_cores_sleep_under_drep() {
    a_late_job_wakes_sleepers(Drep::new(1), Demand::default());
    let steal = AtBoundary::new(Drep::new(1), Boundary::Steal);
    a_late_job_wakes_sleepers(steal, Demand::default());
}

#[test]
fn a_job_without_a_core_runs_while_all_cores_sleep_under_elastic_schedules() {
    let demand = Demand {
        task: Some(Task::new(1_000_000, 500_000, 1_000_000)),
        ..Demand::default()
    };
    a_late_job_wakes_sleepers(Elastic::default(), demand);
    let late = AtBoundary::new(Elastic::default(), Boundary::Job);
    a_late_job_wakes_sleepers(late, demand);
}

#[test]
fn a_job_without_a_core_runs_while_all_cores_sleep_under_feedback() {
    a_late_job_wakes_sleepers(Feedback::default(), Demand::default());
}

#[test]
fn a_job_without_a_part_runs_while_all_parts_sleep() {
    for parts in [1, 2] {
        ends(move || {
            let cores = cores(2, StaticEqual::new(parts).unwrap());
            let (jobs, send) = sleepers(&cores.job(), parts);
            let late = cores.spawn_fn(move || (0..parts).for_each(|_| send.send(()).unwrap()));
            jobs.into_iter().for_each(|job| job.get().unwrap());
            late.unwrap().get().unwrap();
        });
    }
}

#[test]
fn a_job_that_the_policy_never_gives_a_core_runs_while_all_cores_sleep() {
    a_late_job_wakes_sleepers(Urgent, Demand::default());
}

#[test]
fn a_foreign_lock_is_released_that_a_job_holds_which_lost_all_cores() {
    for count in [1, 2] {
        ends(move || {
            let cores = cores(count, NewestFirst);
            let lock = Arc::new(Mutex::new(0));
            let (locked, is_locked) = channel();
            let (enter, entered) = channel::<()>();
            let theirs = lock.clone();
            let first = cores.spawn_fn(move || {
                let mut guard = theirs.lock().unwrap();
                locked.send(()).unwrap();
                while entered.try_recv().is_err() {
                    scheduling_point();
                }
                let (a, b) = join(|| common::fib(15), || common::fib(15));
                *guard += a - b + 1;
            });
            is_locked.recv().unwrap();
            let theirs = lock.clone();
            let newest = cores.spawn_fn(move || {
                enter.send(()).unwrap();
                *theirs.lock().unwrap() += 1;
            });
            newest.unwrap().get().unwrap();
            first.unwrap().get().unwrap();
            assert_eq!(*lock.lock().unwrap(), 2);
        });
    }
}

/// Forty jobs that fork while they hold one lock.
fn all_end(policy: impl CorePolicy + Clone + Send + Sync + 'static) {
    ends(|| {
        let builder = CoreSet::builder().cores(2).most_running(8);
        let cores = builder.core_policy(policy).build().unwrap();
        let lock = Arc::new(Mutex::new(0));
        let jobs: Vec<_> = (0..40)
            .map(|n| {
                let lock = lock.clone();
                let add = move || {
                    for _ in 0..20 {
                        let mut guard = lock.lock().unwrap();
                        let (a, b) = join(|| common::fib(10), || common::fib(10));
                        *guard += a - b + 1;
                    }
                };
                cores.job().max_cpus(1 + n % 2).spawn_fn(add).unwrap()
            })
            .collect();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        assert_eq!(*lock.lock().unwrap(), 800);
    });
}

#[test]
fn jobs_that_fork_under_one_foreign_lock_all_end_whatever_the_policy_gives_them() {
    all_end(Drep::new(7));
    all_end(AtBoundary::new(Drep::new(7), Boundary::Steal));
    all_end(Elastic::default());
    all_end(AtBoundary::new(Elastic::default(), Boundary::Job));
    all_end(Feedback::default());
    all_end(StaticEqual::new(2).unwrap());
    all_end(NewestFirst);
}

/// The job without a core has nothing to wait for but a thread that lost its worker to its own job.
#[test]
fn a_thread_that_sleeps_and_has_no_core_any_more_is_woken_by_a_job_without_a_core() {
    ends(|| {
        let cores = cores(1, Urgent);
        let (send, receive) = channel::<()>();
        let (sleep, may_sleep) = channel();
        let urgent = cores.spawn_fn(move || {
            while may_sleep.try_recv().is_err() {
                scheduling_point();
            }
            let other = spawn_fn(|| ());
            receive.recv().unwrap();
            other.get().unwrap();
        });
        let late = cores.job().priority(1);
        let late = late.spawn_fn(move || send.send(()).unwrap()).unwrap();
        common::until(|| late.stats().unwrap().share.entitled == Some(0));
        sleep.send(()).unwrap();
        urgent.unwrap().get().unwrap();
        late.get().unwrap();
    });
}

/// Which of the jobs without a core has what the sleeper waits for, nothing knows.
#[test]
fn jobs_without_a_core_take_turns_while_all_cores_sleep() {
    ends(|| {
        let cores = cores(1, Urgent);
        let (jobs, send) = sleepers(&cores.job(), 1);
        let over = Arc::new(AtomicBool::new(false));
        let endless = [1, 2, 1].map(|priority| {
            let over = over.clone();
            let job = cores.job().priority(priority).spawn_fn(move || {
                while !over.load(SeqCst) {
                    scheduling_point();
                }
            });
            job.unwrap()
        });
        let late = cores
            .job()
            .priority(3)
            .spawn_fn(move || send.send(()).unwrap());
        jobs.into_iter().for_each(|job| job.get().unwrap());
        late.unwrap().get().unwrap();
        over.store(true, SeqCst);
        // Nothing sleeps any more.
        for job in endless {
            job.set_demand(Demand::default()).unwrap();
            job.get().unwrap();
        }
    });
}

/// Whether a job without a core runs while one of two jobs with a core sleeps, and the other one is awake for some
/// hundred looks of relief.
fn runs_beside_an_awake_one() -> bool {
    let cores = cores(2, Urgent);
    let [begin, ran] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (send, receive) = channel();
    let begun = Arc::new(AtomicUsize::new(0));
    let run = begun.clone();
    let wait = move |begin: &AtomicBool| {
        run.fetch_add(1, SeqCst);
        while !begin.load(SeqCst) {
            scheduling_point();
        }
    };
    let (begins, waits) = (begin.clone(), wait.clone());
    let sleeper = cores.spawn_fn(move || {
        waits(&begins);
        receive.recv().unwrap();
    });
    let (begins, theirs) = (begin.clone(), ran.clone());
    let awake = cores.spawn_fn(move || {
        wait(&begins);
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            scheduling_point();
        }
        theirs.load(SeqCst)
    });
    common::until(|| begun.load(SeqCst) == 2);
    let late = cores.job().priority(1).spawn_fn(move || {
        ran.store(true, SeqCst);
        send.send(()).unwrap();
    });
    let late = late.unwrap();
    common::until(|| late.stats().unwrap().share.entitled == Some(0));
    begin.store(true, SeqCst);
    let ran_beside = awake.unwrap().get().unwrap();
    sleeper.unwrap().get().unwrap();
    late.get().unwrap();
    ran_beside
}

/// Beside builds the awake one was taken for one that sleeps in 5 of 720 runs: why is not known. (It does sleep where
/// the kernel has to read a page of its code.)
#[test]
fn a_job_without_a_core_does_not_run_beside_a_job_with_one_that_is_awake() {
    ends(|| assert!((0..4).any(|_| !runs_beside_an_awake_one())));
}

#[test]
fn a_job_without_a_core_does_not_run_while_no_thread_sleeps() {
    ends(|| {
        let cores = cores(1, Urgent);
        let (begun, is_begun) = channel();
        let (end, ends) = channel();
        let awake = cores.spawn_fn(move || {
            begun.send(()).unwrap();
            while ends.try_recv().is_err() {
                scheduling_point();
            }
        });
        is_begun.recv().unwrap();
        let ran = Arc::new(AtomicBool::new(false));
        let theirs = ran.clone();
        let run = move || theirs.store(true, SeqCst);
        let late = cores.job().priority(1).spawn_fn(run).unwrap();
        common::until(|| late.stats().unwrap().share.entitled == Some(0));
        end.send(()).unwrap();
        awake.unwrap().get().unwrap();
        // A job that waits in the runtime keeps no core, and needs none.
        let waits = cores.spawn(urgency::time::sleep(Duration::from_millis(200)));
        waits.unwrap().get().unwrap();
        assert!(!ran.load(SeqCst), "the policy gave it no core");
        late.set_demand(Demand::default()).unwrap();
        late.get().unwrap();
    });
}
