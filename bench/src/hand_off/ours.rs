//! Two closures at two levels on one worker.

use super::Config;
use crate::engines::ours::{Batch, Urgent, runtime_with_levels, with_stats};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use urgency_measure::{Sample, class};

/// One sample on all processors: the woken stack may land on the idle one.
pub fn run(config: Config) -> Sample {
    let runtime = runtime_with_levels(1);
    let lower = runtime.at(Batch).spawn_fn(move || config.measure(hand_off));
    let sample = lower.get().expect("nothing is cancelled");
    with_stats(sample, &runtime)
}

/// One sample with the whole process bound to one processor.
pub fn run_bound(config: Config) -> Sample {
    class::bind_to_one_processor();
    run(config)
}

fn hand_off() -> Option<Instant> {
    let started = Arc::new(Mutex::new(None));
    let theirs = started.clone();
    urgency::at(Urgent)
        .spawn_fn(move || {
            *theirs.lock().expect("nobody panics while holding it") = Some(Instant::now());
        })
        .detach();
    // The spawn is a scheduling point already; so is this, for runtimes that check only before they run something.
    urgency::join(|| (), || ());
    started
        .lock()
        .expect("nobody panics while holding it")
        .take()
}
