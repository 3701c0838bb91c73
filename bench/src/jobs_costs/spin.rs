//! A job that spins and never checks in.

use super::{moves::Stamped, now};
use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use urgency::jobs::CoreSet;
use urgency_measure::{Latencies, Sample};

const WORKERS: usize = 2;

/// One sample.
pub fn run(rounds: u32) -> Sample {
    let policy = Stamped::default();
    let set = policy.on(CoreSet::builder().cores(WORKERS));
    let (spins, other) = (set.job().priority(1), set.job());
    let mut late = Latencies::new();
    for _ in 0..rounds {
        let running = Arc::new(AtomicUsize::new(0));
        let began = Arc::new(AtomicU64::new(0));
        let spinners: Vec<_> = (0..WORKERS)
            .map(|_| {
                let (running, began) = (running.clone(), began.clone());
                let spins = spins.clone().max_cpus(1).spawn_fn(move || {
                    running.fetch_add(1, Ordering::SeqCst);
                    while began.load(Ordering::Relaxed) == 0 {
                        hint::spin_loop();
                    }
                });
                spins.expect("the set has room for a job")
            })
            .collect();
        while running.load(Ordering::SeqCst) < WORKERS {
            std::thread::sleep(Duration::from_micros(200));
        }
        let (begins, decides) = (began.clone(), policy.clone());
        let job = other.clone().spawn_fn(move || {
            let (first, decided) = (now(), decides.decided());
            begins.store(first, Ordering::Relaxed);
            first.saturating_sub(decided)
        });
        let job = job.expect("the set has room for a job");
        late.record(Duration::from_nanos(job.get().expect("it does not panic")));
        for spinner in spinners {
            spinner.get().expect("it does not panic");
        }
    }
    late.sample("late_")
}
