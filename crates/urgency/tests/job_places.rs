//! Places for jobs: reserved before the work is written, waited for in order, and none is ever lost.

mod common;

use common::{Random, ends, until};
use std::{
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, atomic::AtomicUsize, atomic::Ordering::SeqCst},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};
use urgency::{
    BuildError, Builder, LevelId, Runtime,
    jobs::{CoreSet, CoreSetBuilder, JobHandle, JobPermit, SubmitError},
    policy::{
        Criterion, FixedShares, Kind, Otherwise,
        cores::{Elastic, Refusal},
    },
    sync::oneshot,
    time::timeout,
};

fn set(most_running: usize, most_queued: usize) -> CoreSet {
    let builder = CoreSet::builder().cores(2).most_running(most_running);
    builder.most_queued(most_queued).build().unwrap()
}

fn full(running: usize, queued: usize, reserved: usize) -> SubmitError {
    SubmitError::Full {
        running,
        queued,
        reserved,
    }
}

/// How many places are free.
fn free(cores: &CoreSet) -> usize {
    let job = cores.job();
    let places: Vec<_> = std::iter::from_fn(|| job.try_reserve().ok()).collect();
    places.len()
}

fn waits(cores: &CoreSet) -> (JobHandle<()>, oneshot::Sender<()>) {
    let (end, ends) = oneshot::channel();
    let root = async move {
        let _ = ends.await;
    };
    (cores.spawn(root).unwrap(), end)
}

#[test]
fn a_place_that_is_reserved_is_no_other_jobs_and_a_submission_with_it_is_never_refused() {
    ends(|| {
        let cores = set(1, 2);
        let job = cores.job().name("reserved");
        let mut places: Vec<JobPermit> = (0..3).map(|_| job.try_reserve().unwrap()).collect();
        assert_eq!(job.try_reserve().unwrap_err(), full(0, 0, 3));
        let refused = cores.spawn_fn(|| ()).unwrap_err();
        assert!(refused.to_string().contains("reserve"), "{refused}");
        drop(places.pop());
        let (running, end) = waits(&cores);
        assert_eq!(cores.spawn_fn(|| ()).unwrap_err(), full(1, 0, 2));
        let jobs: Vec<_> = places
            .into_iter()
            .map(|place| place.spawn_fn(|| 6 * 7).unwrap())
            .collect();
        assert_eq!(jobs[0].name(), Some("reserved"));
        assert_eq!(cores.spawn_fn(|| ()).unwrap_err(), full(1, 2, 0));
        end.send(()).unwrap();
        running.get().unwrap();
        for job in jobs {
            assert_eq!(job.get().unwrap(), 42);
        }
        until(|| free(&cores) == 3);
    });
}

#[test]
fn code_that_waits_has_places_in_order_of_arrival_and_no_other_submission_has_one_meanwhile() {
    ends(|| {
        let cores = set(1, 0);
        let job = cores.job();
        let first = job.try_reserve().unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut early = pin!(job.reserve());
        let mut late = pin!(job.reserve());
        assert!(early.as_mut().poll(&mut cx).is_pending());
        {
            let mut given_up = pin!(job.reserve());
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
        }
        assert!(late.as_mut().poll(&mut cx).is_pending());
        assert_eq!(first.spawn(async { 1 }).unwrap().get().unwrap(), 1);
        until(|| cores.stats().over == 1);
        assert!(job.try_reserve().is_err(), "it is the early one's");
        assert!(late.as_mut().poll(&mut cx).is_pending());
        let Poll::Ready(Ok(place)) = early.as_mut().poll(&mut cx) else {
            panic!("its turn has come");
        };
        drop(place);
        let Poll::Ready(Ok(place)) = late.as_mut().poll(&mut cx) else {
            panic!("its turn has come");
        };
        assert_eq!(place.spawn_fn(|| 2).unwrap().get().unwrap(), 2);
        until(|| free(&cores) == 1);
    });
}

#[test]
fn a_flood_that_waits_for_places_loses_no_work_on_threads_and_in_tasks() {
    ends(|| {
        let cores = set(2, 2);
        let sum = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let work = |n: usize| {
            let (sum, most, cores) = (sum.clone(), most.clone(), cores.clone());
            move || {
                let stats = cores.stats();
                most.fetch_max(stats.running + stats.queued, SeqCst);
                sum.fetch_add(n, SeqCst);
            }
        };
        let job = cores.job();
        let task = {
            let (job, works) = (job.clone(), (0..200).map(&work).collect::<Vec<_>>());
            urgency::spawn(async move {
                for work in works {
                    job.reserve()
                        .await
                        .unwrap()
                        .spawn_fn(work)
                        .unwrap()
                        .detach();
                }
            })
        };
        thread::scope(|threads| {
            for _ in 0..2 {
                let (job, works) = (job.clone(), (0..200).map(&work).collect::<Vec<_>>());
                threads.spawn(move || {
                    for work in works {
                        let place = job.blocking_reserve().unwrap();
                        place.spawn_fn(work).unwrap().detach();
                    }
                });
            }
        });
        task.get().unwrap();
        cores.drain();
        assert_eq!(sum.load(SeqCst), 3 * (0..200).sum::<usize>());
        assert!(most.load(SeqCst) <= 4, "{most:?}");
        assert_eq!(cores.stats().over, 600);
    });
}

#[test]
fn jobs_that_wait_for_each_other_never_fill_all_places() {
    ends(|| {
        fn nested(cores: &CoreSet, depth: usize) -> usize {
            let inner = cores.clone();
            let job = cores.spawn_fn(move || match depth {
                0 => 0,
                depth => 1 + nested(&inner, depth - 1),
            });
            job.unwrap().get().unwrap()
        }
        let cores = set(1, 1);
        assert_eq!(nested(&cores, 10), 10);
        until(|| free(&cores) == 2);
    });
}

#[test]
fn a_job_that_cannot_be_had_is_refused_without_a_wait() {
    ends(|| {
        let cores = set(1, 0);
        let _place = cores.job().try_reserve().unwrap();
        let greedy = cores.job().min_cpus(3);
        let refused = Refusal::MinCores { asked: 3, left: 2 };
        let refused = SubmitError::Build(BuildError::Demand(refused));
        assert_eq!(greedy.try_reserve().unwrap_err(), refused);
        assert_eq!(greedy.blocking_reserve().unwrap_err(), refused);
        let refused = cores.job().level(LevelId::new(9).unwrap());
        assert!(matches!(
            refused.try_reserve(),
            Err(SubmitError::Build(BuildError::NoSuchLevel { .. }))
        ));
    });
}

/// Why no job can be had whose runtime is described so.
fn why_refused(set: &CoreSet, describe: fn(Builder) -> Builder) -> BuildError {
    let job = set.job().runtime(describe);
    let refused = job.try_reserve().unwrap_err();
    assert_eq!(job.blocking_reserve().unwrap_err(), refused);
    assert_eq!(job.spawn_fn(|| ()).unwrap_err(), refused);
    match refused {
        SubmitError::Build(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_set_beside_a_runtime_has_the_numbers_of_its_builder_and_the_cores_of_the_runtime() {
    ends(|| {
        let runtime = Runtime::builder().workers(2).build().unwrap();
        let set = CoreSet::builder().most_running(1).most_queued(1);
        let set = set.build_beside(&runtime).unwrap();
        let ((first, end), (second, end_too)) = (waits(&set), waits(&set));
        assert_eq!(set.spawn_fn(|| ()).unwrap_err(), full(1, 1, 0));
        assert_eq!(first.stats().unwrap().workers.len(), 2);
        end.send(()).unwrap();
        end_too.send(()).unwrap();
        first.get().unwrap();
        second.get().unwrap();
        let refused = |builder: CoreSetBuilder| builder.build_beside(&runtime).unwrap_err();
        let builder = CoreSet::builder;
        assert_eq!(refused(builder().most_running(0)), BuildError::MostRunning);
        for (builder, setting) in [
            (builder().cores(2), "cores"),
            (builder().core_policy(Elastic::default()), "core_policy"),
            (builder().pinned(), "pinned"),
            (builder().pinned_to([0]), "pinned_to"),
        ] {
            let error = refused(builder);
            assert_eq!(error, BuildError::OfSharedWorkers(setting));
            assert!(error.to_string().contains(&format!("`{setting}`")));
        }
    });
}

#[test]
fn a_job_whose_runtime_could_never_be_built_is_refused_without_a_wait() {
    ends(|| {
        let full = set(1, 0);
        let _place = full.job().try_reserve().unwrap();
        let queues = set(1, 1);
        let _running = queues.spawn(std::future::pending::<()>()).unwrap();
        for set in [full, queues] {
            let workers = why_refused(&set, |builder| builder.workers(3));
            assert_eq!(workers, BuildError::OfSharedWorkers("workers"));
            let limit = why_refused(&set, |builder| builder.thread_limit(9));
            assert_eq!(limit, BuildError::OfSharedWorkers("thread_limit"));
            let capacity = why_refused(&set, |builder| {
                builder.capacity(LevelId::new(9).unwrap(), 3)
            });
            assert!(matches!(capacity, BuildError::NoSuchLevel { .. }));
            let order = why_refused(&set, |builder| {
                builder.pool_at(LevelId::new(9).unwrap(), Kind::Aging)
            });
            assert!(matches!(order, BuildError::NoSuchLevel { .. }));
            let schedule = why_refused(&set, |builder| {
                let parts = Criterion::from_shares(&[0.2, 0.3, 0.5]).unwrap();
                builder.schedule(FixedShares::new(&parts, Otherwise::Donate))
            });
            assert!(matches!(schedule, BuildError::Schedule(_)), "{schedule}");
        }
    });
}

/// Permits and waits for them are dropped, and jobs cancelled, at random.
#[test]
fn no_place_is_lost_whatever_becomes_of_permits_waits_and_jobs() {
    ends(|| {
        for seed in 1..=4 {
            let cores = set(2, 3);
            let jobs = Arc::new(Mutex::new(Vec::<JobHandle<u32>>::new()));
            thread::scope(|threads| {
                for thread in 0..4 {
                    let (job, jobs) = (cores.job(), jobs.clone());
                    threads.spawn(move || {
                        let mut random = Random::new(seed * 100 + thread);
                        for _ in 0..300 {
                            let place = match random.below(4) {
                                0 => job.try_reserve().ok(),
                                1 => job.blocking_reserve().ok(),
                                _ => {
                                    let limit = Duration::from_micros(random.below(200));
                                    let wait = timeout(limit, job.reserve());
                                    urgency::block_on(wait).ok().and_then(Result::ok)
                                }
                            };
                            let other = jobs.lock().unwrap().pop();
                            let (nap, kind) = (random.below(2), random.below(4));
                            let submitted = place.filter(|_| kind != 0).map(|place| {
                                let root = async move {
                                    urgency::time::sleep(Duration::from_micros(nap * 50)).await;
                                    // It waits for a job that may be queued.
                                    if let Some(other) = other.filter(|_| kind == 1) {
                                        let _ = other.await;
                                    }
                                    1
                                };
                                place.spawn(root).unwrap()
                            });
                            if let Some(submitted) = submitted {
                                if random.below(3) == 0 {
                                    submitted.cancel();
                                }
                                jobs.lock().unwrap().push(submitted);
                            }
                        }
                    });
                }
            });
            cores.cancel_all();
            cores.drain();
            jobs.lock().unwrap().clear();
            until(|| free(&cores) == 5);
            let stats = cores.stats();
            assert_eq!(stats.submitted, stats.over);
        }
    });
}
