//! The raw results as JSON, for other programs: everything in the table, the distributions themselves, the
//! options, and what the runtime counted.

use super::{
    frames,
    messages::Account,
    options::Options,
    outcome::{Outcome, QUANTILES},
};
use serde::Serialize;
use std::collections::BTreeMap;
use urgency_measure::latencies::{Latencies, Quantile};

/// The whole run.
#[derive(Serialize)]
struct Run<'a> {
    version: &'static str,
    options: &'a Options,
    workers: usize,
    conditions: Conditions,
    contenders: Vec<Entry<'a>>,
    frames: Vec<FramesEntry<'a>>,
}

/// What one must know to trust the numbers.
#[derive(Clone, Copy, Serialize)]
pub struct Conditions {
    /// Whether the client could not be starved; `None` if it never ran.
    pub client_in_real_time_class: Option<bool>,
    /// The share of all processors (0 to 1) that other programs used; `None` where the system does not say.
    pub share_used_by_others: Option<f64>,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: super::contender::Contender,
    asked: u64,
    answered: u64,
    latency_ms: BTreeMap<&'static str, f64>,
    compute: Option<Compute>,
    account: &'a Account,
    failure: Option<&'a str>,
    latencies: &'a Latencies,
}

#[derive(Serialize)]
struct FramesEntry<'a> {
    name: super::contender::Contender,
    due: u64,
    late_or_skipped: u64,
    decoded_per_s: f64,
    failure: Option<&'a str>,
    frames: &'a Latencies,
    audio: &'a Latencies,
}

#[derive(Serialize)]
struct Compute {
    units_per_s_alone: f64,
    units_per_s_beside_requests: f64,
    kept: Option<f64>,
}

/// The results as JSON.
pub fn json(
    options: &Options,
    conditions: Conditions,
    outcomes: &[Outcome],
    frames: &[frames::Outcome],
) -> String {
    let run = Run {
        version: env!("CARGO_PKG_VERSION"),
        options,
        workers: options.worker_count(),
        conditions,
        contenders: outcomes.iter().map(entry).collect(),
        frames: frames.iter().map(frames_entry).collect(),
    };
    serde_json::to_string(&run).expect("the results can be written as JSON") + "\n"
}

fn frames_entry(outcome: &frames::Outcome) -> FramesEntry<'_> {
    FramesEntry {
        name: outcome.contender,
        due: outcome.due,
        late_or_skipped: outcome.missed,
        decoded_per_s: outcome.decoding.per_s(),
        failure: outcome.failure.as_deref(),
        frames: &outcome.frames,
        audio: &outcome.audio,
    }
}

fn entry(outcome: &Outcome) -> Entry<'_> {
    let value = |(name, q)| Some((name, outcome.quantile(q).map(|Quantile { ms, .. }| ms)?));
    Entry {
        name: outcome.contender,
        asked: outcome.latencies.asked(),
        answered: outcome.latencies.answered_count(),
        latency_ms: QUANTILES.into_iter().filter_map(value).collect(),
        compute: outcome.compute.map(|rates| Compute {
            units_per_s_alone: rates.alone.per_s(),
            units_per_s_beside_requests: rates.loaded.per_s(),
            kept: outcome.kept(),
        }),
        account: &outcome.account,
        failure: outcome.failure.as_deref(),
        latencies: &outcome.latencies,
    }
}
