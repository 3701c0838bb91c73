//! rayon's own iterators on the drop-in, by count: urgent ones get all workers, and few leaves of less urgent ones are
//! in progress, however long they are. `ci/rayon.sh iterators` runs this.

use rayon::prelude::*;
use std::{
    collections::HashSet,
    hint,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{Runtime, scheduling_point, time};

urgency::levels! { App: Frame > Batch }

fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    builder.levels::<App>().build().unwrap()
}

fn spin(time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        hint::spin_loop();
    }
}

#[test]
fn an_urgent_iterator_runs_on_all_workers_beside_less_urgent_closures() {
    for workers in [2, 8] {
        for checks_in in [true, false] {
            let runtime = runtime(workers);
            let stop = Arc::new(AtomicBool::new(false));
            let begun = Arc::new(AtomicUsize::new(0));
            let below: Vec<_> = (0..workers)
                .map(|_| {
                    let (stop, begun) = (stop.clone(), begun.clone());
                    runtime.at(Batch).spawn_fn(move || {
                        begun.fetch_add(1, SeqCst);
                        while !stop.load(Relaxed) {
                            spin(Duration::from_micros(100));
                            if checks_in {
                                scheduling_point();
                            }
                        }
                    })
                })
                .collect();
            while begun.load(SeqCst) < workers {
                thread::yield_now();
            }
            let frame = runtime.at(Frame).spawn_fn(move || {
                let threads = Mutex::new(HashSet::new());
                let seen = AtomicUsize::new(0);
                (0..2_000_000).into_par_iter().for_each(|_| {
                    if seen.load(Relaxed) < workers {
                        spin(Duration::from_micros(10));
                        let mut threads = threads.lock().unwrap();
                        threads.insert(thread::current().id());
                        seen.store(threads.len(), Relaxed);
                    }
                });
                seen.into_inner()
            });
            let seen = frame.get().unwrap();
            assert!(seen >= workers, "{seen} of {workers}; {checks_in}");
            stop.store(true, Relaxed);
            below.into_iter().for_each(|b| b.get().unwrap());
        }
    }
}

/// What is more urgent than the leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ticks {
    None,
    /// A task that sleeps and runs.
    Brief,
    /// It runs an iterator now and then, too.
    Forking,
}

#[test]
fn few_leaves_of_an_iterator_are_in_progress_without_urgent_ticks() {
    leaves_bounded(Ticks::None);
}

#[test]
fn few_leaves_of_an_iterator_are_in_progress_beside_urgent_ticks() {
    leaves_bounded(Ticks::Brief);
}

#[test]
fn few_leaves_of_an_iterator_are_in_progress_beside_urgent_iterators() {
    leaves_bounded(Ticks::Forking);
}

fn leaves_bounded(ticks: Ticks) {
    for micros in [100, 1_000, 10_000, 40_000, 90_000] {
        for workers in [1, 2, 8] {
            let runtime = runtime(workers);
            let ended = Arc::new(AtomicBool::new(false));
            let theirs = ended.clone();
            let urgent = runtime.at(Frame).spawn(async move {
                let mut ran = 0;
                while ticks != Ticks::None && !theirs.load(Relaxed) {
                    time::sleep(Duration::from_micros(1_500)).await;
                    spin(Duration::from_micros(200));
                    if ticks == Ticks::Forking && ran % 4 == 2 {
                        let items = || {
                            let items = (0..400).into_par_iter().with_max_len(1);
                            items.for_each(|_| spin(Duration::from_micros(10)));
                        };
                        urgency::spawn_fn(items).await.unwrap();
                    }
                    ran += 1;
                }
            });
            let items = (300_000 / micros as usize).clamp(4 * workers, 1000);
            let batch = runtime.at(Batch).spawn_fn(move || {
                let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
                (0..items).into_par_iter().with_max_len(1).for_each(|_| {
                    most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                    spin(Duration::from_micros(micros));
                    now.fetch_sub(1, SeqCst);
                });
                most.into_inner()
            });
            let most = batch.get().unwrap();
            ended.store(true, Relaxed);
            urgent.get().unwrap();
            let stats = runtime.stats();
            assert!(most <= 2 * workers, "{most} leaves; {workers} workers, {micros} us, {ticks:?}");
            // Without ticks no worker is taken, but for a thread that sleeps in a page fault.
            let total = stats.total();
            let revoked = (total.reliefs + total.promotions) as usize;
            assert!(most <= workers + revoked, "{most} leaves; {ticks:?}: {total:?}");
            // Of the pieces in progress up to P run without a worker. The 6 are in the poller, sent there, or on their
            // way to the spares. Threads that wait for a stolen half are more. There is at most one for each piece in
            // progress and halving above it, but the joiner leaps first: 5 of 8 workers were the most in ten dumps
            // (docs/decisions/relief.md). Urgent forks divide all workers once more.
            let joiners = if ticks == Ticks::Forking { 9 * workers } else { workers };
            assert!(stats.threads_peak <= 2 * workers + 6 + joiners, "{stats:?}");
        }
    }
}
