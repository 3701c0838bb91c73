//! In which order a job ends: what is over, free and given back when its waiters and its set's go on.

mod common;

use common::{ends, until};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError, Runtime, Shutdown,
    jobs::{CoreSet, JobErrorKind, JobShutdown, SubmitError},
    life::PanicPolicy,
    policy::cores::Demand,
    runtime::Handle,
    spawn,
    sync::oneshot,
    task::JoinSet,
    time::sleep,
};

fn set(cores: usize) -> CoreSet {
    CoreSet::builder().cores(cores).build().unwrap()
}

#[test]
fn a_drain_that_is_over_finds_each_job_over() {
    ends(|| {
        let drained = set(2);
        for _ in 0..300 {
            let job = drained.spawn_fn(|| 1).unwrap();
            drained.drain();
            assert!(job.times().over.is_some());
            assert_eq!(job.try_get().unwrap().unwrap(), 1);
            let shut = set(2);
            let job = shut.spawn_fn(|| 1).unwrap();
            shut.shutdown(JobShutdown::Drain);
            assert_eq!(job.try_get().unwrap().unwrap(), 1);
        }
    });
}

#[test]
fn a_job_that_ends_counts_as_one_that_runs_or_as_one_that_is_over_and_not_as_both() {
    ends(|| {
        for _ in 0..10 {
            let set = CoreSet::builder().cores(2).most_running(4).build().unwrap();
            (0..100).for_each(|_| set.spawn_fn(|| ()).unwrap().detach());
            // The containers of a set that is closed are not parked, so each end takes some time.
            set.close();
            loop {
                let stats = set.stats();
                let there = (stats.running + stats.queued) as u64;
                assert_eq!(there + stats.over, stats.submitted, "{stats:?}");
                if there == 0 {
                    break;
                }
            }
        }
    });
}

/// A job whose last task to end is not its root.
async fn with_children() {
    let mut tasks = JoinSet::new();
    (0..8).for_each(|_| drop(tasks.spawn(sleep(Duration::from_secs(60)))));
    tasks.join_next().await;
}

#[test]
fn code_that_has_the_result_of_a_job_finds_its_place_and_its_cores_free() {
    ends(|| {
        let one = CoreSet::builder().cores(2).most_running(1).most_queued(0);
        let one = one.build().unwrap();
        let all = set(2);
        for _ in 0..1000 {
            for job in [one.job(), all.job().min_cpus(2)] {
                let running = job.spawn(with_children()).unwrap();
                thread::yield_now();
                running.cancel();
                assert_eq!(running.get().unwrap_err().kind(), JobErrorKind::Cancelled);
            }
        }
    });
}

#[test]
fn a_job_that_shuts_its_own_runtime_down_says_so() {
    let set = set(2);
    let jobs = [
        set.spawn(async {
            Runtime::current().shutdown_background();
            pending::<()>().await;
        }),
        set.spawn(async {
            let mine = Runtime::current();
            mine.shutdown_within(Shutdown::Cancel, Duration::from_millis(1));
            pending::<()>().await;
        }),
        set.spawn(async {
            let _ = spawn(async { Runtime::current().shutdown_background() }).await;
            pending::<()>().await;
        }),
    ];
    for job in jobs {
        let error = job.unwrap().get().unwrap_err();
        assert_eq!(error.kind(), JobErrorKind::ShutDown);
    }
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_set_that_its_own_description_keeps_is_given_back_when_it_is_shut_down() {
    let dropped = Arc::new(AtomicUsize::new(0));
    for before in 0..3 {
        let set = set(1);
        let (cancels, counted) = (set.clone(), Counted(dropped.clone()));
        let policy = PanicPolicy::call(move |_| {
            let _ = &counted;
            cancels.cancel_all();
        });
        let job = set.job().runtime(|builder| builder.on_panic(policy));
        job.spawn_fn(|| ()).unwrap().get().unwrap();
        assert_eq!(dropped.load(SeqCst), before);
        set.shutdown(JobShutdown::Drain);
        drop(set);
        until(|| dropped.load(SeqCst) == before + 1);
    }
}

#[test]
fn the_result_of_a_detached_job_is_dropped_before_a_drain_is_over() {
    ends(|| {
        let (set, dropped) = (set(2), Arc::new(AtomicUsize::new(0)));
        for before in 0..300 {
            let result = Counted(dropped.clone());
            let (go_on, waits) = oneshot::channel::<()>();
            let root = async move {
                let _ = waits.await;
                result
            };
            set.spawn(root).unwrap().detach();
            drop(go_on);
            set.drain();
            assert_eq!(dropped.load(SeqCst), before + 1);
        }
    });
}

#[test]
fn a_description_says_what_a_job_asks_for_and_not_its_builder() {
    let (set, other) = (set(1), Runtime::builder().workers(1).build().unwrap());
    let greedy = Demand {
        max_cores: 1,
        ..Demand::default()
    };
    let refused = |setting| Err(SubmitError::Build(BuildError::OfSharedWorkers(setting)));
    let job = set.job().runtime(|builder| builder.demand(greedy));
    assert_eq!(job.spawn_fn(|| ()).map(drop), refused("demand"));
    let job = set.job().runtime(|it| it.share_workers_with(&other));
    assert_eq!(job.try_reserve().map(drop), refused("share_workers_with"));
}

/// It has no local of the job, and the set finds the job by the runtime.
#[test]
fn other_code_in_a_job_that_waits_for_the_end_of_its_set_panics_as_the_jobs_own_does() {
    let set = set(2);
    let (give, take) = oneshot::channel();
    let (go_on, waits) = oneshot::channel::<()>();
    let root = async move {
        let _ = give.send(Handle::current());
        let _ = waits.await;
    };
    let job = set.spawn(root).unwrap();
    let (inside, of) = (take.blocking_recv().unwrap(), set.clone());
    let drains = inside.spawn_fn(move || of.drain_within(Duration::from_secs(20)));
    assert!(drains.get().unwrap_err().is_panic());
    drop(go_on);
    job.get().unwrap();
}
