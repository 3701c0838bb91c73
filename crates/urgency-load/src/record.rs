//! What one thread of the client notes down in one run.

use crate::protocol::Command;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Longest latency that is told from longer ones, in nanoseconds: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram of nanoseconds with three digits of precision, whose memory is allocated beforehand.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds and the precision are allowed")
}

/// How often what happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests that were due and count.
    pub requests: u64,
    /// The requests of these that were answered.
    pub answered: u64,
    /// Gets among the answered.
    pub gets: u64,
    /// Gets that found a value.
    pub hits: u64,
    /// Sets that were stored.
    pub stored: u64,
    /// Sets that the server declined.
    pub not_stored: u64,
    /// Replies `SERVER_ERROR`.
    pub server_errors: u64,
    /// Values that were not what they must be.
    pub wrong_values: u64,
    /// Values that an acknowledged set had replaced before they were asked for.
    pub stale_values: u64,
    /// Requests without a reply when the client gave up waiting; their latency counts as the time waited.
    pub unanswered: u64,
}

impl Counts {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Counts) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.gets += other.gets;
        self.hits += other.hits;
        self.stored += other.stored;
        self.not_stored += other.not_stored;
        self.server_errors += other.server_errors;
        self.wrong_values += other.wrong_values;
        self.stale_values += other.stale_values;
        self.unanswered += other.unanswered;
    }

    /// Replies that no correct server gives.
    pub fn faults(&self) -> u64 {
        self.wrong_values + self.stale_values
    }
}

/// The notes of one thread.
#[derive(Debug)]
pub struct Record {
    /// Latencies of gets.
    pub gets: Histogram<u64>,
    /// Latencies of sets.
    pub sets: Histogram<u64>,
    /// Latencies from the time at which the request was sent, however late that was, until the kernel had the reply.
    pub from_send: Histogram<u64>,
    /// How late the client itself came to each request.
    pub lag: Histogram<u64>,
    /// How often what happened.
    pub counts: Counts,
    /// The first fault or server error, in words.
    pub first_fault: Option<String>,
    /// Processor time that the thread used, without what it spun in vain.
    pub cpu: Duration,
    /// The class that it ran in.
    pub class: String,
}

impl Record {
    /// Nothing yet.
    pub fn new() -> Self {
        Record {
            gets: histogram(),
            sets: histogram(),
            from_send: histogram(),
            lag: histogram(),
            counts: Counts::default(),
            first_fault: None,
            cpu: Duration::ZERO,
            class: String::new(),
        }
    }

    /// Notes a latency, and how much of it was between the request's sending and its reply's stamp.
    pub fn latency(&mut self, command: Command, latency: Duration, from_send: Duration) {
        let histogram = match command {
            Command::Get => &mut self.gets,
            Command::Set => &mut self.sets,
        };
        histogram.saturating_record(nanoseconds(latency));
        self.from_send.saturating_record(nanoseconds(from_send));
    }

    /// Notes that the client came `late` to a request.
    pub fn lag(&mut self, late: Duration) {
        self.lag.saturating_record(nanoseconds(late));
    }

    /// Keeps the first fault's words.
    pub fn fault(&mut self, words: impl FnOnce() -> String) {
        self.first_fault.get_or_insert_with(words);
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// What a display may read while threads run: latencies in buckets of a quarter octave, since the client was made.
#[derive(Debug)]
pub struct Live {
    buckets: Vec<AtomicU64>,
}

const BUCKETS: usize = 160;

impl Live {
    /// Nothing yet.
    pub fn new() -> Self {
        Live {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A reply came after `latency`.
    pub fn note(&self, latency: Duration) {
        let ns = nanoseconds(latency).max(4);
        let octave = ns.ilog2();
        let quarter = (ns >> (octave - 2)) & 3;
        let bucket = (octave as usize * 4 + quarter as usize).min(BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub fn snapshot(&self) -> Vec<u64> {
        let load = |bucket: &AtomicU64| bucket.load(Ordering::Relaxed);
        self.buckets.iter().map(load).collect()
    }

    /// Replies between two snapshots, and a quantile of their latencies, to a quarter octave.
    pub fn between(before: &[u64], after: &[u64], quantile: f64) -> (u64, Duration) {
        let differences = || {
            after
                .iter()
                .zip(before)
                .map(|(after, before)| after - before)
        };
        let total = differences().sum();
        let wanted = (total as f64 * quantile).ceil() as u64;
        let mut seen = 0;
        let bucket = differences()
            .position(|count| {
                seen += count;
                seen >= wanted
            })
            .unwrap_or(0);
        let (octave, quarter) = (bucket / 4, bucket as u64 % 4);
        let upper = if octave < 2 {
            0
        } else {
            (5 + quarter) << (octave - 2)
        };
        (total, Duration::from_nanos(upper))
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_view_finds_a_quantile_to_a_quarter_octave() {
        let live = Live::new();
        let before = live.snapshot();
        for us in 1..=1000 {
            live.note(Duration::from_micros(us));
        }
        let (count, p90) = Live::between(&before, &live.snapshot(), 0.9);
        assert_eq!(count, 1000);
        let us = p90.as_micros();
        assert!((900..1125).contains(&us), "{us}");
        let nothing = live.snapshot();
        assert_eq!(Live::between(&nothing, &nothing, 0.9).0, 0);
    }
}
