//! A poll whose thread lost its processor to other threads is migrated by a worker that has one.

mod common;

use common::{ends, runtime};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use urgency::{net::TcpListener, yield_now};

#[test]
fn a_poll_whose_thread_loses_its_processor_to_others_is_fetched() {
    let processors = thread::available_parallelism().unwrap().get();
    let everywhere = sched_getaffinity(None).unwrap();
    if processors < 2 || sched_setaffinity(None, &everywhere).is_err() {
        // There is no other processor, or no thread may be called to it.
        return;
    }
    ends(move || {
        let runtime = runtime(2);
        let stop = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..2 * processors)
            .map(|_| {
                let stop = stop.clone();
                thread::spawn(move || {
                    while !stop.load(Relaxed) {
                        hint::spin_loop();
                    }
                })
            })
            .collect();
        // A task waits for an event, so that workers look for it between their polls.
        let listener = urgency::block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let waits = runtime.spawn(async move { listener.accept().await.is_ok() });
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let stop = stop.clone();
                runtime.spawn(async move {
                    while !stop.load(Relaxed) {
                        let begin = Instant::now();
                        while begin.elapsed() < Duration::from_micros(20) {
                            hint::spin_loop();
                        }
                        yield_now().await;
                    }
                })
            })
            .collect();
        while runtime.stats().total().fetches == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
        for task in tasks {
            task.get().unwrap();
        }
        for other in others {
            other.join().unwrap();
        }
        waits.abort();
    });
}
