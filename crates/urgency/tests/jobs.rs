//! Runtimes on one set of workers have as many of them as the core policy says.
//!
//! What is counted is what the policy gave ([`WorkerShare::entitled`]), how many workers serve
//! ([`WorkerShare::serving`]), and running time in proportion to the other runtime's. The machine may have any number
//! of processors: workers beyond them are in reserve, and what a test says of the division holds for the other workers.

mod common;

use common::{ends, fib, least, weight};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{
    BuildError, Runtime, Shutdown, WorkerShare,
    embed::{Host, worker_index},
    policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Demand, DemandError, Drep, Event, Feedback,
        Refusal, StaticEqual,
    },
};

fn most(max_cores: usize) -> Demand {
    Demand {
        max_cores,
        ..Demand::default()
    }
}

fn first(workers: usize, demand: Demand) -> Runtime {
    let builder = Runtime::builder().workers(workers).demand(demand);
    builder.build().unwrap()
}

fn beside(other: &Runtime, demand: Demand) -> Runtime {
    let builder = Runtime::builder().share_workers_with(other).demand(demand);
    builder.build().unwrap()
}

/// Endless work for all workers, with or without scheduling points, until it is dropped.
struct Load(Arc<AtomicBool>);

impl Load {
    fn with(runtime: &Runtime, part: fn()) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..2 * runtime.stats().workers.len() {
            let stop = stop.clone();
            let works = move || {
                while !stop.load(SeqCst) {
                    part();
                }
            };
            runtime.spawn_fn(works).detach();
        }
        Load(stop)
    }

    fn on(runtime: &Runtime) -> Load {
        Load::with(runtime, || assert_eq!(fib(8), 21))
    }

    fn spinning_on(runtime: &Runtime) -> Load {
        Load::with(runtime, std::hint::spin_loop)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Waits until what a runtime has of the workers is so.
#[track_caller]
fn until(runtime: &Runtime, is_so: impl Fn(WorkerShare) -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_so(runtime.stats().share) {
        let share = runtime.stats().share;
        assert!(Instant::now() < limit, "it does not come: {share:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn running(runtime: &Runtime) -> f64 {
    runtime.stats().total().running.as_secs_f64()
}

/// How much longer the code of `a` runs than the code of `b`, from now until both together have run for `seconds`.
fn ratio(a: &Runtime, b: &Runtime, seconds: f64) -> f64 {
    let before = (running(a), running(b));
    loop {
        thread::sleep(Duration::from_millis(5));
        let (a, b) = (running(a) - before.0, running(b) - before.1);
        if a + b > seconds {
            return a / b;
        }
    }
}

#[test]
fn a_runtime_of_three_times_the_weight_has_more_of_the_workers_time() {
    for workers in [1, 2, 4] {
        ends(move || {
            let heavy = first(workers, weight(3));
            let light = beside(&heavy, weight(1));
            let _loads = [Load::on(&heavy), Load::on(&light)];
            until(&light, |share| share.entitled.is_some());
            // The policy's numbers are exact (`division.rs`); the kernel's processors are shared with others.
            let ratio = ratio(&heavy, &light, 1.5);
            assert!((1.3..9.0).contains(&ratio), "{ratio} with {workers}");
        });
    }
}

#[test]
fn weights_that_change_count_from_then_on() {
    ends(|| {
        let heavy = first(2, weight(9));
        let light = beside(&heavy, weight(1));
        let _loads = [Load::on(&heavy), Load::on(&light)];
        until(&light, |share| share.entitled.is_some());
        assert!(ratio(&heavy, &light, 1.5) > 1.2);
        heavy.set_demand(weight(1)).unwrap();
        light.set_demand(weight(9)).unwrap();
        // It takes some looks.
        ratio(&heavy, &light, 0.1);
        assert!(ratio(&light, &heavy, 1.5) > 1.2);
    });
}

/// The most workers that serve a runtime at any of many looks, meanwhile.
fn most_seen(runtime: &Runtime, meanwhile: impl FnOnce()) -> usize {
    let (end, peak) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|threads| {
        threads.spawn(|| {
            while !end.load(SeqCst) {
                peak.fetch_max(runtime.stats().share.serving, SeqCst);
                thread::yield_now();
            }
        });
        meanwhile();
        end.store(true, SeqCst);
    });
    peak.into_inner()
}

#[test]
fn a_runtime_never_has_more_than_its_most_workers_though_others_are_idle() {
    ends(|| {
        let narrow = first(4, most(1));
        let wide = beside(&narrow, Demand::default());
        let peak = most_seen(&narrow, || {
            for _ in 0..20 {
                let handles: Vec<_> = (0..20).map(|_| narrow.spawn_fn(|| fib(10))).collect();
                let tasks: Vec<_> = (0..20).map(|_| narrow.spawn(async { fib(5) })).collect();
                assert_eq!(wide.run(|| fib(10)), 55);
                assert_eq!(narrow.run(|| fib(10)), 55);
                handles
                    .into_iter()
                    .for_each(|it| assert_eq!(it.get().unwrap(), 55));
                tasks
                    .into_iter()
                    .for_each(|it| assert_eq!(it.get().unwrap(), 5));
            }
        });
        assert_eq!(peak, 1);
    });
}

#[test]
fn a_runtime_alone_has_at_most_its_most_workers_and_one_that_has_more_gives_them_back() {
    ends(|| {
        let alone = first(2, Demand::default());
        let load = Load::spinning_on(&alone);
        until(&alone, |share| share.serving == 2);
        alone.set_demand(most(1)).unwrap();
        until(&alone, |share| share.serving == 1);
        let peak = most_seen(&alone, || thread::sleep(Duration::from_millis(30)));
        assert_eq!(peak, 1);
        // Closures that go on without a worker and never check in want none.
        drop(load);
        alone.set_demand(most(2)).unwrap();
        let load = Load::spinning_on(&alone);
        until(&alone, |share| share.serving == 2);
        drop(load);
        assert_eq!(alone.shutdown(Shutdown::Drain).left, 0);
    });
}

#[test]
fn forked_work_for_certain_workers_runs_there_whatever_the_most() {
    ends(|| {
        let narrow = first(4, most(1));
        let (each, all) = mpsc::channel();
        Host::of(&narrow).spawn_on_each(|number| {
            let each = each.clone();
            move || each.send((number, worker_index())).unwrap()
        });
        for _ in 0..4 {
            let (number, index) = all.recv().unwrap();
            assert_eq!(index, Some(number));
        }
        assert_eq!(narrow.run(|| fib(10)), 55);
    });
}

#[test]
fn a_runtime_keeps_its_least_workers_beside_one_of_any_weight() {
    ends(|| {
        let heavy = first(2, weight(1000));
        let light = beside(&heavy, least(1));
        let _loads = [Load::on(&heavy), Load::on(&light)];
        until(&light, |share| share.entitled == Some(1));
        let ratio = ratio(&heavy, &light, 1.5);
        assert!((0.3..3.0).contains(&ratio), "{ratio}");
    });
}

#[test]
fn workers_that_one_has_no_use_for_serve_the_other() {
    ends(|| {
        let quiet = first(2, weight(1000));
        let busy = beside(&quiet, weight(1));
        let _load = Load::on(&busy);
        until(&busy, |share| share.serving == 2);
        // One at a time.
        for _ in 0..50 {
            quiet.spawn(async {}).get().unwrap();
        }
        until(&busy, |share| share.serving == 2);
    });
}

#[test]
fn a_runtime_that_spins_without_checking_in_loses_its_workers_after_the_decision() {
    ends(|| {
        // It lends none to the other one, whose savings of the time between would take both: a loop that goes on
        // without a worker wants none back.
        let spins = first(2, least(1));
        let other = beside(&spins, Demand::default());
        let load = Load::spinning_on(&spins);
        until(&spins, |share| share.serving == 2);
        for _ in 0..10 {
            assert_eq!(other.spawn_fn(|| fib(10)).get().unwrap(), 55);
        }
        let _load = Load::on(&other);
        until(&other, |share| {
            share.entitled == Some(1) && share.serving == 1
        });
        drop(load);
        until(&other, |share| share.serving == 2);
    });
}

/// The job with the largest weight has everything. Counts how often it is asked.
#[derive(Clone)]
struct HeaviestFirst(Arc<AtomicUsize>);

impl CorePolicy for HeaviestFirst {
    fn decide(&mut self, _: Event, cores: &Cores, to: &mut Decision) -> Result<(), DecisionError> {
        self.0.fetch_add(1, SeqCst);
        let jobs = cores.jobs().iter();
        let heaviest = jobs
            .max_by_key(|job| job.demand().weight)
            .map(|job| job.id());
        cores
            .available()
            .try_for_each(|core| to.give(core, heaviest))
    }
}

#[test]
fn a_policy_of_ones_own_decides_about_one_runtime_and_about_several() {
    ends(|| {
        let asked = Arc::new(AtomicUsize::new(0));
        let builder = Runtime::builder().workers(2);
        let builder = builder.core_policy(HeaviestFirst(asked.clone()));
        let light = builder.build().unwrap();
        let _light_load = Load::on(&light);
        until(&light, |share| {
            share.entitled == Some(2) && share.serving == 2
        });
        assert!(asked.load(SeqCst) > 0);
        let heavy = beside(&light, weight(2));
        let load = Load::on(&heavy);
        until(&heavy, |share| {
            share.entitled == Some(2) && share.serving == 2
        });
        until(&light, |share| {
            share.entitled == Some(0) && share.serving == 0
        });
        assert_eq!(
            most_seen(&light, || thread::sleep(Duration::from_millis(30))),
            0
        );
        light.set_demand(weight(3)).unwrap();
        until(&light, |share| {
            share.entitled == Some(2) && share.serving == 2
        });
        until(&heavy, |share| share.serving == 0);
        light.set_demand(weight(1)).unwrap();
        until(&heavy, |share| share.serving == 2);
        drop(load);
        until(&light, |share| share.serving == 2);
        let share = light.stats().share;
        assert_eq!(share.decisions, asked.load(SeqCst) as u64);
        assert_eq!((share.rejected, share.policy_panicked), (None, false));
    });
}

/// Counts how often it is asked, and promises that no core is without a job.
#[derive(Clone)]
struct Conserves(Arc<AtomicUsize>);

impl CorePolicy for Conserves {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        self.0.fetch_add(1, SeqCst);
        Ok(())
    }

    fn is_work_conserving(&self) -> bool {
        true
    }
}

#[test]
fn a_policy_that_is_work_conserving_is_not_asked_about_a_runtime_that_is_alone() {
    ends(|| {
        let asked = Arc::new(AtomicUsize::new(0));
        let builder = Runtime::builder().workers(2);
        let policy = Conserves(asked.clone());
        let alone = builder.core_policy(policy).build().unwrap();
        let _load = Load::on(&alone);
        until(&alone, |share| share.serving == 2);
        // Looks of relief come and go.
        assert_eq!(alone.run(|| fib(15)), 610);
        thread::sleep(Duration::from_millis(30));
        assert_eq!(asked.load(SeqCst), 0, "nobody to divide between");
    });
}

#[derive(Clone)]
struct Panics;

impl CorePolicy for Panics {
    fn decide(&mut self, _: Event, _: &Cores, _: &mut Decision) -> Result<(), DecisionError> {
        std::panic::resume_unwind(Box::new("on purpose"))
    }
}

#[test]
fn both_go_on_after_a_panic_of_the_policy_and_under_the_built_in_ones() {
    let work = |builder: urgency::Builder| {
        let one = builder.workers(2).build().unwrap();
        let other = beside(&one, Demand::default());
        for _ in 0..3 {
            let _load = Load::on(&one);
            for _ in 0..5 {
                assert_eq!(other.spawn_fn(|| fib(10)).get().unwrap(), 55);
            }
            assert_eq!(other.run(|| fib(10)), 55);
        }
        one.stats().share
    };
    let builder = Runtime::builder;
    assert!(ends(move || work(builder().core_policy(Panics))).policy_panicked);
    let shares = [
        ends(move || work(builder().core_policy(Drep::new(1)))),
        ends(move || work(builder().core_policy(StaticEqual::new(2).unwrap()))),
        ends(move || work(builder().core_policy(Feedback::default()))),
    ];
    for share in shares {
        assert_eq!((share.rejected, share.policy_panicked), (None, false));
    }
}

#[test]
fn demands_that_cannot_be_had_are_errors_that_say_why() {
    let one = first(4, least(3));
    let build = |demand| {
        let builder = Runtime::builder().share_workers_with(&one).demand(demand);
        builder.build().unwrap_err()
    };
    let refused = |refusal| BuildError::Demand(refusal);
    let invalid = |error| refused(Refusal::Demand(error));
    assert_eq!(build(weight(0)), invalid(DemandError::Weight));
    assert_eq!(build(most(0)), invalid(DemandError::MaxCores));
    let crossed = Demand {
        min_cores: 2,
        max_cores: 1,
        ..Demand::default()
    };
    assert_eq!(
        build(crossed),
        invalid(DemandError::MinAboveMax { min: 2, max: 1 })
    );
    let too_many = refused(Refusal::MinCores { asked: 2, left: 1 });
    assert_eq!(build(least(2)), too_many);
    let other = beside(&one, least(1));
    assert_eq!(other.set_demand(least(2)), Err(too_many));
    assert_eq!(other.demand(), least(1), "the old one holds");
    drop(other);
    one.set_demand(least(4)).unwrap();
    let alone = Runtime::builder()
        .workers(2)
        .demand(least(3))
        .build()
        .unwrap_err();
    assert_eq!(alone, refused(Refusal::MinCores { asked: 3, left: 2 }));
    let shared = Runtime::builder()
        .share_workers_with(&one)
        .core_policy(Drep::new(1));
    assert_eq!(
        shared.build().unwrap_err(),
        BuildError::OfSharedWorkers("core_policy")
    );
    assert_eq!(one.run(|| fib(10)), 55);
}
