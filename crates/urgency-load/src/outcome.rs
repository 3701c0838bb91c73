//! What came of a run: rates, latencies, counts, and whether the client itself kept up.

use crate::record::{Counts, Record, histogram};
use crate::traffic::Pace;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// A distribution of times, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Half of them were not above this.
    pub p50_ms: f64,
    /// 95 % were not above this.
    pub p95_ms: f64,
    /// 99 % were not above this.
    pub p99_ms: f64,
    /// 99.9 % were not above this.
    pub p999_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// The whole histogram, three digits exact: pairs of nanoseconds and how many, ascending.
    pub histogram_ns: Vec<(u64, u64)>,
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Self {
        let ms = |ns: u64| ns as f64 / 1e6;
        let at = |quantile| ms(histogram.value_at_quantile(quantile));
        Latency {
            count: histogram.len(),
            mean_ms: histogram.mean() / 1e6,
            p50_ms: at(0.50),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: ms(histogram.max()),
            histogram_ns: histogram
                .iter_recorded()
                .map(|value| {
                    (
                        value.value_iterated_to(),
                        value.count_since_last_iteration(),
                    )
                })
                .collect(),
        }
    }

    /// The latency that this share of the requests did not exceed, in milliseconds.
    pub fn at(&self, share: f64) -> f64 {
        let wanted = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.histogram_ns.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0.0, |&(ns, _)| ns as f64 / 1e6)
    }
}

/// The client's own part in what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// How late the client's threads came to requests that were due (open loop), 99 % not above this.
    pub lag_p99_ms: f64,
    /// The worst.
    pub lag_max_ms: f64,
    /// The share of the time for which the busiest thread of the client used a processor, without what it spun in vain.
    pub busy_share: f64,
    /// The scheduling class that the threads got.
    pub class: String,
    /// What the client could not keep up with, in words; none if it did.
    pub limits: Option<String>,
}

/// What came of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Requests per second that were due (open loop).
    pub offered_per_s: Option<f64>,
    /// Replies per second.
    pub achieved_per_s: f64,
    /// Seconds recorded.
    pub seconds: f64,
    /// How often what happened.
    pub counts: Counts,
    /// The first wrong value or server error, in words.
    pub first_fault: Option<String>,
    /// Latencies of all requests.
    pub latency: Latency,
    /// The latencies of gets.
    pub gets: Latency,
    /// The latencies of sets.
    pub sets: Latency,
    /// All, from the time at which the request was sent, however late that was, until the kernel had the reply, however
    /// late it was read. Without a reply: the whole wait.
    pub from_send: Latency,
    /// The client's own part.
    pub client: Health,
}

impl Outcome {
    /// Puts the notes of all threads together.
    pub(crate) fn of(
        pace: Pace,
        recorded: Duration,
        elapsed: Duration,
        records: Vec<Record>,
    ) -> Self {
        let (mut gets, mut sets) = (histogram(), histogram());
        let (mut from_send, mut lag) = (histogram(), histogram());
        let mut counts = Counts::default();
        let mut busy_share = 0f64;
        let (mut first_fault, mut class) = (None, String::new());
        for record in records {
            gets += record.gets;
            sets += record.sets;
            from_send += record.from_send;
            lag += record.lag;
            counts.add(&record.counts);
            busy_share = busy_share.max(record.cpu.as_secs_f64() / elapsed.as_secs_f64());
            first_fault = first_fault.or(record.first_fault);
            class = record.class;
        }
        let mut all = gets.clone();
        all += &sets;
        let latency = Latency::of(&all);
        let mut client = Health {
            lag_p99_ms: lag.value_at_quantile(0.99) as f64 / 1e6,
            lag_max_ms: lag.max() as f64 / 1e6,
            busy_share,
            class,
            limits: None,
        };
        client.limits = client.find_limits(pace, &latency);
        Outcome {
            offered_per_s: match pace {
                Pace::Open(per_s, _) => Some(per_s),
                Pace::Closed | Pace::Fill => None,
            },
            achieved_per_s: counts.answered as f64 / recorded.as_secs_f64(),
            seconds: recorded.as_secs_f64(),
            counts,
            first_fault,
            latency,
            gets: Latency::of(&gets),
            sets: Latency::of(&sets),
            from_send: Latency::of(&from_send),
            client,
        }
    }

    /// Whether every reply was right and every request was answered.
    pub fn is_clean(&self) -> bool {
        let counts = &self.counts;
        counts.faults() == 0 && counts.server_errors == 0 && counts.unanswered == 0
    }
}

impl Health {
    /// The client has a part in the result when its own lag is a tenth of the latency that it reports, or
    /// when it never sleeps.
    fn find_limits(&self, pace: Pace, latency: &Latency) -> Option<String> {
        let is_open = matches!(pace, Pace::Open(..));
        if is_open && self.lag_p99_ms > 0.05 && self.lag_p99_ms > 0.1 * latency.p99_ms {
            return Some(format!(
                "the client came late to its own requests (p99 {:.3} ms of the {:.3} ms reported)",
                self.lag_p99_ms, latency.p99_ms
            ));
        }
        (self.busy_share > 0.9).then(|| {
            format!(
                "the busiest thread of the client used {:.0} % of a processor: the server may be able to do more; use more --threads",
                self.busy_share * 100.0
            )
        })
    }
}
