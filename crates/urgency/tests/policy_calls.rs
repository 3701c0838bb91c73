//! What a core policy does inside of its own `decide` hangs nothing: what has an answer is an error, what has none is
//! done afterwards, and a wait is a panic that says so, after which *shares* decide.

mod common;

use common::{ends, fib, poll, until};
use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::channel,
    },
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Runtime, Shutdown, block_on,
    jobs::{CoreSet, JobControl, JobErrorKind, JobHandle, JobState, SubmitError},
    join,
    policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Demand, Event, Job, Refusal, Request, Shares,
    },
    scheduling_point, spawn,
};

type Call = Box<dyn FnOnce() + Send>;

/// *Shares*, which make one call inside of a decision.
#[derive(Clone, Default)]
struct Calls {
    shares: Shares,
    call: Arc<Mutex<Option<Call>>>,
    made: Arc<AtomicBool>,
    /// The requests of which they heard.
    heard: Arc<Mutex<Vec<u64>>>,
}

impl Calls {
    fn make(&self, call: impl FnOnce() + Send + 'static) {
        *self.call.lock().unwrap() = Some(Box::new(call));
    }

    fn is_made(&self) -> bool {
        self.made.load(SeqCst)
    }
}

impl CorePolicy for Calls {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if let Event::Request(Request::Own(number)) = event {
            self.heard.lock().unwrap().push(number);
        }
        let call = self.call.lock().unwrap().take();
        if let Some(call) = call {
            call();
            self.made.store(true, SeqCst);
        }
        self.shares.decide(event, cores, to)
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

fn set() -> (Calls, CoreSet) {
    let policy = Calls::default();
    let builder = CoreSet::builder().cores(2).most_running(2);
    (policy.clone(), builder.core_policy(policy).build().unwrap())
}

/// Jobs come and go until the call is made.
fn until_made(policy: &Calls, cores: &CoreSet) {
    while !policy.is_made() {
        assert_eq!(cores.spawn_fn(|| fib(10)).unwrap().get().unwrap(), 55);
    }
    assert_eq!(cores.spawn_fn(|| fib(10)).unwrap().get().unwrap(), 55);
}

/// What the call gives inside of a decision.
fn made_inside<T: Send + 'static>(
    policy: &Calls,
    cores: &CoreSet,
    call: impl FnOnce() -> T + Send + 'static,
) -> T {
    let given = Arc::new(Mutex::new(None));
    let theirs = given.clone();
    policy.make(move || *theirs.lock().unwrap() = Some(call()));
    until_made(policy, cores);
    given.lock().unwrap().take().unwrap()
}

fn deciding() -> SubmitError {
    SubmitError::Build(BuildError::Demand(Refusal::Deciding))
}

/// A job that computes until it is told to end, and has begun.
fn busy(cores: &CoreSet) -> (JobHandle<()>, Arc<AtomicBool>) {
    let [begun, end] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let (its, ends) = (begun.clone(), end.clone());
    let computes = move || {
        its.store(true, SeqCst);
        while !ends.load(SeqCst) {
            scheduling_point();
        }
    };
    let job = cores.job().max_cpus(1).spawn_fn(computes).unwrap();
    until(|| begun.load(SeqCst));
    (job, end)
}

#[test]
fn a_wait_that_ends_inside_of_a_decision_lends_nothing_afterwards() {
    ends(|| {
        let policy = Calls::default();
        let cores = CoreSet::builder().cores(2).core_policy(policy.clone());
        let cores = cores.build().unwrap();
        let (tell, told) = channel();
        let root = async move {
            let part = spawn(pending::<()>());
            tell.send((Runtime::current(), part)).unwrap();
            pending::<()>().await;
        };
        let calm = cores.job().priority(9).spawn(root).unwrap();
        let (container, mut part) = told.recv().unwrap();
        let (give, given) = channel();
        let root = async move {
            assert!(poll(Pin::new(&mut part)).is_pending());
            give.send(part).unwrap();
            pending::<()>().await;
        };
        let urgent = cores.job().priority(3).spawn(root).unwrap();
        let part = given.recv().unwrap();
        assert_eq!(container.demand().priority, 3);
        made_inside(&policy, &cores, move || drop(part));
        assert_eq!(container.demand().priority, 9);
        urgent.cancel();
        calm.cancel();
    });
}

#[test]
fn another_demand_of_a_job_is_refused_inside_of_a_decision() {
    ends(|| {
        let (policy, cores) = set();
        let (job, end) = busy(&cores);
        let control = job.control();
        let demand = Demand {
            weight: 7,
            ..Demand::default()
        };
        let refused = made_inside(&policy, &cores, move || control.set_demand(demand));
        assert_eq!(refused, Err(deciding()));
        job.set_demand(demand).unwrap();
        end.store(true, SeqCst);
        job.get().unwrap();
    });
}

#[test]
fn a_job_that_has_to_ask_for_its_cores_is_refused_inside_of_a_decision() {
    ends(|| {
        let (policy, cores) = set();
        let set = cores.clone();
        let submit = move || set.job().weight(3).spawn_fn(|| ()).map(|_| ());
        let refused = made_inside(&policy, &cores, submit);
        assert_eq!(refused, Err(deciding()));
        cores.drain();
    });
}

/// One of two running jobs ends by the call that `end` makes of it, and the next one, which is queued, starts.
fn the_next_one_starts(
    end: impl FnOnce(Runtime, JobControl) -> Call + Send + 'static,
    kind: JobErrorKind,
) {
    ends(move || {
        let (policy, cores) = set();
        let (tell, told) = channel();
        let waits = cores.spawn(async move {
            tell.send(Runtime::current()).unwrap();
            std::future::pending::<()>().await;
        });
        let waits = waits.unwrap();
        let (busy, stop) = busy(&cores);
        let next = cores.job().weight(3).spawn_fn(|| fib(10)).unwrap();
        assert_eq!(next.state(), JobState::Queued);
        *policy.call.lock().unwrap() = Some(end(told.recv().unwrap(), waits.control()));
        // A change of a job with work is an event.
        busy.set_demand(Demand::default()).unwrap();
        until(|| policy.is_made());
        assert_eq!(waits.get().unwrap_err().kind(), kind);
        assert_eq!(next.get().unwrap(), 55);
        stop.store(true, SeqCst);
        busy.get().unwrap();
    });
}

#[test]
fn a_job_that_is_cancelled_inside_of_a_decision_ends_and_the_next_one_starts() {
    let cancel = |_, job: JobControl| Box::new(move || job.cancel()) as Call;
    the_next_one_starts(cancel, JobErrorKind::Cancelled);
}

/// What a call about a job gives, which the policy makes while the decision is about a new demand of that job.
fn made_during_a_change<T: Send + 'static>(
    call: impl FnOnce(&JobControl) -> T + Send + 'static,
) -> T {
    let (policy, cores) = set();
    let (job, end) = busy(&cores);
    let (tell, told) = channel();
    let control = job.control();
    policy.make(move || tell.send(call(&control)).unwrap());
    job.set_demand(Demand::default()).unwrap();
    until(|| policy.is_made());
    end.store(true, SeqCst);
    job.get().unwrap();
    told.recv().unwrap()
}

#[test]
fn a_job_may_be_cancelled_inside_of_a_decision_about_its_own_demand() {
    let is_cancelled = |job: &JobControl| job.cancel();
    ends(move || made_during_a_change(is_cancelled));
}

#[test]
fn another_demand_is_refused_inside_of_a_decision_about_the_same_jobs_demand() {
    let change = |job: &JobControl| job.set_demand(job.demand());
    assert_eq!(ends(move || made_during_a_change(change)), Err(deciding()));
}

#[test]
fn a_job_that_is_shut_down_inside_of_a_decision_ends_and_the_next_one_starts() {
    let shut_down = |runtime: Runtime, _| {
        Box::new(move || {
            runtime.shutdown(Shutdown::Cancel);
        }) as Call
    };
    the_next_one_starts(shut_down, JobErrorKind::ShutDown);
}

/// After the call *shares* decide, and all goes on.
fn is_a_panic<T>(call: impl FnOnce(&CoreSet) -> T + Send + 'static) {
    common::quiet();
    ends(move || {
        let (policy, cores) = set();
        let (busy, end) = busy(&cores);
        let set = cores.clone();
        policy.make(move || {
            call(&set);
        });
        busy.set_demand(Demand::default()).unwrap();
        until(|| busy.stats().unwrap().share.policy_panicked);
        assert!(!policy.is_made());
        assert_eq!(cores.spawn_fn(|| fib(10)).unwrap().get().unwrap(), 55);
        end.store(true, SeqCst);
        busy.get().unwrap();
    });
}

#[test]
fn a_policy_hears_of_what_code_asks_it_with_and_without_jobs_and_inside_of_a_decision() {
    ends(|| {
        let (policy, cores) = set();
        let heard = policy.heard.clone();
        cores.request(1);
        assert_eq!(*heard.lock().unwrap(), [1], "without a job");
        let (job, end) = busy(&cores);
        cores.request(2);
        assert_eq!(*heard.lock().unwrap(), [1, 2], "one job has all workers");
        let set = cores.clone();
        policy.make(move || set.request(4));
        cores.request(3);
        until(|| *heard.lock().unwrap() == [1, 2, 3, 4]);
        // From several threads, at once.
        std::thread::scope(|threads| {
            for number in 5..9 {
                let cores = &cores;
                threads.spawn(move || (0..100).for_each(|_| cores.request(number)));
            }
        });
        until(|| heard.lock().unwrap().len() == 4 + 400);
        end.store(true, SeqCst);
        job.get().unwrap();
    });
}

/// All cores are the job's of weight 1, until code asks for the one of weight 2.
#[derive(Clone, Default)]
struct OneHasAll {
    is_newest: bool,
}

impl CorePolicy for OneHasAll {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        if let Event::Request(Request::Own(number)) = event {
            self.is_newest = number == 1;
        }
        // By its weight: a job that has nothing to do for a moment is the newest of the table afterwards.
        let weight = if self.is_newest { 2 } else { 1 };
        let is_it = |job: &&Job| job.demand().weight == weight;
        let job = cores.jobs().iter().find(is_it).or(cores.jobs().first());
        let id = job.map(|job| job.id());
        cores.available().try_for_each(|core| to.give(core, id))
    }
}

#[test]
fn workers_go_where_a_request_sends_them() {
    ends(|| {
        let builder = CoreSet::builder().cores(2).most_running(2);
        let cores = builder.core_policy(OneHasAll::default()).build().unwrap();
        let end = Arc::new(AtomicBool::new(false));
        let forks = |weight| {
            let end = end.clone();
            let forks = move || {
                while !end.load(SeqCst) {
                    // So long that a second worker is worth its wake-up, and is there whenever this test looks.
                    join(|| fib(18), || fib(18));
                }
            };
            cores.job().weight(weight).spawn_fn(forks).unwrap()
        };
        let (oldest, newest) = (forks(1), forks(2));
        let has_all = |job: &JobHandle<()>| job.stats().is_some_and(|it| it.share.serving == 2);
        for _ in 0..5 {
            until(|| has_all(&oldest));
            cores.request(1);
            until(|| has_all(&newest));
            cores.request(0);
        }
        end.store(true, SeqCst);
        oldest.get().unwrap();
        newest.get().unwrap();
    });
}

/// The job with the earliest deadline has all cores.
#[derive(Clone)]
struct EarliestFirst;

impl CorePolicy for EarliestFirst {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        let deadline = |job: &&Job| job.demand().deadline.unwrap_or(u64::MAX);
        let first = cores.jobs().iter().min_by_key(deadline);
        let id = first.map(|job| job.id());
        cores.available().try_for_each(|core| to.give(core, id))
    }
}

#[test]
fn jobs_run_in_the_order_of_their_deadlines_under_a_policy_that_looks_at_them() {
    ends(|| {
        let builder = CoreSet::builder().cores(1).core_policy(EarliestFirst);
        let cores = builder.build().unwrap();
        let now = Instant::now();
        let (go, order) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(Mutex::new(vec![])),
        );
        let its = go.clone();
        // Its deadline is over.
        let first = cores.job().deadline(now - Duration::from_millis(1));
        let first = first.spawn_fn(move || {
            while !its.load(SeqCst) {
                scheduling_point();
            }
        });
        let submit = |after: Option<u64>| {
            let order = order.clone();
            let job = cores.job();
            let job = match after {
                Some(seconds) => job.deadline(now + Duration::from_secs(seconds)),
                None => job,
            };
            job.spawn_fn(move || order.lock().unwrap().push(after))
                .unwrap()
        };
        let jobs = [Some(60), None, Some(20), Some(40)].map(submit);
        assert_eq!(*order.lock().unwrap(), []);
        go.store(true, SeqCst);
        first.unwrap().get().unwrap();
        for job in jobs {
            job.get().unwrap();
        }
        let by_deadline = [Some(20), Some(40), Some(60), None];
        assert_eq!(*order.lock().unwrap(), by_deadline);
    });
}

#[test]
fn a_wait_inside_of_a_decision_is_a_panic() {
    is_a_panic(|cores| cores.spawn_fn(|| ()).unwrap().get());
    is_a_panic(|cores| block_on(cores.spawn_fn(|| ()).unwrap().into_future()));
    is_a_panic(CoreSet::drain);
    let other = Runtime::builder().workers(1).build().unwrap();
    is_a_panic(move |_| other.shutdown(Shutdown::Drain));
    is_a_panic(|_| block_on(std::future::pending::<()>()));
}

#[test]
fn a_fork_inside_of_a_decision_is_a_panic() {
    is_a_panic(|_| join(|| (), || ()));
}

#[test]
fn a_task_that_a_decision_spawns_runs() {
    ends(|| {
        let (policy, cores) = set();
        let (tell, told) = channel();
        let spawn = move || urgency::spawn_fn(move || tell.send(6 * 7).unwrap()).detach();
        made_inside(&policy, &cores, spawn);
        assert_eq!(told.recv().unwrap(), 42);
    });
}
