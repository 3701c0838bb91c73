//! A stranger's program that looks at its threads: requests that fork and lock, above a batch each of whose leaves
//! needs the lock. A worker changes threads all the time, and threads are made in the middle of it.
#![cfg(target_os = "linux")]

mod common;

use common::ends;
use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};
use urgency::{Runtime, Shutdown, join, sync::Mutex, time::sleep};

urgency::levels! { App: Interactive > Batch }

/// The processors on which the calling thread may run, as the kernel writes them.
fn processors() -> String {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("Cpus_allowed_list"));
    line.unwrap().to_owned()
}

fn compute(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn request(leaves: u32) {
    match leaves {
        1 => compute(Duration::from_micros(50)),
        _ => drop(join(|| request(leaves / 2), || request(leaves / 2))),
    }
}

fn batch(leaves: u32, lock: &Mutex<()>, ends: &AtomicBool) {
    if leaves > 1 {
        join(
            || batch(leaves / 2, lock, ends),
            || batch(leaves / 2, lock, ends),
        );
    } else if !ends.load(SeqCst) {
        compute(Duration::from_millis(1));
        let _held = lock.blocking_lock();
        compute(Duration::from_micros(200));
    }
}

#[test]
fn each_thread_that_is_made_among_hand_overs_may_run_on_all_processors() {
    ends(|| {
        let (all, bound) = (processors(), Arc::new(AtomicUsize::new(0)));
        let counts = bound.clone();
        let runtime = Runtime::builder().workers(2).levels::<App>();
        let runtime = runtime.on_thread_start(move || {
            counts.fetch_add(usize::from(processors() != all), SeqCst);
        });
        let runtime = runtime.build().unwrap();
        let (lock, over) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
        let (of_batch, ends) = (lock.clone(), over.clone());
        let batch = runtime.at(Batch).spawn_fn(move || {
            while !ends.load(SeqCst) {
                batch(256, &of_batch, &ends);
            }
        });
        let requests = runtime.at(Interactive).spawn(async move {
            for _ in 0..200 {
                sleep(Duration::from_millis(5)).await;
                let lock = lock.clone();
                urgency::spawn(async move {
                    drop(lock.lock().await);
                    request(128);
                })
                .detach();
            }
        });
        requests.get().unwrap();
        over.store(true, SeqCst);
        batch.get().unwrap();
        let report = runtime.shutdown(Shutdown::Drain);
        assert_eq!((report.finished, report.panicked), (202, 0));
        assert_eq!(bound.load(SeqCst), 0, "so many began as bound threads");
    });
}
