//! What is printed.

use crate::search::{Found, Purpose, Quality};
use crate::{Latency, Load, Outcome, Progress};
use std::fmt::Write as _;
use std::io::Write as _;

/// The live line on standard error.
pub fn progress(title: &str, progress: &Progress) {
    eprint!(
        "\r\x1b[K{title} {:5.1} s  {:9.0} replies/s  p50 {}  p99 {}\r",
        progress.elapsed.as_secs_f64(),
        progress.replies_per_s,
        ms(progress.p50.as_secs_f64() * 1e3),
        ms(progress.p99.as_secs_f64() * 1e3),
    );
    // A lost progress line does no harm.
    let _ = std::io::stderr().flush();
}

/// What is going to be asked.
pub fn heading(load: &Load) -> String {
    let workload = &load.workload;
    format!(
        "{}: {} connections, {} client threads, up to {} requests under way on each; {} keys of {} bytes, {}; {:.1} % gets; values of {} bytes",
        load.server,
        load.connections,
        load.threads,
        load.pipeline,
        workload.keys,
        workload.key_size,
        workload.popularity,
        workload.gets * 100.0,
        workload.values,
    )
}

/// How the fill went.
pub fn fill(outcome: &Outcome) -> String {
    format!(
        "fill: {} keys stored, {:.0} sets/s",
        outcome.counts.stored, outcome.achieved_per_s
    )
}

/// Where a search begins.
pub fn closed_loop(outcome: &Outcome) -> String {
    format!(
        "closed loop: {:.0} requests/s{}",
        outcome.achieved_per_s,
        limits(outcome)
    )
}

/// One trial of a search.
pub fn trial(
    purpose: Purpose,
    quality: &Quality,
    outcome: &Outcome,
    failure: Option<&str>,
) -> String {
    let title = match purpose {
        Purpose::Halve => "try",
        Purpose::Confirm => "confirm",
    };
    let verdict = match failure {
        None => "met".to_owned(),
        Some(failure) => format!("not met: {failure}"),
    };
    format!(
        "{title:>8} {:9.0}/s: {} at {:.1} %, {verdict}{}",
        outcome.offered_per_s.unwrap_or(0.0),
        ms(outcome.latency.at(quality.share)),
        quality.share * 100.0,
        limits(outcome),
    )
}

/// The search's end.
pub fn found(quality: &Quality, found: &Found) -> String {
    format!("highest rate with {quality}: {:.0} requests/s", found.per_s)
}

/// The result.
pub fn outcome(outcome: &Outcome) -> String {
    let mut text = String::new();
    let counts = &outcome.counts;
    let offered = outcome
        .offered_per_s
        .map_or_else(String::new, |per_s| format!(" of {per_s:.0} offered"));
    let mut line = |words: String| writeln!(text, "{words}").expect("a String takes any text");
    line(format!(
        "\n{:.0} requests/s{offered}, over {:.1} s; {} hits, {} misses, {} stored",
        outcome.achieved_per_s,
        outcome.seconds,
        counts.hits,
        counts.gets - counts.hits,
        counts.stored,
    ));
    line(format!(
        "{:8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "count", "mean", "p50", "p95", "p99", "p99.9", "max"
    ));
    for (name, latency) in [
        ("all", &outcome.latency),
        ("gets", &outcome.gets),
        ("sets", &outcome.sets),
        ("as sent", &outcome.from_send),
    ] {
        if latency.count > 0 {
            line(row(name, latency));
        }
    }
    for (count, what) in [
        (counts.wrong_values, "WRONG VALUES"),
        (counts.stale_values, "STALE VALUES"),
        (counts.server_errors, "server errors"),
        (counts.not_stored, "sets not stored"),
        (counts.unanswered, "requests without a reply"),
    ] {
        if count > 0 {
            line(format!("{what}: {count}"));
        }
    }
    if let Some(fault) = &outcome.first_fault {
        line(format!("the first fault: {fault}"));
    }
    let client = &outcome.client;
    line(format!(
        "client: {}, busy {:.0} %, lag p99 {} max {}{}",
        client.class,
        client.busy_share * 100.0,
        ms(client.lag_p99_ms),
        ms(client.lag_max_ms),
        limits(outcome),
    ));
    text
}

fn row(name: &str, latency: &Latency) -> String {
    format!(
        "{name:8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        latency.count,
        ms(latency.mean_ms),
        ms(latency.p50_ms),
        ms(latency.p95_ms),
        ms(latency.p99_ms),
        ms(latency.p999_ms),
        ms(latency.max_ms),
    )
}

fn limits(outcome: &Outcome) -> String {
    let limits = outcome.client.limits.as_ref();
    limits.map_or_else(String::new, |limits| format!(" [{limits}]"))
}

fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.3} ms"),
        ms if ms < 1000.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}
