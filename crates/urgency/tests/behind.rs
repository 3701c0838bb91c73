//! Promptness by count: a worker below moves up at its very next scheduling point, and the time until then is
//! accounted.

mod common;

use common::{ends, with_levels};
use std::{
    hint,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
        mpsc,
    },
    time::{Duration, Instant},
};
use urgency::{JoinHandle, Runtime, join, life::try_admit, sync::oneshot};

urgency::levels! { pub App: Urgent > Batch }

/// So many workers in closures below that each come to one scheduling point when they are told, and then say what
/// they saw there.
fn below<T: Send + 'static>(
    runtime: &Runtime,
    workers: usize,
    see: impl Fn() -> T + Clone + Send + 'static,
) -> (Arc<AtomicBool>, Vec<JoinHandle<T>>) {
    let (run, go) = (
        Arc::new(Barrier::new(workers + 1)),
        Arc::new(AtomicBool::new(false)),
    );
    let handles = (0..workers)
        .map(|_| {
            let (run, go, see) = (run.clone(), go.clone(), see.clone());
            runtime.at(Batch).spawn_fn(move || {
                run.wait();
                while !go.load(SeqCst) {
                    hint::spin_loop();
                }
                join(|| (), || ());
                see()
            })
        })
        .collect();
    run.wait();
    (go, handles)
}

/// The closures are all in user code when the urgent ones come, and not one passes a scheduling point before these have
/// been taken up: by the worker itself, or, if it was slow to come there, by relief.
#[test]
fn no_worker_passes_a_scheduling_point_while_more_urgent_work_waits() {
    for workers in [1, 2, 3] {
        ends(move || {
            for _ in 0..50 {
                let runtime = with_levels::<App>(workers);
                let started = Arc::new(AtomicUsize::new(0));
                let seen = started.clone();
                let (go, below) = below(&runtime, workers, move || seen.load(SeqCst));
                let urgent: Vec<_> = (0..workers)
                    .map(|_| {
                        let started = started.clone();
                        runtime
                            .at(Urgent)
                            .spawn_fn(move || started.fetch_add(1, SeqCst))
                    })
                    .collect();
                go.store(true, SeqCst);
                // The others may have been taken up and not have counted yet.
                let least = below.into_iter().map(|b| b.get().unwrap()).min().unwrap();
                assert!(least >= 1, "{workers} workers: {least} had started");
                for handle in urgent {
                    handle.get().unwrap();
                }
                let moves = runtime.stats().total();
                assert!(
                    moves.abandonments + moves.reliefs + moves.promotions >= 1,
                    "{moves:?}"
                );
            }
        });
    }
}

#[test]
fn the_time_until_the_next_scheduling_point_counts_as_behind() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (go, below) = below(&runtime, 1, || ());
        let asked = Instant::now();
        let first = runtime.at(Urgent).spawn_fn(|| ());
        // More of it does not make the worker less late.
        let more: Vec<_> = (0..5)
            .map(|_| {
                std::thread::sleep(Duration::from_micros(100));
                runtime.at(Urgent).spawn_fn(|| ())
            })
            .collect();
        go.store(true, SeqCst);
        for handle in below.into_iter().chain([first]).chain(more) {
            handle.get().unwrap();
        }
        let elapsed = asked.elapsed();
        let stats = runtime.stats();
        let (urgent, batch) = (&stats.levels[0].total, &stats.levels[1].total);
        let total = stats.total();
        if total.reliefs + total.promotions == 0 {
            assert!(batch.behind >= Duration::from_micros(500), "{batch:?}");
        }
        assert!(batch.behind > Duration::ZERO, "{batch:?}");
        assert!(batch.behind <= batch.running + elapsed, "{batch:?}");
        assert_eq!(urgent.behind, Duration::ZERO);
    });
}

/// A loop without a scheduling point loses its worker to relief; until then it was behind.
#[test]
fn the_time_until_relief_takes_the_worker_counts_as_behind() {
    ends(|| {
        let runtime = with_levels::<App>(1);
        let (tell, told) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let looping = runtime.at(Batch).spawn_fn(move || {
            tell.send(()).unwrap();
            while !stopped.load(SeqCst) {
                hint::spin_loop();
            }
        });
        told.recv().unwrap();
        runtime.at(Urgent).spawn_fn(|| ()).get().unwrap();
        let stats = runtime.stats();
        let (total, batch) = (stats.total(), &stats.levels[1].total);
        // The thread that comes from the relief timer takes it for what is ready, or for not having checked in.
        assert_eq!(
            (total.reliefs + total.promotions, total.abandonments),
            (1, 0)
        );
        assert!(batch.behind > Duration::ZERO, "{batch:?}");
        stop.store(true, SeqCst);
        looping.get().unwrap();
    });
}

#[test]
fn a_worker_with_the_most_urgent_work_is_never_behind() {
    ends(|| {
        let runtime = with_levels::<App>(2);
        for _ in 0..200 {
            runtime
                .at(Urgent)
                .spawn_fn(|| join(|| (), || ()))
                .get()
                .unwrap();
        }
        let stats = runtime.stats();
        assert_eq!(stats.total().behind, Duration::ZERO);
    });
}

/// A closure starts, one that it waits for starts, and the first goes on: three times from ready to running.
#[test]
fn the_latency_histogram_counts_what_starts_and_what_goes_on() {
    ends(|| {
        let runtime = common::runtime(1);
        let (tell, told) = mpsc::channel::<()>();
        let handle = runtime.spawn_fn(move || {
            let inner = urgency::spawn_fn(move || told.recv().unwrap());
            // `get` would run it on this stack, which would not go on later.
            urgency::block_on(inner).unwrap();
        });
        let counted = || runtime.stats().levels[0].latency.len();
        // With one worker the inner one runs when the other one waits.
        while counted() < 2 {
            std::thread::yield_now();
        }
        tell.send(()).unwrap();
        handle.get().unwrap();
        assert_eq!(counted(), 3);
    });
}

/// The worker sleeps before each start, so most of the time from ready to running is the wake-up of a thread. The task
/// sees it, too.
#[test]
#[cfg_attr(
    urgency_chaos,
    ignore = "chaos delays the code before the task is ready"
)]
fn the_latency_of_a_start_has_the_wake_up_of_its_thread_in_it() {
    ends(|| {
        let runtime = common::runtime(1);
        let histogram = || runtime.stats().levels[0].latency.sum();
        let mut agree = 0;
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(1));
            let (tell, told) = mpsc::channel();
            let (before, since) = (histogram(), Instant::now());
            let task = runtime.spawn(async move { tell.send(since.elapsed()).unwrap() });
            task.detach();
            let seen = told.recv().unwrap();
            agree += usize::from(histogram() - before > seen / 4);
        }
        assert!(agree > 50, "{agree} of 100");
    });
}

/// A task that only waits is woken, which is no scheduling point. So it is the spawn that lets it run.
#[test]
fn every_way_to_spawn_on_a_runtime_is_a_scheduling_point() {
    type Way = fn(&Runtime);
    let ways: [(&str, Way); 6] = [
        ("spawn", |on| on.spawn(async {}).detach()),
        ("at.spawn", |on| on.at(Batch).spawn(async {}).detach()),
        ("spawn_fn", |on| on.spawn_fn(|| ()).detach()),
        ("at.spawn_fn", |on| on.at(Batch).spawn_fn(|| ()).detach()),
        ("an admission's spawn", |_| {
            try_admit(Batch).unwrap().spawn(async {}).detach()
        }),
        ("an admission's spawn_fn", |_| {
            try_admit(Batch).unwrap().spawn_fn(|| ()).detach()
        }),
    ];
    ends(move || {
        let runtime = with_levels::<App>(1);
        runtime.at(Batch).run(|| {
            for (name, way) in ways {
                let (wake, woken) = oneshot::channel();
                let ran = Arc::new(AtomicBool::new(false));
                let says = ran.clone();
                let urgent = urgency::at(Urgent).spawn(async move {
                    woken.await.unwrap();
                    says.store(true, SeqCst);
                });
                wake.send(()).unwrap();
                way(&runtime);
                assert!(ran.load(SeqCst), "{name}");
                urgent.detach();
            }
        });
    });
}
