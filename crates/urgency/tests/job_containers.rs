//! The runtime of a job that is over serves the next job.

mod common;

use common::{ends, quiet, until};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{
    JoinErrorKind, Runtime,
    jobs::{CoreSet, JobHandle},
    levels,
    life::PanicPolicy,
    policy::{
        Criterion,
        cores::{CorePolicy, Cores, Decision, DecisionError, Demand, Event, Shares},
    },
    sync::oneshot,
    time::sleep,
};

levels! { Two: Urgent > Calm }

fn one_core() -> CoreSet {
    CoreSet::builder().cores(1).build().unwrap()
}

#[test]
fn containers_are_used_again_and_a_job_sees_nothing_of_the_one_before() {
    ends(|| {
        let cores = one_core();
        let template = cores.job().runtime(|builder| builder.levels::<Two>());
        for n in 0..200 {
            let job = template.clone().spawn(async move {
                let runtime = Runtime::current();
                assert_eq!(runtime.demand(), Demand::default());
                runtime
                    .set_demand(Demand {
                        weight: 7,
                        ..Demand::default()
                    })
                    .unwrap();
                runtime
                    .set_fairness(Criterion::from_shares(&[0.5, 0.5]).unwrap())
                    .unwrap();
                urgency::spawn(async move { n }).await.unwrap()
            });
            let job = job.unwrap();
            until(|| job.is_over());
            let stats = job.stats().unwrap();
            // Polls of two tasks.
            assert!((2..10).contains(&stats.total().tasks), "{stats:?}");
            assert_eq!(job.get().unwrap(), n);
        }
        // A thread that has just left a job may keep its container for a moment.
        let built = cores.stats().built;
        assert!(
            built < 100,
            "{built} containers for 200 jobs, one after the other"
        );
    });
}

#[test]
fn containers_that_no_job_can_have_any_more_make_way_for_others() {
    ends(|| {
        let cores = CoreSet::builder().cores(1).most_running(2);
        let cores = cores.build().unwrap();
        for _ in 0..10 {
            let described_once = cores.job().runtime(|builder| builder.levels::<Two>());
            described_once.spawn_fn(|| ()).unwrap().get().unwrap();
        }
        // A thread that has just left a job may keep its container for a moment.
        until(|| {
            let built = cores.stats().built;
            cores.spawn_fn(|| ()).unwrap().get().unwrap();
            cores.stats().built == built
        });
    });
}

/// *Shares*, which tell by their clone whether they are still there.
#[derive(Clone)]
struct Kept(
    Shares,
    #[expect(dead_code, reason = "it is counted")] Arc<()>,
);

impl CorePolicy for Kept {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        to: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.decide(event, cores, to)
    }
}

#[test]
fn a_control_of_a_job_that_is_over_keeps_no_core_set() {
    ends(|| {
        let kept = Arc::new(());
        let policy = Kept(Shares::default(), kept.clone());
        let cores = CoreSet::builder().cores(1).core_policy(policy);
        let cores = cores.build().unwrap();
        let job = cores.spawn_fn(|| ()).unwrap();
        let control = job.control();
        job.get().unwrap();
        drop(cores);
        until(|| Arc::strong_count(&kept) == 1);
        assert!(control.is_over());
        control.cancel();
        control.set_demand(Demand::default()).unwrap();
    });
}

#[test]
fn a_container_that_the_program_still_holds_is_given_to_no_other_job() {
    ends(|| {
        let cores = one_core();
        let kept = cores.spawn(async { urgency::runtime::Handle::current() });
        let kept = kept.unwrap().get().unwrap();
        for _ in 0..20 {
            let job = cores.spawn(sleep(Duration::from_millis(1))).unwrap();
            let late = kept.spawn(async { "in the wrong job" });
            assert_eq!(late.get().unwrap_err().kind(), JoinErrorKind::ShutDown);
            job.get().unwrap();
        }
    });
}

#[test]
fn a_job_is_as_urgent_as_the_one_that_waits_for_it_for_as_long_as_that_waits() {
    ends(|| {
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let (show, shown) = mpsc::channel();
        let awaited = cores.job().priority(7).spawn(async move {
            loop {
                let _ = show.send(Runtime::current().demand());
                sleep(Duration::from_millis(1)).await;
            }
        });
        let awaited: JobHandle<()> = awaited.unwrap();
        let control = awaited.control();
        let until_shown = |priority, weight| {
            let is_it = |demand: Demand| (demand.priority, demand.weight) == (priority, weight);
            assert!(shown.iter().any(is_it));
        };
        until_shown(7, 1);
        let (give_up, gives_up) = oneshot::channel();
        let waiter = cores.job().priority(2).spawn(async move {
            urgency::select! {
                _ = gives_up => (),
                _ = awaited => (),
            }
            std::future::pending::<()>().await;
        });
        let waiter = waiter.unwrap();
        until_shown(2, 1);
        // What the program asks for meanwhile is no less urgent than the wait, and holds afterwards.
        let asked = Demand {
            weight: 3,
            priority: 5,
            ..control.demand()
        };
        control.set_demand(asked).unwrap();
        until_shown(2, 3);
        waiter
            .set_demand(Demand {
                priority: 4,
                ..waiter.demand()
            })
            .unwrap();
        until_shown(4, 3);
        waiter
            .set_demand(Demand {
                priority: 6,
                ..waiter.demand()
            })
            .unwrap();
        until_shown(5, 3);
        waiter
            .set_demand(Demand {
                priority: 1,
                ..waiter.demand()
            })
            .unwrap();
        until_shown(1, 3);
        give_up.send(()).unwrap();
        until_shown(5, 3);
        assert_eq!(control.demand(), asked);
        cores.cancel_all();
    });
}

/// A job may be over before the call returns that submitted it.
#[test]
fn no_more_jobs_are_over_than_were_submitted_at_any_moment() {
    let cores = CoreSet::builder().cores(2).build().unwrap();
    let watched = AtomicBool::new(true);
    thread::scope(|threads| {
        let watcher = threads.spawn(|| {
            while watched.load(SeqCst) {
                let stats = cores.stats();
                assert!(stats.over <= stats.submitted, "{stats:?}");
            }
        });
        for _ in 0..3_000 {
            cores.spawn_fn(|| ()).unwrap().detach();
            cores.drain();
        }
        watched.store(false, SeqCst);
        watcher.join().unwrap();
    });
    let stats = cores.stats();
    assert_eq!((stats.submitted, stats.over), (3_000, 3_000));
}

struct PanicsOnDrop(Arc<AtomicUsize>);

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        std::panic::resume_unwind(Box::new("in a drop, on purpose"));
    }
}

#[test]
fn a_container_makes_way_though_the_drop_of_what_its_description_captured_panics() {
    quiet();
    ends(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let cores = CoreSet::builder().cores(2).most_running(1).build().unwrap();
        for n in 0..3 {
            let captured = PanicsOnDrop(drops.clone());
            let policy = PanicPolicy::call(move |_| _ = &captured);
            let job = cores.job().runtime(|builder| builder.on_panic(policy));
            let job = job.spawn_fn(move || n).unwrap();
            assert_eq!(job.get().unwrap(), n);
        }
        until(|| drops.load(SeqCst) > 0);
        assert_eq!(cores.spawn_fn(|| 7).unwrap().get().unwrap(), 7);
        cores.drain();
    });
}
