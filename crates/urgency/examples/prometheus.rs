//! What a runtime did, in the text format that Prometheus reads, and alerts on it.
//!
//! ```sh
//! cargo run --release -p urgency --example prometheus
//! ```
//!
//! [`text`] is what a handler of `/metrics` returns: `text(&Runtime::current().stats())`, from anywhere in the program.
//! The service in `urgency-web/examples/service` does so. Three alerts that are worth having:
//!
//! ```text
//! # More than 1 % of what is interactive waited longer than 5 ms for a worker.
//! 1 - rate(urgency_ready_seconds_bucket{level="Interactive",le="0.005"}[5m])
//!   / rate(urgency_ready_seconds_count{level="Interactive"}[5m]) > 0.01
//! # Code that does not come to scheduling points; the label names the function.
//! rate(urgency_overruns_total[5m]) > 1
//! # Of this code, one piece goes on and does not come to one: an endless loop, or a blocking call, without a worker.
//! min_over_time(urgency_overrunning[1m]) > 0
//! # A level starves.
//! urgency_oldest_wait_seconds{level="Batch"} > 60
//! ```
//!
//! The program runs a batch that never checks in beside interactive work and prints both the text and what happened in
//! the last moment, as a program without Prometheus would want it.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
    time::{Duration, Instant},
};
use urgency::{Runtime, Stats};

/// The bounds of the exported buckets. The runtime's own are finer, eight for each power of two.
const BOUNDS: [Duration; 9] = [
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(10),
];

/// A snapshot in Prometheus' text format, version 0.0.4.
pub fn text(stats: &Stats) -> String {
    let mut out = Text::default();
    out.head("urgency_threads", "gauge", "Threads of the runtime.");
    out.line("urgency_threads", "", stats.threads);
    let levels = || {
        let label = |name| format!("{{level=\"{name}\"}}");
        stats
            .levels
            .iter()
            .map(move |level| (level, label(level.name)))
    };
    out.head(
        "urgency_running_seconds_total",
        "counter",
        "Time in user code.",
    );
    for (level, labels) in levels() {
        out.line(
            "urgency_running_seconds_total",
            &labels,
            level.total.running.as_secs_f64(),
        );
    }
    out.head(
        "urgency_reliefs_total",
        "counter",
        "Workers taken from code that does not check in.",
    );
    for (level, labels) in levels() {
        out.line("urgency_reliefs_total", &labels, level.total.reliefs);
    }
    out.head(
        "urgency_lock_waits_total",
        "counter",
        "Waits in the queue of a lock or semaphore.",
    );
    for (level, labels) in levels() {
        out.line("urgency_lock_waits_total", &labels, level.total.lock_waits);
    }
    out.head(
        "urgency_lock_waited_seconds_total",
        "counter",
        "The time of these waits.",
    );
    for (level, labels) in levels() {
        out.line(
            "urgency_lock_waited_seconds_total",
            &labels,
            level.total.lock_waited.as_secs_f64(),
        );
    }
    out.head(
        "urgency_queued",
        "gauge",
        "Ready work that waits for a worker.",
    );
    for (level, labels) in levels() {
        out.line("urgency_queued", &labels, level.queued);
    }
    out.head(
        "urgency_oldest_wait_seconds",
        "gauge",
        "How long the oldest of it has waited.",
    );
    for (level, labels) in levels() {
        let oldest = level.oldest_wait.unwrap_or_default();
        out.line("urgency_oldest_wait_seconds", &labels, oldest.as_secs_f64());
    }
    out.head(
        "urgency_ready_seconds",
        "histogram",
        "Time from ready to running.",
    );
    for (level, labels) in levels() {
        let (name, latency) = (level.name, &level.latency);
        for bound in BOUNDS {
            let labels = format!("{{level=\"{name}\",le=\"{}\"}}", bound.as_secs_f64());
            out.line(
                "urgency_ready_seconds_bucket",
                &labels,
                latency.at_most(bound),
            );
        }
        let all = format!("{{level=\"{name}\",le=\"+Inf\"}}");
        out.line("urgency_ready_seconds_bucket", &all, latency.len());
        out.line(
            "urgency_ready_seconds_sum",
            &labels,
            latency.sum().as_secs_f64(),
        );
        out.line("urgency_ready_seconds_count", &labels, latency.len());
    }
    // Closures of one function have one label.
    let mut overruns = BTreeMap::new();
    for overrun in &stats.overruns {
        let entry = overruns.entry((overrun.level, overrun.to_string()));
        let (times, now) = entry.or_insert((0, 0));
        *times += overrun.times;
        *now += overrun.now;
    }
    out.head(
        "urgency_overruns_total",
        "counter",
        "Code that lost its worker, by function.",
    );
    let label = |level, what: &str| format!("{{level=\"{level}\",what=\"{what}\"}}");
    for ((level, what), (times, _)) in &overruns {
        out.line("urgency_overruns_total", &label(level, what), times);
    }
    out.head(
        "urgency_overrunning",
        "gauge",
        "Code that has lost its worker and not come back, by function.",
    );
    for ((level, what), (_, now)) in &overruns {
        out.line("urgency_overrunning", &label(level, what), now);
    }
    out.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        writeln!(self.0, "{name}{labels} {value}").expect("a string takes all");
    }
}

urgency::levels! { App: Interactive > Batch }

/// Without a scheduling point: this is what relief is for, and what the statistics name.
fn crunch(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::builder().workers(2).levels::<App>().build()?;
    let before = runtime.stats();
    let batches: Vec<_> = (0..4)
        .map(|_| {
            Batch
                .on(&runtime)
                .spawn_fn(|_| crunch(Duration::from_millis(50)))
        })
        .collect();
    for _ in 0..50 {
        Interactive.on(&runtime).spawn(async |_| ()).erase().get()?;
    }
    for batch in batches {
        batch.erase().get()?;
    }
    let stats = runtime.stats();
    let text = text(&stats);
    println!("{text}");
    let happened = stats.since(&before);
    let interactive = &happened.levels[0].latency;
    println!(
        "{} interactive tasks waited {:?} on average, 99 of 100 at most {:?}",
        interactive.len(),
        interactive.sum() / interactive.len().max(1) as u32,
        interactive.quantile(0.99),
    );
    assert!(text.contains("urgency_ready_seconds_bucket{level=\"Interactive\",le=\"+Inf\"} 50"));
    assert!(
        stats
            .overruns
            .iter()
            .all(|overrun| overrun.to_string() == "prometheus::main")
    );
    Ok(())
}
