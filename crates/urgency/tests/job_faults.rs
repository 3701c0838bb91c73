//! Code of the program that panics, or gives nonsense, inside of the job layer: core policies, orders, what jobs
//! capture and give. The fault is reported where it belongs, nothing else is lost, and the set goes on.

mod common;

use common::{ends, fib, quiet, weight};
use std::{
    future::IntoFuture,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Runtime, Shutdown,
    embed::Host,
    jobs::{CoreSet, JobControl, JobErrorKind, JobHandle, JobState, SubmitError},
    policy::{
        Layout, PoolOrder,
        cores::{
            CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal, Shares,
        },
    },
};
use urgency_policy::{dice::Dice, pool::PoolPolicy};

/// *Shares*, which panic when they are asked for a weight of 13, and for any if that is said.
#[derive(Clone, Default)]
struct Picky(Shares, Arc<AtomicBool>);

impl CorePolicy for Picky {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.decide(event, cores, to)
    }

    fn admit(&mut self, _: JobId, demand: &Demand, _: &Cores) -> Result<(), Refusal> {
        if demand.weight == 13 || self.1.load(SeqCst) {
            resume_unwind(Box::new("on purpose"));
        }
        Ok(())
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

#[track_caller]
fn assert_names_picky(error: &BuildError) {
    let BuildError::Demand(Refusal::Panicked { policy }) = error else {
        panic!("{error:?}");
    };
    assert!(policy.ends_with("Picky"), "{policy}");
    let text = error.to_string();
    assert!(
        text.contains(policy) && text.contains("mend the policy's `admit`"),
        "{text}"
    );
}

#[test]
fn a_policy_that_panics_when_it_is_asked_about_a_demand_refuses_it_and_the_set_goes_on() {
    for workers in [1, 2, 8, 64] {
        ends(move || {
            let picky = Picky::default();
            let set = CoreSet::builder().cores(workers).most_running(2);
            let set = set.core_policy(picky.clone()).build().unwrap();
            for _ in 0..3 {
                match set.job().weight(13).spawn_fn(|| ()) {
                    Err(SubmitError::Build(error)) => assert_names_picky(&error),
                    other => panic!("{other:?}"),
                }
            }
            let stats = set.stats();
            assert_eq!((stats.running, stats.submitted), (0, 0), "{stats:?}");
            let (go_on, waits) = urgency::sync::oneshot::channel::<()>();
            let job = set.job().weight(2).spawn(waits).unwrap();
            match job.set_demand(weight(13)) {
                Err(SubmitError::Build(error)) => assert_names_picky(&error),
                other => panic!("{other:?}"),
            }
            assert_eq!(job.demand(), weight(2), "the old demand holds");
            // The usual demand of a container whose job is over is asked for as well.
            picky.1.store(true, SeqCst);
            go_on.send(()).unwrap();
            job.get().unwrap().unwrap();
            set.drain();
            picky.1.store(false, SeqCst);
            for n in 5..10 {
                let job = set.job().weight(2).spawn_fn(move || fib(n)).unwrap();
                let share = job.stats().unwrap().share;
                assert_eq!((share.rejected, share.policy_panicked), (None, false));
                job.get().unwrap();
            }
            set.drain();
            let stats = set.stats();
            assert_eq!((stats.running, stats.over), (0, stats.submitted));
        });
    }
}

/// *Shares*, which take their time, until they are told to go on, for a tenth of a second at most, and then refuse a
/// weight of 13.
#[derive(Clone, Default)]
struct Slow {
    shares: Shares,
    asked: Arc<AtomicBool>,
    go_on: Arc<AtomicBool>,
}

impl CorePolicy for Slow {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.shares.decide(event, cores, to)
    }

    fn admit(&mut self, _: JobId, demand: &Demand, _: &Cores) -> Result<(), Refusal> {
        if demand.weight != 13 {
            return Ok(());
        }
        self.asked.store(true, SeqCst);
        let limit = Instant::now() + Duration::from_millis(100);
        while !self.go_on.load(SeqCst) && Instant::now() < limit {
            thread::yield_now();
        }
        Err(Refusal::Own("on purpose"))
    }
}

/// Whether the job began to wait while the policy took its time. While it does no worker goes to another job, so the
/// waiting job may have none.
fn waits_for_one_that_is_just_refused() -> bool {
    let slow = Slow::default();
    let set = CoreSet::builder().cores(2).most_running(2);
    let set = set.core_policy(slow.clone()).build().unwrap();
    let (give, take) = urgency::sync::oneshot::channel::<JobHandle<()>>();
    let (asked, go_on) = (slow.asked, slow.go_on);
    let waits = set.spawn(async move {
        let refused = take.await.unwrap();
        while !asked.load(SeqCst) {
            urgency::yield_now().await;
        }
        let mut wait = pin!(refused.into_future());
        let at_once = common::poll(wait.as_mut());
        go_on.store(true, SeqCst);
        match at_once {
            Poll::Ready(end) => (false, end.unwrap_err().kind()),
            Poll::Pending => (true, wait.await.unwrap_err().kind()),
        }
    });
    let (end, ends) = urgency::sync::oneshot::channel::<()>();
    let first = set.spawn(ends).unwrap();
    let refused = set.job().weight(13).spawn_fn(|| ()).unwrap();
    assert_eq!(refused.state(), JobState::Queued);
    give.send(refused).unwrap();
    end.send(()).unwrap();
    first.get().unwrap().unwrap();
    let (waited, kind) = waits.unwrap().get().unwrap();
    let refused = BuildError::Demand(Refusal::Own("on purpose"));
    assert_eq!(kind, JobErrorKind::Refused(refused));
    waited
}

#[test]
fn a_job_that_begins_to_wait_for_one_that_is_just_refused_has_its_error() {
    ends(|| assert!((0..20).any(|_| waits_for_one_that_is_just_refused())));
}

#[test]
fn a_queued_job_that_the_policy_panics_about_has_an_error_when_its_turn_comes() {
    ends(|| {
        let set = CoreSet::builder().cores(1).most_running(1);
        let set = set.core_policy(Picky::default()).build().unwrap();
        let (go_on, waits) = urgency::sync::oneshot::channel::<()>();
        let first = set.spawn(waits).unwrap();
        let picky = set.job().weight(13).spawn_fn(|| ()).unwrap();
        let last = set.spawn_fn(|| 42).unwrap();
        go_on.send(()).unwrap();
        first.get().unwrap().unwrap();
        match picky.get().unwrap_err().kind() {
            JobErrorKind::Refused(error) => assert_names_picky(&error),
            other => panic!("{other:?}"),
        }
        assert_eq!(last.get().unwrap(), 42);
        set.drain();
    });
}

#[test]
fn a_runtime_beside_others_is_refused_by_a_policy_that_panics_and_its_place_is_free() {
    ends(|| {
        let builder = Runtime::builder().workers(2);
        let one = builder.core_policy(Picky::default()).build().unwrap();
        let error = Runtime::builder()
            .share_workers_with(&one)
            .demand(weight(13))
            .build()
            .unwrap_err();
        assert_names_picky(&error);
        assert_names_picky(&one.set_demand(weight(13)).unwrap_err());
        let other = Runtime::builder().share_workers_with(&one).build().unwrap();
        assert_eq!(other.run(|| fib(10)) + one.run(|| fib(10)), 110);
    });
}

/// Its own drop panics, so often.
struct PanicsOnDrop(Arc<AtomicUsize>);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        resume_unwind(Box::new("in a drop, on purpose"));
    }
}

/// Panics with what panics when it is dropped; and its own drop does.
#[derive(Clone)]
struct Hopeless(Arc<AtomicUsize>, bool);

impl CorePolicy for Hopeless {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        self.1 = true;
        resume_unwind(Box::new(PanicsOnDrop(self.0.clone())));
    }
}

impl Drop for Hopeless {
    fn drop(&mut self) {
        if self.1 {
            self.0.fetch_add(1, SeqCst);
            resume_unwind(Box::new("in a drop, on purpose"));
        }
    }
}

#[test]
fn a_policy_whose_panic_and_whose_drop_panic_is_replaced_like_any_other() {
    for workers in [1, 2, 8] {
        ends(move || {
            let drops = Arc::new(AtomicUsize::new(0));
            let hopeless = Hopeless(drops.clone(), false);
            let set = CoreSet::builder().cores(workers).core_policy(hopeless);
            let set = set.build().unwrap();
            let job = |n| set.spawn_fn(move || fib(n)).unwrap();
            while drops.load(SeqCst) < 2 {
                let jobs: Vec<_> = (0..2 * workers).map(|_| job(12)).collect();
                jobs.into_iter()
                    .for_each(|job| assert_eq!(job.get().unwrap(), 144));
            }
            let last = job(12);
            assert!(last.stats().unwrap().share.policy_panicked);
            assert_eq!(last.get().unwrap(), 144);
            assert_eq!(drops.load(SeqCst), 2, "the payload, and the policy");
        });
    }
}

/// Puts another decision in the place of its own, each time in another way.
#[derive(Clone, Default)]
struct Swaps(Vec<Decision>);

impl CorePolicy for Swaps {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        let all = cores.available().collect::<Vec<_>>();
        let newest = cores.jobs().last().map(|job| job.id());
        all.iter().try_for_each(|&core| to.give(core, newest))?;
        self.0.push(to.clone());
        *to = match self.0.len() % 3 {
            0 => Decision::default(),
            n => self.0[self.0.len() / (n + 1)].clone(),
        };
        Ok(())
    }
}

#[test]
fn jobs_go_on_under_a_policy_that_puts_other_decisions_in_the_place_of_its_own() {
    for workers in [1, 2, 8] {
        ends(move || {
            let set = CoreSet::builder().cores(workers);
            let set = set.core_policy(Swaps::default()).build().unwrap();
            let (go_on, waits) = urgency::sync::oneshot::channel::<()>();
            let watched = set.spawn(waits).unwrap();
            for _ in 0..30 {
                let job = |_| set.spawn_fn(|| fib(12)).unwrap();
                let jobs: Vec<_> = (0..2 * workers).map(job).collect();
                jobs.into_iter()
                    .for_each(|job| assert_eq!(job.get().unwrap(), 144));
            }
            assert!(!watched.stats().unwrap().share.policy_panicked);
            go_on.send(()).unwrap();
            watched.get().unwrap().unwrap();
        });
    }
}

/// *Shares* that look at jobs whenever they decide.
#[derive(Clone, Default)]
struct Looks(Shares, Arc<Mutex<Vec<JobControl>>>);

impl CorePolicy for Looks {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        for job in &*self.1.lock().unwrap() {
            let _ = (job.stats(), job.state(), job.progress());
        }
        self.0.decide(event, cores, to)
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

#[test]
fn a_policy_may_look_at_the_jobs_whose_demand_changes() {
    ends(|| {
        let looks = Looks::default();
        let set = CoreSet::builder().cores(1).core_policy(looks.clone());
        let set = set.build().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let spin = |_| {
            let stop = stop.clone();
            let spins = move || {
                while !stop.load(SeqCst) {
                    fib(3);
                }
            };
            set.spawn_fn(spins).unwrap()
        };
        let jobs: Vec<_> = (0..3).map(spin).collect();
        let controls = jobs.iter().map(|job| job.control());
        looks.1.lock().unwrap().extend(controls);
        for n in 1..200 {
            jobs[n % 3].set_demand(weight(n as u32)).unwrap();
        }
        stop.store(true, SeqCst);
        jobs.into_iter().for_each(|job| job.get().unwrap());
    });
}

#[test]
fn a_queued_job_is_cancelled_though_the_drop_of_what_it_captured_panics() {
    quiet();
    ends(|| {
        let set = CoreSet::builder().cores(1).most_running(1).build().unwrap();
        let (go_on, waits) = urgency::sync::oneshot::channel::<()>();
        let first = set.spawn(waits).unwrap();
        let drops = Arc::new(AtomicUsize::new(0));
        let queued: Vec<_> = (0..2)
            .map(|_| {
                let captured = PanicsOnDrop(drops.clone());
                set.spawn(async move {
                    let _captured = captured;
                })
                .unwrap()
            })
            .collect();
        for job in queued {
            let cancelled = catch_unwind(AssertUnwindSafe(|| job.cancel()));
            assert!(cancelled.is_ok(), "the panic came to the canceller");
            assert_eq!(job.get().unwrap_err().kind(), JobErrorKind::Cancelled);
        }
        assert_eq!(drops.load(SeqCst), 2);
        go_on.send(()).unwrap();
        first.get().unwrap().unwrap();
        set.drain();
        assert_eq!(set.stats().over, 3);
    });
}

#[test]
fn the_result_of_a_detached_job_may_panic_when_it_is_dropped() {
    quiet();
    for workers in [1, 2, 8] {
        ends(move || {
            let set = CoreSet::builder().cores(workers).most_running(2);
            let set = set.build().unwrap();
            let drops = Arc::new(AtomicUsize::new(0));
            for _ in 0..20 {
                let (sync, of_async) = (PanicsOnDrop(drops.clone()), PanicsOnDrop(drops.clone()));
                set.spawn_fn(move || sync).unwrap().detach();
                set.spawn(async move { of_async }).unwrap().detach();
            }
            set.drain();
            common::until(|| drops.load(SeqCst) == 40);
            assert_eq!(set.spawn_fn(|| fib(10)).unwrap().get().unwrap(), 55);
        });
    }
}

/// An order that cannot be had.
#[derive(Clone, Debug)]
struct NoOrder;

impl PoolOrder for NoOrder {
    fn layout(&self) -> Layout {
        resume_unwind(Box::new("on purpose"))
    }

    fn policy(&self, _: usize, _: usize, _: &Dice) -> Box<dyn PoolPolicy + Send> {
        unreachable!("it has no layout")
    }
}

#[test]
fn a_job_whose_order_panics_is_an_error_and_the_next_jobs_start() {
    ends(|| {
        let set = CoreSet::builder().cores(1).most_running(1).build().unwrap();
        let faulty = set.job().runtime(|builder| builder.pool(NoOrder));
        let refused = faulty.clone().spawn_fn(|| ()).map(|job| job.id());
        assert_eq!(refused, Err(SubmitError::Build(BuildError::Panicked)));
        let (go_on, waits) = urgency::sync::oneshot::channel::<()>();
        let first = set.spawn(waits).unwrap();
        let queued = faulty.spawn_fn(|| ()).unwrap();
        let last = set.spawn_fn(|| 42).unwrap();
        go_on.send(()).unwrap();
        first.get().unwrap().unwrap();
        let kind = queued.get().unwrap_err().kind();
        assert_eq!(kind, JobErrorKind::Refused(BuildError::Panicked));
        assert_eq!(last.get().unwrap(), 42);
        set.drain();
    });
}

struct Attached;

#[test]
fn a_container_that_its_job_has_changed_for_good_is_not_kept() {
    let shut_down = || {
        let runtime = Runtime::current();
        let within = Duration::ZERO;
        thread::spawn(move || {
            runtime.shutdown_within(Shutdown::Cancel, within);
        })
    };
    let attach = || {
        let kept = Arc::new(Attached);
        Host::of(&Runtime::current()).attach(Arc::downgrade(&kept) as Weak<_>);
        thread::spawn(|| ())
    };
    for change in [shut_down as fn() -> thread::JoinHandle<()>, attach] {
        ends(move || {
            let set = CoreSet::builder().cores(2).most_running(4).build().unwrap();
            for _ in 0..40 {
                if let Ok(thread) = set.spawn_fn(change).unwrap().get() {
                    thread.join().unwrap();
                }
            }
            set.drain();
            // From here on containers are used again.
            let built = set.stats().built;
            for n in 0..100 {
                assert_eq!(set.spawn_fn(move || n).unwrap().get().unwrap(), n);
            }
            let stats = set.stats();
            assert!(stats.built - built < 50, "{built} before, now {stats:?}");
        });
    }
}
