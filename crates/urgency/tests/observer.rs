//! What the statistics say is what the program sees itself: polls and closures to the last one, while tasks are
//! boosted, aborted, raised by a lock, and panic. Snapshots taken meanwhile agree with each other.

mod common;

use common::{Random, ends, fib, quiet, spin, until, with_levels};
use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};
use urgency::{
    JoinHandle, Runtime, Shutdown, Stats, WorkerLevelStats, at, sync::Mutex, time::sleep, yield_now,
};

urgency::levels! { Three: Top > Middle > Bottom }

/// What the program counts.
#[derive(Default)]
struct Own {
    polls: AtomicU64,
    closures: AtomicU64,
    lock_waits: AtomicU64,
}

struct Counted<F>(Pin<Box<F>>, Arc<Own>);

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.1.polls.fetch_add(1, SeqCst);
        self.0.as_mut().poll(cx)
    }
}

fn begin(
    runtime: &Runtime,
    mut lots: Random,
    own: &Arc<Own>,
    lock: &Arc<Mutex<u64>>,
) -> JoinHandle<()> {
    let place = match lots.below(3) {
        0 => runtime.at(Top),
        1 => runtime.at(Middle),
        _ => runtime.at(Bottom),
    };
    let (own, theirs, lock) = (own.clone(), own.clone(), lock.clone());
    if lots.below(4) == 0 {
        return place.spawn_fn(move || {
            own.closures.fetch_add(1, SeqCst);
            fib(lots.below(10));
            *lock.blocking_lock() += 1;
            assert!(lots.below(9) != 0, "on purpose");
        });
    }
    let future = async move {
        for _ in 0..lots.below(4) {
            match lots.below(4) {
                0 => yield_now().await,
                1 => sleep(Duration::from_micros(lots.below(200))).await,
                2 => spin(Duration::from_micros(lots.below(100))),
                _ => {
                    let mut wait = pin!(lock.lock());
                    let first = poll_fn(|cx| Poll::Ready(wait.as_mut().poll(cx))).await;
                    let held = match first {
                        Poll::Ready(held) => held,
                        Poll::Pending => {
                            let held = wait.await;
                            own.lock_waits.fetch_add(1, SeqCst);
                            held
                        }
                    };
                    yield_now().await;
                    drop(held);
                }
            }
        }
        assert!(lots.below(9) != 0, "on purpose");
    };
    place.spawn(Counted(Box::pin(future), theirs))
}

/// Nothing that only grows has become less.
fn agree(before: &Stats, after: &Stats) {
    let counters = |it: WorkerLevelStats| {
        let counts = [it.tasks, it.closures, it.jobs, it.steals, it.mugs];
        let more = [it.hand_offs, it.reliefs, it.lock_waits];
        let times = [it.running, it.behind, it.lock_waited].map(|time| time.as_nanos() as u64);
        [&counts[..], &more, &times].concat()
    };
    for (before, after) in before.levels.iter().zip(&after.levels) {
        let (old, new) = (counters(before.total), counters(after.total));
        assert!(
            old.iter().zip(&new).all(|(old, new)| old <= new),
            "{old:?} and then {new:?}"
        );
        assert!(before.latency.len() <= after.latency.len());
    }
    assert!(before.panicked <= after.panicked);
    assert!(before.threads_peak <= after.threads_peak);
    let (threads, peak) = (after.threads, after.threads_peak);
    assert!(threads <= peak, "{threads} threads, and {peak} at most");
}

#[test]
fn polls_and_closures_are_counted_to_the_last_one_and_snapshots_agree() {
    quiet();
    for (workers, seed) in [(1, 1), (2, 2), (8, 3), (8, 4)] {
        ends(move || {
            let (runtime, mut lots) = (with_levels::<Three>(workers), Random::new(seed));
            let (own, lock) = (Arc::<Own>::default(), Arc::new(Mutex::new(0)));
            let first = runtime.stats();
            let over = AtomicBool::new(false);
            let ended = thread::scope(|threads| {
                threads.spawn(|| {
                    let mut last = first.clone();
                    let mut tasks = 0;
                    while !over.load(SeqCst) {
                        let now = runtime.stats();
                        agree(&last, &now);
                        tasks += now.since(&last).total().tasks;
                        assert_eq!(now.since(&first).total().tasks, tasks);
                        last = now;
                    }
                });
                let all: Vec<_> = (0..200)
                    .map(|_| {
                        let task = begin(&runtime, Random::new(lots.below(u64::MAX)), &own, &lock);
                        match lots.below(6) {
                            0 => task.abort(),
                            1 => task.boost(),
                            _ => {}
                        }
                        task
                    })
                    .collect();
                let ended: Vec<_> = all.into_iter().map(JoinHandle::get).collect();
                over.store(true, SeqCst);
                ended
            });
            until(|| runtime.metrics().num_alive_tasks() == 0);
            let (stats, count) = (runtime.stats(), |it: &AtomicU64| it.load(SeqCst));
            let total = stats.total();
            assert_eq!(
                (total.tasks, total.closures),
                (count(&own.polls), count(&own.closures))
            );
            let waited: u64 = stats.levels.iter().map(|level| level.latency.len()).sum();
            assert!(waited >= total.tasks + total.closures);
            assert!(total.lock_waits >= count(&own.lock_waits));
            let panicked = ended.iter().flat_map(|ended| ended.as_ref().err());
            let panicked = panicked.filter(|error| error.is_panic()).count() as u64;
            let report = runtime.shutdown(Shutdown::Drain);
            assert_eq!((stats.panicked, report.panicked), (panicked, panicked));
            assert_eq!((report.spawned, report.left), (200, 0));
        });
    }
}

#[test]
fn what_has_run_by_another_entry_or_is_cancelled_before_it_runs_is_no_poll_and_waited_for_nothing()
{
    ends(|| {
        let runtime = with_levels::<Three>(1);
        let begins = runtime.at(Top).spawn_fn(|| {
            // It is in the queues of two levels from now on.
            let boosted = at(Bottom).spawn(async {});
            boosted.boost();
            at(Middle).spawn(pending::<()>()).abort();
            at(Middle).spawn_fn(|| ()).abort();
            boosted
        });
        begins.get().unwrap().get().unwrap();
        let nothing_waits = || runtime.stats().levels.iter().all(|level| level.queued == 0);
        until(|| runtime.metrics().num_alive_tasks() == 0 && nothing_waits());
        runtime.shutdown(Shutdown::Drain);
        let (stats, total) = (runtime.stats(), runtime.stats().total());
        assert_eq!((total.tasks, total.closures), (1, 1));
        let waited: Vec<_> = stats.levels.iter().map(|it| it.latency.len()).collect();
        assert_eq!(waited[1..], [0, 0], "at the top a stack may have gone on");
    });
}
