//! Two plain threads on one processor that unpark each other.

use super::Config;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;
use urgency_measure::{Sample, class};

static TURN: AtomicU32 = AtomicU32::new(0);
static STARTED: Mutex<Option<Instant>> = Mutex::new(None);

/// One sample.
pub fn run(config: Config) -> Sample {
    class::bind_to_one_processor();
    let lower = thread::current();
    let urgent = thread::spawn(move || {
        loop {
            wait_for(1);
            *STARTED.lock().expect("nobody panics while holding it") = Some(Instant::now());
            TURN.store(0, Ordering::Release);
            lower.unpark();
        }
    });
    config.measure(|| {
        TURN.store(1, Ordering::Release);
        urgent.thread().unpark();
        wait_for(0);
        STARTED
            .lock()
            .expect("nobody panics while holding it")
            .take()
    })
}

fn wait_for(turn: u32) {
    while TURN.load(Ordering::Acquire) != turn {
        thread::park();
    }
}
