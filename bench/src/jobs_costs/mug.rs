//! What a stack left behind goes on: the stack itself, and the forks of its deque.

use super::{Beside, Config, now};
use crate::engines::ours::{Batch, Levels, Urgent};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use urgency_measure::{Latencies, Sample};

/// Forks of one deque.
const FORKS: usize = 1000;

/// One sample.
pub fn run(config: Config) -> Sample {
    let (set, load) = config.cores(|builder| builder.build().expect("a set of cores"));
    // One worker for it, however many there are: beside an idle one the stack would go on there before the work that it
    // was left for has ended.
    let levels = set.job().max_cpus(1);
    let levels = levels.runtime(|builder| builder.levels::<Levels>());
    let is_beside = matches!(config.load, Beside::Jobs(_));
    let driver = levels.level(Batch).spawn_fn(move || {
        let stacks = stacks(config.rounds, is_beside);
        let deques = deques(config.rounds as usize / 250);
        stacks
            .sample("stack_")
            .with_all("deque_", &deques.sample(""))
    });
    let sample = driver.expect("the set is empty").get();
    let sample = sample.expect("the driver does not panic");
    sample.with("load_share", load.share())
}

/// From the end of what the worker left this stack for until this stack goes on.
fn stacks(rounds: u32, is_beside: bool) -> Latencies {
    let (began, ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut latencies = Latencies::new();
    for _ in 0..rounds {
        if is_beside {
            urgency::blocking(|| std::thread::sleep(Duration::from_micros(500)));
        }
        ended.store(0, Ordering::SeqCst);
        let (begins, ends) = (began.clone(), ended.clone());
        let this = urgency::embed::worker_index().map_or(0, |worker| worker as u64);
        let urgent = urgency::at(Urgent).spawn_fn(move || {
            let worker = urgency::embed::worker_index().map_or(0, |worker| worker as u64);
            begins.store(worker, Ordering::SeqCst);
            ends.store(now(), Ordering::SeqCst);
        });
        let (end, on) = loop {
            urgency::join(|| (), || ());
            match ended.load(Ordering::SeqCst) {
                0 => {}
                end => break (end, now()),
            }
        };
        urgent.get().expect("it does not panic");
        // Else the stack kept its worker.
        if began.load(Ordering::SeqCst) == this {
            latencies.record(Duration::from_nanos(on - end));
        }
    }
    latencies
}

/// From fork to fork of a deque whose stack sleeps in the kernel, and has given its worker away.
fn deques(rounds: usize) -> Latencies {
    let mut latencies = Latencies::new();
    for _ in 0..rounds {
        let times: Vec<AtomicU64> = (0..FORKS).map(|_| AtomicU64::new(0)).collect();
        urgency::scope(|scope| {
            for time in &times {
                scope.spawn(|| time.store(now(), Ordering::Relaxed));
            }
            while times.iter().any(|time| time.load(Ordering::Relaxed) == 0) {
                urgency::blocking(|| std::thread::sleep(Duration::from_millis(1)));
            }
        });
        let mut times: Vec<u64> = times.iter().map(|t| t.load(Ordering::Relaxed)).collect();
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.for_each(|gap| latencies.record(Duration::from_nanos(gap)));
    }
    latencies
}
