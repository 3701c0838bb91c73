//! Latencies: a histogram with three digits of precision, as it is recorded, sent between processes, merged and asked.
//!
//! A request without an answer is part of the distribution with the time that it had waited when the client
//! gave up, so that a server that never answers does not look fast. Such a time is a lower bound; the
//! shortest one is remembered, and a quantile at or above it is [at least](Quantile::at_least) what it says.

use crate::sample::Sample;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A distribution of latencies.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct Latencies {
    histogram: Histogram<u64>,
    unanswered: u64,
    shortest_unanswered_ns: Option<u64>,
}

/// A latency that a share of the requests did not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Milliseconds.
    pub ms: f64,
    /// Whether requests without an answer may make the true value larger.
    pub at_least: bool,
}

/// The form on the wire and in the JSON file.
#[derive(Serialize, Deserialize)]
struct Recorded {
    unanswered: u64,
    shortest_unanswered_ns: Option<u64>,
    /// Pairs of nanoseconds and how many requests took that long, ascending.
    counts: Vec<(u64, u64)>,
}

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        Latencies {
            histogram: Histogram::new(3).expect("3 digits are allowed"),
            unanswered: 0,
            shortest_unanswered_ns: None,
        }
    }

    /// Adds one: a request was answered after `latency`.
    pub fn record(&mut self, latency: Duration) {
        self.histogram += nanoseconds(latency);
    }

    /// A request was given up after `waited`.
    pub fn unanswered(&mut self, waited: Duration) {
        let waited = nanoseconds(waited);
        self.histogram += waited;
        self.unanswered += 1;
        self.shortest_unanswered_ns = shortest(self.shortest_unanswered_ns, Some(waited));
    }

    /// Mean and percentiles as metrics `<prefix>mean_ns`, `p50`, `p90`, `p95`, `p99`, `p999`, `max`, and their count.
    /// p99.9 is left out where it would be the largest one.
    pub fn sample(&self, prefix: &str) -> Sample {
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64;
        let sample = Sample::new()
            .with(format!("{prefix}mean_ns"), self.histogram.mean())
            .with(format!("{prefix}p50_ns"), at(0.50))
            .with(format!("{prefix}p90_ns"), at(0.90))
            .with(format!("{prefix}p95_ns"), at(0.95))
            .with(format!("{prefix}p99_ns"), at(0.99))
            .with(format!("{prefix}max_ns"), self.histogram.max() as f64)
            .with(format!("{prefix}count"), self.histogram.len() as f64);
        match self.histogram.len() > 1000 {
            true => sample.with(format!("{prefix}p999_ns"), at(0.999)),
            false => sample,
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Latencies) {
        self.histogram += &other.histogram;
        self.unanswered += other.unanswered;
        self.shortest_unanswered_ns =
            shortest(self.shortest_unanswered_ns, other.shortest_unanswered_ns);
    }

    /// Requests recorded, answered or not.
    pub fn asked(&self) -> u64 {
        self.histogram.len()
    }

    /// Requests that were answered.
    pub fn answered_count(&self) -> u64 {
        self.histogram.len() - self.unanswered
    }

    /// The latency that the share `q` (0 to 1) of the requests did not exceed; `None` if there was no request.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        if self.histogram.is_empty() {
            return None;
        }
        let ns = self.histogram.value_at_quantile(q);
        let at_least = self
            .shortest_unanswered_ns
            .is_some_and(|shortest| ns >= self.histogram.lowest_equivalent(shortest));
        let ns = match at_least {
            true => self.histogram.lowest_equivalent(ns),
            false => ns,
        };
        Some(Quantile {
            ms: ns as f64 / 1e6,
            at_least,
        })
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

impl From<Recorded> for Latencies {
    fn from(recorded: Recorded) -> Self {
        let mut latencies = Latencies::new();
        for (ns, count) in recorded.counts {
            latencies
                .histogram
                .record_n(ns, count)
                .expect("a histogram that resizes itself takes any value");
        }
        latencies.unanswered = recorded.unanswered;
        latencies.shortest_unanswered_ns = recorded.shortest_unanswered_ns;
        latencies
    }
}

impl From<Latencies> for Recorded {
    fn from(latencies: Latencies) -> Self {
        let counts = latencies.histogram.iter_recorded();
        Recorded {
            unanswered: latencies.unanswered,
            shortest_unanswered_ns: latencies.shortest_unanswered_ns,
            counts: counts
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect(),
        }
    }
}

fn nanoseconds(latency: Duration) -> u64 {
    u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
}

fn shortest(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ms(all: &[u64]) -> Latencies {
        let mut latencies = Latencies::new();
        for &ms in all {
            latencies.record(Duration::from_millis(ms));
        }
        latencies
    }

    #[test]
    fn there_is_no_quantile_of_nothing() {
        assert_eq!(Latencies::new().quantile(0.5), None);
    }

    #[test]
    fn a_quantile_is_known_to_a_thousandth() {
        let p50 = of_ms(&[1, 2, 3]).quantile(0.5).expect("three requests");
        assert!((p50.ms - 2.0).abs() < 0.002, "{p50:?}");
        assert!(!p50.at_least);
    }

    #[test]
    fn an_unanswered_request_makes_the_quantiles_above_it_lower_bounds() {
        let mut latencies = of_ms(&[1, 2, 3]);
        latencies.unanswered(Duration::from_millis(50));
        assert_eq!((latencies.asked(), latencies.answered_count()), (4, 3));
        assert!(!latencies.quantile(0.5).expect("four requests").at_least);
        assert!(latencies.quantile(0.99).expect("four requests").at_least);
    }

    #[test]
    fn latencies_survive_the_wire() {
        let mut sent = of_ms(&[1, 2, 2000]);
        sent.unanswered(Duration::from_secs(3));
        let text = serde_json::to_string(&sent).expect("numbers");
        let mut received: Latencies = serde_json::from_str(&text).expect("the same form");
        assert_eq!(received.asked(), 4);
        for q in [0.0, 0.5, 0.75, 1.0] {
            assert_eq!(received.quantile(q), sent.quantile(q));
        }
        received.merge(&sent);
        assert_eq!((received.asked(), received.answered_count()), (8, 6));
    }
}
