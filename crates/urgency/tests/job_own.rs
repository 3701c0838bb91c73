//! What a job has of its own, beside a job without it on the same cores: limits, an order, a schedule, a panic policy,
//! accounts.

mod common;

use common::{ends, fib};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::SeqCst},
};
use urgency::{
    Builder, Runtime,
    jobs::{self, CoreSet, JobBuilder, JobControl, JobErrorKind, JobHandle},
    join, levels,
    life::{Capacity, PanicPolicy, try_admit},
    policy::{FixedShares, Kind, Otherwise},
    scheduling_point, spawn,
    sync::oneshot,
};

levels! { Two: Urgent > Calm }

/// A job that is described in this way, and one with the same levels and nothing else.
fn described(cores: usize, describe: impl FnOnce(Builder) -> Builder) -> [JobBuilder; 2] {
    let set = CoreSet::builder().cores(cores).build().unwrap();
    let usual = set.job().runtime(|builder| builder.levels::<Two>());
    [usual.clone().runtime(describe), usual]
}

#[test]
fn a_limit_of_a_job_binds_its_own_code_only() {
    ends(|| {
        let [limited, usual] = described(2, |builder| builder.capacity(Calm, 1));
        let second_limit = || {
            let _first = try_admit(Calm).unwrap();
            try_admit(Calm).err().map(|refused| refused.limit())
        };
        assert_eq!(
            limited.spawn_fn(second_limit).unwrap().get().unwrap(),
            Some(1)
        );
        let limit = || Capacity::of(Calm).map(|it| it.limit);
        assert_eq!(usual.spawn_fn(limit).unwrap().get().unwrap(), None);
    });
}

/// In which order five tasks begin that a job makes ready one after the other, on one core.
fn order_of(job: JobBuilder) -> Vec<usize> {
    let begun = Arc::new(Mutex::new(Vec::new()));
    let theirs = begun.clone();
    let root = move || {
        let tasks: Vec<_> = (0..5)
            .map(|number| {
                let begun = theirs.clone();
                urgency::spawn_fn(move || begun.lock().unwrap().push(number))
            })
            .collect();
        // Not one by one: a closure may run the task for which it waits.
        let all = async {
            for task in tasks {
                task.await.unwrap();
            }
        };
        urgency::block_on(all);
    };
    job.spawn_fn(root).unwrap().get().unwrap();
    let begun = begun.lock().unwrap();
    begun.clone()
}

#[test]
#[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
fn an_order_of_a_job_is_its_own() {
    ends(|| {
        let lifo: Kind = "lifo".parse().unwrap();
        let [newest_first, usual] = described(1, |builder| builder.pool(lifo));
        assert_eq!(order_of(newest_first), [4, 3, 2, 1, 0]);
        assert_eq!(order_of(usual), [0, 1, 2, 3, 4]);
    });
}

/// How many of four closures of a job have begun and not ended at most, and how often a worker was taken from one
/// meanwhile, or left it: then it begins another one, as may be on a machine that is busy with others, and under chaos.
fn at_once(job: JobBuilder) -> (usize, usize) {
    let moved = || {
        let total = Runtime::current().stats().total();
        (total.abandonments + total.reliefs + total.promotions) as usize
    };
    let root = async move {
        let before = moved();
        let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let closures: Vec<_> = (0..4)
            .map(|_| {
                let (now, most) = (now.clone(), most.clone());
                urgency::spawn_fn(move || {
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    (0..3000).for_each(|_| scheduling_point());
                    now.fetch_sub(1, SeqCst);
                })
            })
            .collect();
        for closure in closures {
            closure.await.unwrap();
        }
        (most.load(SeqCst), moved() - before)
    };
    job.spawn(root).unwrap().get().unwrap()
}

#[test]
fn a_schedule_of_a_job_is_its_own() {
    ends(|| {
        let one_each = || FixedShares::of_workers(&[1, 1], Otherwise::Wait);
        for _ in 0..20 {
            // New cores each time: seats turn while a job of before still has one, and what has begun stays where it
            // is.
            let [scheduled, usual] = described(2, |builder| builder.schedule(one_each()));
            let (most, moved) = at_once(scheduled);
            assert!(
                most <= 1 + moved,
                "one of two workers is for the other level: {most} began, {moved} were left"
            );
            while at_once(usual.clone()).0 < 2 {}
        }
    });
}

/// A panic policy, and of how many panics it has heard.
fn counts_panics() -> (PanicPolicy, Arc<AtomicUsize>) {
    let heard = Arc::new(AtomicUsize::new(0));
    let theirs = heard.clone();
    let hears = PanicPolicy::call(move |_| {
        theirs.fetch_add(1, SeqCst);
    });
    (hears, heard)
}

#[test]
fn a_panic_policy_of_a_job_hears_of_its_own_panics_only() {
    common::quiet();
    ends(|| {
        let (hears, heard) = counts_panics();
        let [hearing, usual] = described(2, |builder| builder.on_panic(hears));
        let root = || async {
            urgency::spawn(async { panic!("on purpose") }).detach();
            while Runtime::current().stats().panicked == 0 {
                urgency::yield_now().await;
            }
        };
        usual.clone().spawn(root()).unwrap().get().unwrap();
        assert_eq!(heard.load(SeqCst), 0);
        hearing.spawn(root()).unwrap().get().unwrap();
        // A panic is counted before the policy hears of it.
        common::until(|| heard.load(SeqCst) != 0);
        assert_eq!(heard.load(SeqCst), 1);
    });
}

#[test]
fn a_panic_policy_of_a_job_hears_of_a_root_whose_panic_no_code_has() {
    common::quiet();
    ends(|| {
        let (hears, heard) = counts_panics();
        let [job, _] = described(2, |builder| builder.on_panic(hears));
        let panics = || -> JobHandle<()> {
            let root = || panic!("on purpose");
            job.clone().spawn_fn(root).unwrap()
        };
        // Code has this one.
        assert!(panics().get().is_err());
        let dropped_after = panics();
        common::until(|| dropped_after.is_over());
        assert_eq!(heard.load(SeqCst), 0);
        drop(dropped_after);
        assert_eq!(heard.load(SeqCst), 1);
        panics().detach();
        common::until(|| heard.load(SeqCst) == 2);
        let (go_on, waits) = oneshot::channel::<()>();
        let root = async {
            waits.await.unwrap();
            panic!("on purpose");
        };
        let dropped_before: JobHandle<()> = job.spawn(root).unwrap();
        dropped_before.detach();
        go_on.send(()).unwrap();
        common::until(|| heard.load(SeqCst) == 3);
    });
}

#[test]
fn accounts_of_a_job_are_its_own_though_its_container_was_anothers() {
    ends(|| {
        let set = CoreSet::builder().cores(2).build().unwrap();
        let shape = set.job();
        for count in [5, 3, 1] {
            let root = move || async move {
                for _ in 0..count {
                    assert_eq!(urgency::spawn_fn(|| fib(5)).await.unwrap(), 5);
                }
            };
            let job = shape.clone().spawn(root()).unwrap();
            let control = job.control();
            job.get().unwrap();
            assert_eq!(control.stats().unwrap().total().closures, count);
        }
    });
}

#[test]
fn code_of_a_job_in_another_runtime_is_to_end_also_when_the_job_is_over() {
    ends(|| {
        let service = Runtime::builder().workers(1).build().unwrap();
        let cores = CoreSet::builder().cores(1).build().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let elsewhere = service.clone();
        let job = cores.spawn_fn(move || {
            elsewhere.spawn_fn(move || {
                told.recv().unwrap();
                jobs::is_cancelled()
            })
        });
        let job = job.unwrap();
        let task = job.get().unwrap();
        tell.send(()).unwrap();
        assert!(task.get().unwrap());
    });
}

#[test]
fn all_code_of_a_job_finds_the_control_of_its_own_job() {
    let current = || JobControl::current().map(|job| job.id());
    ends(move || {
        let service = Runtime::builder().workers(1).build().unwrap();
        let cores = CoreSet::builder().cores(2).build().unwrap();
        let ids = move || {
            let (left, right) = join(current, current);
            let task = spawn(async move { current() }).get().unwrap();
            let elsewhere = service.spawn_fn(current).get().unwrap();
            [current(), left, right, task, elsewhere]
        };
        // One after the other in one container, and one that is submitted by code of a job.
        let shape = cores.job();
        for _ in 0..3 {
            let job = shape.clone().spawn_fn(ids.clone()).unwrap();
            let id = Some(job.id());
            assert_eq!(job.get().unwrap(), [id; 5]);
        }
        let inner = shape.clone();
        let outer = shape.spawn_fn(move || {
            let job = inner.spawn_fn(ids).unwrap();
            let id = Some(job.id());
            assert_ne!(id, current());
            assert_eq!(job.get().unwrap(), [id; 5]);
        });
        outer.unwrap().get().unwrap();
        assert_eq!(current(), None);
        assert_eq!(spawn(async move { current() }).get().unwrap(), None);
        // Code of a job may cancel it.
        let job = cores.spawn(async {
            JobControl::current().unwrap().cancel();
            std::future::pending::<()>().await
        });
        let error = job.unwrap().get().unwrap_err();
        assert_eq!(error.kind(), JobErrorKind::Cancelled);
    });
}
