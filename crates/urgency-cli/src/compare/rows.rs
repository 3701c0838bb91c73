//! What the parts' tables share: a latency as a row.

use super::calm::LATE;
use serde::{Deserialize, Serialize};
use urgency_load::Outcome;
use urgency_measure::rounds::median;

/// The latencies of a run, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Latencies {
    /// Requests per second that were answered.
    pub achieved_per_s: f64,
    /// Quantiles.
    pub p50: f64,
    /// See there.
    pub p95: f64,
    /// See there.
    pub p99: f64,
    /// See there.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// The server's own: from a request's sending until the kernel had its reply, 99 % not above this.
    pub sent_p99: f64,
    /// How late the client itself was, 99 % not above this.
    pub lag_p99: f64,
    /// How busy the client was.
    pub client_busy: f64,
}

impl Latencies {
    /// The latencies of an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        let latency = &outcome.latency;
        Latencies {
            achieved_per_s: outcome.achieved_per_s,
            p50: latency.p50_ms,
            p95: latency.p95_ms,
            p99: latency.p99_ms,
            p999: latency.p999_ms,
            max: latency.max_ms,
            sent_p99: outcome.from_send.p99_ms,
            lag_p99: outcome.client.lag_p99_ms,
            client_busy: outcome.client.busy_share,
        }
    }

    /// Medians of several runs, each number by itself.
    pub fn medians(runs: &[Latencies]) -> Option<Latencies> {
        let of = |field: fn(&Latencies) -> f64| median(runs.iter().map(field));
        Some(Latencies {
            achieved_per_s: of(|run| run.achieved_per_s)?,
            p50: of(|run| run.p50)?,
            p95: of(|run| run.p95)?,
            p99: of(|run| run.p99)?,
            p999: of(|run| run.p999)?,
            max: of(|run| run.max)?,
            sent_p99: of(|run| run.sent_p99)?,
            lag_p99: of(|run| run.lag_p99)?,
            client_busy: of(|run| run.client_busy)?,
        })
    }

    /// Whether the client kept up, so that these are the server's.
    pub fn are_calm(&self) -> bool {
        self.lag_p99 <= LATE
    }

    /// The columns' names.
    pub const HEADING: &str = "   p50 ms    p95 ms    p99 ms  p99.9 ms   p99 sent    lag p99";

    /// The columns.
    pub fn columns(&self) -> String {
        format!(
            "{:9.3} {:9.3} {:9.3} {:9.3} {:10.3} {:10.3}",
            self.p50, self.p95, self.p99, self.p999, self.sent_p99, self.lag_p99
        )
    }
}
