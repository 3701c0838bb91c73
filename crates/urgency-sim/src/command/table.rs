//! Tables as text.

use crate::{Report, bounds::Check, dag::Dag, trace::Recorded};
use std::fmt::Write;

/// Nanoseconds in a unit that makes them short.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.3} s", ns / 1e9),
    }
}

/// The sizes of the computation.
pub(super) fn computation(dag: &Dag) -> String {
    let (work, span) = (dag.total_work() as f64, dag.span() as f64);
    format!(
        "{} vertices, {} threads, {} levels; work T1 {}, span Tinf {}, parallelism {:.1}\n",
        dag.len(),
        dag.threads().len(),
        dag.levels(),
        time(work),
        time(span),
        work / span
    )
}

/// What happened in the run that was recorded.
pub(super) fn recorded(recorded: &Recorded) -> String {
    let report = &recorded.report;
    format!(
        "recorded on {} workers: time {}, utilisation {:.1} %{}\nsimulated:\n",
        report.workers,
        time(report.makespan as f64),
        report.utilisation() * 100.0,
        checks(&recorded.checks)
    )
}

/// What happened.
pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    let lines = [
        ("time", time(report.makespan as f64)),
        (
            "utilisation",
            format!("{:.1} %", report.utilisation() * 100.0),
        ),
        ("waste (searching, waking)", time(report.waste() as f64)),
        ("scheduling", time(report.scheduling as f64)),
        (
            "steals of attempts",
            format!("{} of {}", report.steals, report.steal_attempts),
        ),
        (
            "mugs, abandonments",
            format!("{}, {}", report.mugs, report.abandonments),
        ),
        ("deviations", report.deviations.to_string()),
        (
            "suspensions, most deques",
            format!("{}, {}", report.suspensions, report.most_deques),
        ),
        ("digest", format!("{:016x}", report.digest)),
    ];
    for (name, value) in lines {
        let _ = writeln!(text, "  {name:<26} {value}");
    }
    let _ = writeln!(
        text,
        "\n  level     busy   share  requests       mean        p50        p95        p99        max  stretch: mean, most"
    );
    for (rank, level) in report.levels.iter().enumerate() {
        let _ = writeln!(
            text,
            "  {rank:>5} {:>8} {:>6.1} % {:>8} {:>10} {:>10} {:>10} {:>10} {:>10} {:>13.2} {:>6.2}",
            time(level.busy as f64),
            level.busy as f64 / report.work.max(1) as f64 * 100.0,
            level.roots,
            time(level.mean),
            time(level.p50 as f64),
            time(level.p95 as f64),
            time(level.p99 as f64),
            time(level.max as f64),
            level.stretch,
            level.max_stretch,
        );
    }
    text
}

/// Nanoseconds, a count, or a small sum.
fn number(value: f64) -> String {
    if value < 10.0 {
        format!("{value:.3}")
    } else {
        format!("{value:.0}")
    }
}

/// The bounds and how the run compares.
pub(super) fn checks(checks: &[Check]) -> String {
    let mut text = String::from(
        "\n  bound                                             measured        bound   ratio\n",
    );
    for check in checks {
        let verdict = match (check.holds(), check.broken.is_empty()) {
            (true, true) => "holds",
            (true, false) => "holds (premise fails)",
            (false, false) => "fails (premise fails)",
            (false, true) => "VIOLATED",
        };
        let _ = writeln!(
            text,
            "  {:<46} {:>12} {:>12} {:>7.3}  {verdict}",
            check.name,
            number(check.measured),
            number(check.bound),
            check.ratio()
        );
        for broken in &check.broken {
            let _ = writeln!(text, "      {broken}");
        }
    }
    text
}

/// One row for each policy. The responses are the most urgent level's, among the levels that have requests.
pub(super) fn comparison(rows: &[(&str, Report)]) -> String {
    let mut text = format!(
        "\n  {:<20} {:>10} {:>7} {:>10} {:>10} {:>10} {:>11} {:>10}\n",
        "pool", "time", "util", "p50", "p99", "max", "steals", "deviations"
    );
    for (name, report) in rows {
        let level = report.levels.iter().find(|level| level.roots > 0);
        let of = |value: fn(&crate::LevelReport) -> u64| level.map_or(0, value) as f64;
        let _ = writeln!(
            text,
            "  {name:<20} {:>10} {:>5.1} % {:>10} {:>10} {:>10} {:>11} {:>10}",
            time(report.makespan as f64),
            report.utilisation() * 100.0,
            time(of(|l| l.p50)),
            time(of(|l| l.p99)),
            time(of(|l| l.max)),
            report.steals,
            report.deviations
        );
    }
    text
}
