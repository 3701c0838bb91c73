//! A program as a newcomer writes it: at one level, or at both of two, something computes all the time, in polls, in
//! closures or in forks under a lock, in pieces of 40 µs and of 40 ms. A timer and a closure that blocks end beside it,
//! and few threads are needed. Alone in its file, for it counts the threads of the process.

mod common;

use common::{ends, spin, threads_and_descriptors};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use urgency::{
    JoinHandle, LevelId, Runtime, join, levels, scheduling_point, time::sleep, yield_now,
};

levels! { App: Urgent > Batch }

const WORKERS: usize = 2;

type Stop = Arc<AtomicBool>;

/// Computes at this level until it is told to stop.
type Begin = fn(&Runtime, LevelId, Duration, Stop) -> JoinHandle<()>;

const KINDS: [Begin; 3] = [
    |runtime, level, piece, stop| {
        runtime.at(level).spawn(async move {
            while !stop.load(SeqCst) {
                spin(piece);
                yield_now().await;
            }
        })
    },
    |runtime, level, piece, stop| {
        runtime.at(level).spawn_fn(move || {
            while !stop.load(SeqCst) {
                spin(piece);
                scheduling_point();
            }
        })
    },
    |runtime, level, piece, stop| {
        let lock = Mutex::new(());
        runtime.at(level).spawn_fn(move || {
            while !stop.load(SeqCst) {
                let _held = lock.lock().unwrap();
                join(|| spin(piece), || spin(piece));
            }
        })
    },
];

#[test]
fn a_timer_and_a_closure_that_blocks_end_beside_all_that_computes_at_their_level() {
    ends(|| {
        let pieces = [Duration::from_micros(40), Duration::from_millis(40)];
        let runs = KINDS
            .iter()
            .flat_map(|begin| pieces.map(|piece| (begin, piece)));
        for (begin, piece) in runs {
            let flat = Runtime::builder().workers(WORKERS).build().unwrap();
            let leveled = Runtime::builder().workers(WORKERS).levels::<App>();
            let leveled = leveled.build().unwrap();
            let places: [(&Runtime, LevelId); 3] = [
                (&flat, LevelId::MOST_URGENT),
                (&leveled, Urgent.into()),
                (&leveled, Batch.into()),
            ];
            for (runtime, level) in places {
                let stop = Stop::default();
                let computes = || begin(runtime, level, piece, stop.clone());
                let computations: Vec<_> = (0..WORKERS).map(|_| computes()).collect();
                let blocks = || thread::sleep(Duration::from_millis(20));
                let blocks = runtime.at(level).spawn_fn(blocks);
                let ticks = runtime.at(level).spawn(async {
                    for _ in 0..20 {
                        sleep(Duration::from_millis(2)).await;
                    }
                });
                ticks.get().unwrap();
                blocks.get().unwrap();
                stop.store(true, SeqCst);
                computations.into_iter().for_each(|it| it.get().unwrap());
            }
            // Two runtimes, the test's thread, and the one that runs all tests.
            let (threads, _) = threads_and_descriptors();
            assert!(threads <= 2 * (2 * WORKERS + 8) + 2, "{threads} threads");
        }
    });
}
