//! What a contender under load logs: events, each with its intended time and its latency.
//!
//! Kept one by one, not in a histogram: only so can what happened while the host had the processor be left out
//! afterwards, for all contenders alike.

use super::Sample;
use super::timing::Latencies;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One request, frame or callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Event(
    /// When it was due, in nanoseconds of the monotonic clock.
    pub u64,
    /// How much later it was done, in nanoseconds.
    pub u64,
);

/// Events of one kind, logged by any thread.
#[derive(Default)]
pub struct Log(Mutex<Vec<Event>>);

impl Log {
    /// Adds what was due at `due` and is done now.
    pub fn done(&self, due: u64) {
        self.add(Event(due, super::machine::now_ns().saturating_sub(due)));
    }

    /// Adds an event.
    pub fn add(&self, event: Event) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }

    /// All events so far.
    pub fn events(&self) -> Vec<Event> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Percentiles of the events' latencies, as [`Latencies::sample`].
pub fn sample(prefix: &str, events: &[Event]) -> Sample {
    let mut latencies = Latencies::new();
    for Event(_, latency) in events {
        latencies.record(Duration::from_nanos(*latency));
    }
    latencies.sample(prefix)
}
