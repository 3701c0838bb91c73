//! What a snapshot says of time that goes on: a closure that computes, a worker that sleeps.

mod common;

use common::spin;
use std::{
    hint,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, Stats};

urgency::levels! { App: Urgent > Batch }

/// What each worker's code ran, and how long it slept.
fn times(stats: &Stats) -> Vec<[Duration; 3]> {
    let of = |worker: &urgency::WorkerStats| {
        let running = [0, 1].map(|level| worker.levels[level].running);
        [running[0], running[1], worker.asleep]
    };
    stats.workers.iter().map(of).collect()
}

/// Takes snapshots until `is_over`, one after the other, and checks them by what must be so at any moment: no time
/// gets shorter, and no worker has done more than the time there was. Returns the last one.
fn look_on(runtime: &Runtime, born: Instant, mut is_over: impl FnMut(&Stats) -> bool) -> Stats {
    let mut last = runtime.stats();
    for _ in 0..20_000_000 {
        let stats = runtime.stats();
        let wall = born.elapsed();
        for (now, then) in times(&stats).into_iter().zip(times(&last)) {
            assert!(
                now.iter().zip(&then).all(|(now, then)| now >= then),
                "{now:?} after {then:?}"
            );
            let sum: Duration = now.iter().sum();
            // The ratio of the two clocks is measured once, over a millisecond or more.
            assert!(sum <= wall + wall / 100, "{now:?} in {wall:?}");
        }
        if is_over(&stats) {
            return stats;
        }
        last = stats;
    }
    panic!("it was not over after 20 million looks: {last:?}")
}

#[test]
fn a_snapshot_has_what_runs_before_it_ends() {
    let born = Instant::now();
    let runtime = Runtime::builder().workers(1).levels::<App>();
    let runtime = runtime.build().unwrap();
    let stop = &*Box::leak(Box::new(AtomicBool::new(false)));
    let computes = Batch.on(&runtime).spawn_fn(move |_| {
        while !stop.load(SeqCst) {
            hint::spin_loop();
        }
    });
    let long = Duration::from_millis(30);
    let open = look_on(&runtime, born, |stats| {
        stats.levels[1].total.running >= long
    });
    assert_eq!(open.levels[1].total.closures, 1);
    assert_eq!(open.levels[0].total.running, Duration::ZERO);
    stop.store(true, SeqCst);
    computes.erase().get().unwrap();
    look_on(&runtime, born, |stats| {
        stats.workers[0].asleep > open.workers[0].asleep
    });
}

#[test]
fn a_snapshot_has_the_sleep_of_a_worker_that_never_had_work() {
    let born = Instant::now();
    let runtime = Runtime::builder().workers(2).levels::<App>();
    let runtime = runtime.build().unwrap();
    let slept = Duration::from_millis(10);
    look_on(&runtime, born, |stats| {
        stats.workers.iter().all(|worker| worker.asleep >= slept)
    });
}

#[test]
fn no_time_is_counted_twice_while_work_comes_and_goes() {
    let born = Instant::now();
    let runtime = Runtime::builder().workers(2).levels::<App>();
    let runtime = &runtime.build().unwrap();
    let over = &AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(move || {
            for round in 0..150u64 {
                // Longer than relief waits, now and then: then a worker is revoked and restored.
                let long = Duration::from_micros(if round % 10 == 0 { 5_000 } else { 20 });
                let batch = Batch.on(runtime).spawn_fn(move |_| {
                    spin(long);
                    urgency::join(|| spin(long / 4), || spin(long / 4));
                });
                let polls = (0..20).map(|_| {
                    Urgent.on(runtime).spawn(async |_| {
                        spin(Duration::from_micros(5));
                        urgency::yield_now().await;
                    })
                });
                for poll in polls.collect::<Vec<_>>() {
                    poll.erase().get().unwrap();
                }
                if round % 3 == 0 {
                    batch.erase().get().unwrap();
                }
            }
            over.store(true, SeqCst);
        });
        threads.spawn(move || look_on(runtime, born, |_| over.load(SeqCst)));
        look_on(runtime, born, |_| over.load(SeqCst));
    });
}

/// The closure is raised in the middle of its span by the wait of a more urgent task. All of the span is at one level.
#[test]
fn a_span_that_was_shown_at_a_level_stays_there_when_its_code_is_raised() {
    let born = Instant::now();
    let runtime = Runtime::builder().workers(2).levels::<App>();
    let runtime = runtime.build().unwrap();
    let lock = &*Box::leak(Box::new(urgency::sync::Mutex::new(())));
    let (raised, stop) = (
        &*Box::leak(Box::new(AtomicBool::new(false))),
        &*Box::leak(Box::new(AtomicBool::new(false))),
    );
    let holds = Batch.on(&runtime).spawn_fn(move |_| {
        let _held = lock.blocking_lock();
        // From here on there is no scheduling point.
        raised.store(true, SeqCst);
        while !stop.load(SeqCst) {
            hint::spin_loop();
        }
    });
    while !raised.load(SeqCst) {
        thread::yield_now();
    }
    let long = Duration::from_millis(20);
    let before = look_on(&runtime, born, |stats| {
        stats.levels[1].total.running >= long
    });
    let waits = Urgent
        .on(&runtime)
        .spawn(async move |_| drop(lock.lock().await));
    while runtime.stats().levels[0].total.tasks == 0 {
        thread::yield_now();
    }
    // It is raised by now.
    thread::sleep(2 * long);
    stop.store(true, SeqCst);
    waits.erase().get().unwrap();
    holds.erase().get().unwrap();
    let after = look_on(&runtime, born, |_| true).since(&before);
    // The waiting task's own polls are short, unless the kernel stops their thread.
    let [urgent, batch] = [0, 1].map(|level| after.levels[level].total.running);
    assert!(urgent < long || batch >= long, "{after:?}");
}
