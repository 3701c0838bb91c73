//! Jobs that come by themselves, in an open loop: what the machine does beside what is measured.
//!
//! Their compute is a time on a processor. (It was an amount, timed beforehand. Siblings of one core each compute at
//! 0.75 to 0.85 of what one has while the other idles, so a load of "60 %" was 74 % of the machine.)

use super::now;
use crate::jobs_flow::UNIT;
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

/// What is forked of a job, a unit for each fork: about a millisecond altogether.
const UNITS: u32 = 96;

fn compute(units: u32) {
    if units <= 1 {
        return timing::use_processor(UNIT);
    }
    urgency::join(|| compute(units / 2), || compute(units - units / 2));
}

fn submit(shape: &JobBuilder, work: &Arc<AtomicU64>, cost: u64) {
    let work = work.clone();
    let job = shape.clone().spawn_fn(move || {
        compute(UNITS);
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
        let cost = UNIT.as_nanos() as u64 * u64::from(UNITS);
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
