//! Jobs that come by themselves, in an open loop: what the machine does beside what is measured.

use super::now;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};
use urgency::jobs::{CoreSet, JobBuilder};
use urgency_measure::{class, machine, timing};

/// Jobs that come until it is dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    /// Nanoseconds that the jobs computed.
    work: Arc<AtomicU64>,
    began: u64,
    source: Option<JoinHandle<()>>,
}

/// What is forked of a job, a piece for each fork: about a millisecond altogether.
const PIECES: u32 = 128;

fn compute(pieces: u32) {
    if pieces <= 1 {
        assert_eq!(
            timing::serial_fib(std::hint::black_box(18)),
            2584,
            "wrong result"
        );
        return;
    }
    urgency::join(|| compute(pieces / 2), || compute(pieces - pieces / 2));
}

fn submit(shape: &JobBuilder, work: &Arc<AtomicU64>, cost: u64) {
    let work = work.clone();
    let job = shape.clone().spawn_fn(move || {
        compute(PIECES);
        work.fetch_add(cost, Ordering::Relaxed);
    });
    // A set that has all the jobs that it can has refused this one.
    let _ = job.map(|job| job.detach());
}

impl Load {
    /// Nothing.
    pub fn none() -> Self {
        Load {
            stop: Arc::default(),
            work: Arc::default(),
            began: now(),
            source: None,
        }
    }

    /// Jobs that use this share of two processors.
    pub fn on(set: &CoreSet, share: f64) -> Self {
        if share == 0.0 {
            return Load::none();
        }
        let cost = cost(set);
        let shape = set.job().priority(1);
        let mut load = Load::none();
        let (stop, work) = (load.stop.clone(), load.work.clone());
        load.source = Some(thread::spawn(move || {
            class::sharpen_timers();
            let mut random = fastrand::Rng::with_seed(16);
            let gap = cost as f64 / (2.0 * share);
            let mut due = now() as f64;
            while !stop.load(Ordering::Relaxed) {
                due += -(1.0 - random.f64()).ln() * gap;
                machine::sleep_until_ns(due as u64);
                submit(&shape, &work, cost);
            }
        }));
        load.began = now();
        load
    }

    /// Which share of two processors the jobs used so far.
    pub fn share(&self) -> f64 {
        self.work.load(Ordering::Relaxed) as f64 / (2.0 * (now() - self.began) as f64)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(source) = self.source.take() {
            source.join().expect("the source of jobs does not panic");
        }
    }
}

/// How many nanoseconds of a processor one of the jobs takes.
fn cost(set: &CoreSet) -> u64 {
    let timed = set.spawn_fn(|| {
        let once = || {
            let before = now();
            (0..PIECES).for_each(|_| compute(1));
            now() - before
        };
        (0..20).map(|_| once()).min()
    });
    let timed = timed.expect("the set is empty").get();
    timed.expect("it does not panic").expect("it was timed")
}
