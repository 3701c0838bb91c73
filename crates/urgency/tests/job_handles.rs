//! Jobs on a core set: submitted from anywhere, awaited, cancelled, queued, and gone without a trace.

mod common;

use common::{ends, fib, until};
use std::{
    future::pending,
    hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};
use urgency::{
    BuildError, MAX_WORKERS, Runtime, current_level,
    jobs::{self, CoreSet, CoreSetBuilder, JobErrorKind, JobState, SubmitError},
    level::Level,
    levels,
    policy::cores::{Demand, DemandError, Refusal},
    scheduling_point,
    time::sleep,
};

levels! { Two: Urgent > Calm }

fn cores(count: usize) -> CoreSet {
    set(count, |builder| builder)
}

fn set(count: usize, describe: impl FnOnce(CoreSetBuilder) -> CoreSetBuilder) -> CoreSet {
    describe(CoreSet::builder().cores(count)).build().unwrap()
}

#[test]
fn jobs_are_submitted_and_awaited_from_threads_closures_tasks_and_other_jobs() {
    ends(|| {
        let cores = cores(2);
        assert_eq!(cores.spawn_fn(|| fib(10)).unwrap().get().unwrap(), 55);
        assert_eq!(cores.spawn(async { 6 * 7 }).unwrap().get().unwrap(), 42);
        let inner = cores.clone();
        let job = cores.spawn_fn(move || inner.spawn(async { 1 }).unwrap().get().unwrap());
        assert_eq!(job.unwrap().get().unwrap(), 1);
        let inner = cores.clone();
        let job = cores.spawn(async move { inner.spawn_fn(|| 2).unwrap().await.unwrap() });
        assert_eq!(job.unwrap().get().unwrap(), 2);
        let outside = Runtime::builder().workers(1).build().unwrap();
        let job = cores.spawn(async { 3 }).unwrap();
        assert_eq!(outside.block_on(job.into_future()).unwrap(), 3);
    });
}

#[test]
fn a_job_has_levels_a_schedule_limits_and_accounts_of_its_own() {
    ends(|| {
        let cores = cores(2);
        let job = cores.job().name("two levels");
        let job = job.runtime(|builder| builder.levels::<Two>().capacity(Calm, 1));
        let job = job.level(Urgent).spawn(async {
            let calm = urgency::at(Calm).spawn(async { current_level() });
            let report = (current_level(), Runtime::current().stats().levels.len());
            (calm, report)
        });
        let job = job.unwrap();
        assert_eq!(job.name(), Some("two levels"));
        let (calm, (level, levels)) = job.get().unwrap();
        assert_eq!((level, levels), (Urgent.id(), 2));
        // Whatever became of it: it is not left behind.
        let _ = calm.get();
        let usual = cores.spawn(async { Runtime::current().stats().levels.len() });
        assert_eq!(usual.unwrap().get().unwrap(), 1);
    });
}

#[test]
fn a_panic_of_the_root_is_an_error_with_its_value_and_others_go_on() {
    ends(|| {
        let cores = cores(2);
        let other = cores.spawn(pending::<()>()).unwrap();
        let error = cores.spawn_fn(|| panic!("no")).unwrap().get().unwrap_err();
        assert_eq!(error.kind(), JobErrorKind::Panicked);
        assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"no"));
        let error = cores
            .spawn(async { panic!("async") })
            .unwrap()
            .get()
            .unwrap_err();
        assert_eq!(error.into_panic().unwrap().downcast_ref(), Some(&"async"));
        assert_eq!(other.state(), JobState::Running);
        other.cancel();
        assert_eq!(other.get().unwrap_err().kind(), JobErrorKind::Cancelled);
    });
}

#[test]
fn what_a_root_leaves_behind_is_cancelled_and_has_ended_before_the_waiter_goes_on() {
    ends(|| {
        let cores = cores(2);
        for _ in 0..20 {
            let begun = Arc::new(AtomicUsize::new(0));
            let ended = Arc::new(AtomicUsize::new(0));
            let (b, e) = (begun.clone(), ended.clone());
            let job = cores.spawn_fn(move || {
                for _ in 0..5 {
                    let (b, e) = (b.clone(), e.clone());
                    urgency::spawn_fn(move || {
                        b.fetch_add(1, SeqCst);
                        while !jobs::is_cancelled() {
                            urgency::scheduling_point();
                        }
                        let late = urgency::spawn(async {});
                        assert!(late.get().is_err());
                        e.fetch_add(1, SeqCst);
                    })
                    .detach();
                    urgency::spawn(pending::<()>()).detach();
                }
                "the root's"
            });
            assert_eq!(job.unwrap().get().unwrap(), "the root's");
            assert_eq!(begun.load(SeqCst), ended.load(SeqCst));
        }
    });
}

#[test]
fn dropping_a_handle_detaches_and_a_drained_set_has_nothing_left() {
    ends(|| {
        let cores = cores(2);
        let done = Arc::new(AtomicUsize::new(0));
        for _ in 0..50 {
            let done = done.clone();
            let job = cores.spawn(async move {
                sleep(Duration::from_millis(1)).await;
                done.fetch_add(1, SeqCst);
            });
            job.unwrap().detach();
        }
        cores.drain();
        assert_eq!(done.load(SeqCst), 50);
        let stats = cores.stats();
        assert_eq!((stats.running, stats.queued), (0, 0));
        assert_eq!((stats.submitted, stats.over), (50, 50));
    });
}

#[test]
fn jobs_of_a_set_whose_last_handle_is_gone_go_on() {
    ends(|| {
        let set = set(1, |builder| builder.most_running(1));
        let (say, hear) = mpsc::channel();
        for n in 0..3 {
            let say = say.clone();
            let job = set.spawn_fn(move || say.send(n).unwrap());
            job.unwrap().detach();
        }
        drop((set, say));
        assert_eq!(hear.iter().collect::<Vec<_>>(), [0, 1, 2]);
    });
}

#[test]
fn a_full_queue_is_an_error_that_says_so_and_the_oldest_queued_job_is_first() {
    ends(|| {
        let set = set(2, |builder| builder.most_running(1).most_queued(3));
        let open = Arc::new(AtomicBool::new(false));
        let waits = open.clone();
        let first = set.spawn_fn(move || {
            while !waits.load(SeqCst) {
                urgency::scheduling_point();
            }
        });
        let order = Arc::new(Mutex::new(Vec::new()));
        let queued: Vec<_> = (0..3)
            .map(|n| {
                let order = order.clone();
                set.spawn_fn(move || order.lock().unwrap().push(n)).unwrap()
            })
            .collect();
        let full = set.spawn_fn(|| ()).unwrap_err();
        assert_eq!(
            full,
            SubmitError::Full {
                running: 1,
                queued: 3,
                reserved: 0
            }
        );
        assert!(full.to_string().contains("most_queued"), "{full}");
        assert!(queued.iter().all(|job| job.state() == JobState::Queued));
        queued[1].cancel();
        assert!(queued[1].is_over() && queued[1].stats().is_none());
        open.store(true, SeqCst);
        first.unwrap().get().unwrap();
        let kinds: Vec<_> = queued
            .into_iter()
            .map(|job| job.get().map_err(|error| error.kind()))
            .collect();
        assert_eq!(kinds, [Ok(()), Err(JobErrorKind::Cancelled), Ok(())]);
        assert_eq!(*order.lock().unwrap(), [0, 2]);
    });
}

#[test]
fn a_running_job_that_waits_for_a_queued_one_starts_it() {
    ends(|| {
        fn nested(set: &CoreSet, depth: usize) -> usize {
            let inner = set.clone();
            let job = set.spawn_fn(move || match depth {
                0 => 0,
                depth => 1 + nested(&inner, depth - 1),
            });
            job.unwrap().get().unwrap()
        }
        let set = set(1, |builder| builder.most_running(1));
        assert_eq!(nested(&set, 10), 10);
    });
}

#[test]
fn a_job_for_which_a_more_urgent_one_waits_is_as_urgent_and_so_on() {
    ends(|| {
        let cores = cores(2);
        let become_urgent = || async {
            while Runtime::current().demand().priority != 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let last = cores.job().priority(9).spawn(become_urgent()).unwrap();
        let middle = cores.job().priority(5).spawn(async move {
            let waits = urgency::spawn(async { last.await.unwrap() });
            become_urgent().await;
            waits.await.unwrap();
        });
        let middle = middle.unwrap();
        thread::sleep(Duration::from_millis(20));
        assert!(!middle.is_over(), "nobody more urgent waits yet");
        let urgent = cores.spawn(async { middle.await.unwrap() });
        urgent.unwrap().get().unwrap();
    });
}

#[test]
fn of_jobs_that_wait_in_a_circle_one_has_an_error() {
    ends(|| {
        for count in 2..5 {
            let cores = cores(2);
            let outcomes = Arc::new(Mutex::new(Vec::new()));
            let (mut give, mut jobs) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let (sender, receiver) = urgency::sync::oneshot::channel::<jobs::JobHandle<()>>();
                let outcomes = outcomes.clone();
                let job = cores.spawn(async move {
                    let next = receiver.await.unwrap();
                    let outcome = next.await.map_err(|error| error.kind());
                    outcomes.lock().unwrap().push(outcome);
                });
                give.push(sender);
                jobs.push(job.unwrap());
            }
            jobs.rotate_left(1);
            for (sender, job) in give.into_iter().zip(jobs) {
                sender.send(job).unwrap();
            }
            cores.drain();
            let outcomes = outcomes.lock().unwrap();
            let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(
                outcomes.len() == count && (1..=count).contains(&refused),
                "{outcomes:?}"
            );
        }
    });
}

/// Forks, tasks, sleeps in the kernel and timers, with a value that is known.
fn mixture(n: u64) -> u64 {
    let task = urgency::spawn(async move {
        sleep(Duration::from_micros(n % 7 * 50)).await;
        n
    });
    let (a, b) = urgency::join(|| fib(n % 12), || fib(n % 5));
    if n.is_multiple_of(4) {
        thread::sleep(Duration::from_micros(100));
    }
    let closures: Vec<_> = (0..n % 4).map(|k| urgency::spawn_fn(move || k)).collect();
    let sum: u64 = closures
        .into_iter()
        .map(|closure| closure.get().unwrap())
        .sum();
    a + b + sum + task.get().unwrap()
}

#[test]
fn two_jobs_and_many_are_right_with_64_workers_whatever_the_processors() {
    ends(|| {
        let cores = set(64, |set| set.most_running(16).most_queued(1000));
        let expected: Vec<u64> = (0..200)
            .map(|n| fib(n % 12) + fib(n % 5) + [0, 0, 1, 3][n as usize % 4] + n)
            .collect();
        let wide = |jobs: u64| {
            let job = |k| {
                cores.spawn_fn(move || (k..200).step_by(jobs as usize).map(mixture).sum::<u64>())
            };
            let all: Vec<_> = (0..jobs).map(|k| job(k).unwrap()).collect();
            all.into_iter().map(|job| job.get().unwrap()).sum::<u64>()
        };
        assert_eq!(wide(2), expected.iter().sum::<u64>());
        for round in 0..3 {
            let start = |n| {
                cores
                    .job()
                    .max_cpus(1 + n as usize % 5)
                    .spawn_fn(move || mixture(n))
            };
            let jobs: Vec<_> = (0..200).map(|n| start(n).unwrap()).collect();
            let results: Vec<_> = jobs.into_iter().map(|job| job.get().unwrap()).collect();
            assert_eq!(results, expected, "round {round}");
        }
        let stats = cores.stats();
        assert_eq!((stats.submitted, stats.over), (602, 602));
    });
}

#[test]
fn a_wait_that_is_refused_gives_the_handle_back_as_it_was() {
    ends(|| {
        let cores = cores(2);
        let (give, take) = mpsc::channel::<jobs::JobHandle<u32>>();
        let (pass, passed) = mpsc::channel();
        let job = cores.spawn_fn(move || {
            let own = take.recv().unwrap();
            let id = own.id();
            let refused = own.get().unwrap_err();
            assert_eq!(refused.kind(), JobErrorKind::WaitsForItself);
            // Another type is not taken for it, and loses nothing.
            let refused = refused.into_handle::<u8>().unwrap_err();
            let refused = refused.into_panic().unwrap_err();
            assert_eq!(refused.kind(), JobErrorKind::WaitsForItself);
            let own = refused.into_handle::<u32>().unwrap();
            assert_eq!((own.id(), own.state()), (id, JobState::Running));
            pass.send(own).unwrap();
            7
        });
        give.send(job.unwrap()).unwrap();
        assert_eq!(passed.recv().unwrap().get().unwrap(), 7);
        let cancelled = cores.spawn(pending::<()>()).unwrap();
        cancelled.cancel();
        let error = cancelled.get().unwrap_err();
        let error = error.into_handle::<()>().unwrap_err();
        assert_eq!(error.kind(), JobErrorKind::Cancelled);
    });
}

#[test]
fn a_job_that_waits_for_its_own_handle_has_an_error() {
    ends(|| {
        let cores = cores(1);
        let (give, take) = urgency::sync::oneshot::channel();
        let job = cores.spawn(async move {
            let own: jobs::JobHandle<()> = take.await.unwrap();
            let error = own.await.unwrap_err();
            assert_eq!(error.kind(), JobErrorKind::WaitsForItself);
        });
        let job = job.unwrap();
        give.send(job).unwrap();
        cores.drain();
        assert_eq!(cores.stats().over, 1);
    });
}

#[test]
fn progress_is_what_the_job_reports_from_any_of_its_tasks() {
    ends(|| {
        let cores = cores(2);
        let job = cores.spawn(async {
            jobs::report(1, 10);
            urgency::spawn_fn(|| jobs::report(5, 10)).await.unwrap();
            pending::<()>().await;
        });
        let job = job.unwrap();
        until(|| job.progress().done == 5);
        assert_eq!(job.progress().total, 10);
        job.cancel();
        assert!(job.get().is_err());
        jobs::report(1, 1);
        assert!(!jobs::is_cancelled());
    });
}

#[test]
fn a_job_for_which_some_code_waits_is_watched_changed_and_cancelled_by_other_code() {
    ends(|| {
        let cores = cores(2);
        let job = cores.job().name("endless").spawn_fn(|| {
            jobs::report(1, 2);
            while !jobs::is_cancelled() {
                scheduling_point();
            }
            "tidied up"
        });
        let job = job.unwrap();
        let control = job.control();
        let waiter = urgency::spawn(async move { job.await });
        until(|| control.progress().done == 1);
        let heavy = Demand {
            weight: 7,
            ..control.demand()
        };
        control.clone().set_demand(heavy).unwrap();
        assert_eq!(
            (control.demand().weight, control.name()),
            (7, Some("endless"))
        );
        assert_eq!(control.state(), JobState::Running);
        control.cancel();
        assert_eq!(waiter.get().unwrap().unwrap(), "tidied up");
        assert!(control.is_over());
        control.cancel();
        drop(cores);
        assert!(control.stats().is_some(), "of a job whose set is gone");
    });
}

#[test]
fn a_job_that_cannot_be_had_is_an_error_that_says_why() {
    ends(|| {
        let cores = cores(2);
        let build = |error| SubmitError::Build(error);
        let weightless = cores.job().weight(0).spawn_fn(|| ()).unwrap_err();
        assert_eq!(
            weightless,
            build(BuildError::Demand(Refusal::Demand(DemandError::Weight)))
        );
        let none = CoreSet::builder().most_running(0).build().unwrap_err();
        assert_eq!(none, BuildError::MostRunning);
        for cores in [0, MAX_WORKERS + 1] {
            let error = CoreSet::builder().cores(cores).build().unwrap_err();
            assert_eq!(error, BuildError::Cores(cores));
            let text = error.to_string();
            assert!(text.contains(&format!("{cores} cores")), "{text}");
            assert!(!text.contains("worker"), "{text}");
        }
        let level = cores.job().level(Calm).spawn_fn(|| ()).unwrap_err();
        assert!(matches!(
            level,
            SubmitError::Build(BuildError::NoSuchLevel { levels: 1, .. })
        ));
        assert!(level.to_string().contains("root of a job"), "{level}");
        let workers = cores.job().runtime(|builder| builder.workers(3));
        let workers = workers.spawn_fn(|| ()).unwrap_err();
        assert_eq!(workers, build(BuildError::OfSharedWorkers("workers")));
        let holds = cores.job().min_cpus(2).spawn(pending::<()>()).unwrap();
        let refused = cores.job().min_cpus(1).spawn_fn(|| ()).unwrap_err();
        let wanted = Refusal::MinCores { asked: 1, left: 0 };
        assert_eq!(refused, build(BuildError::Demand(wanted)));
        holds.cancel();
        assert!(holds.get().is_err());
        cores
            .job()
            .min_cpus(1)
            .spawn_fn(|| ())
            .unwrap()
            .get()
            .unwrap();
    });
}

#[test]
fn a_job_that_spins_without_checking_in_loses_its_cores_after_the_decision() {
    ends(|| {
        let cores = cores(2);
        let stop = Arc::new(AtomicBool::new(false));
        let spins = {
            let stop = stop.clone();
            cores.spawn_fn(move || {
                let part = || {
                    while !stop.load(SeqCst) {
                        hint::spin_loop();
                    }
                };
                urgency::join(part, part);
            })
        };
        let spins = spins.unwrap();
        until(|| spins.stats().unwrap().share.serving == 2);
        for _ in 0..20 {
            assert_eq!(cores.spawn_fn(|| fib(12)).unwrap().get().unwrap(), 144);
        }
        // Its code goes on, on its threads, beside the cores.
        spins.cancel();
        assert_eq!(spins.state(), JobState::Running);
        stop.store(true, SeqCst);
        let _ = spins.get();
    });
}
