//! Tables of `urgency sim jobs`.

use super::{super::table::time, Row};
use crate::{jobs::Climb, report::quantile};
use std::fmt::Write;

/// Flow times, one row for each policy and load.
pub(super) fn flow(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:>6} {:>11} {:>11} {:>11} {:>11} {:>7} {:>7} {:>7} {:>9} {:>9}\n",
        "policy",
        "load %",
        "mean",
        "p50",
        "p95",
        "p99",
        "growth",
        "util %",
        "running",
        "waiting",
        "moves/job"
    );
    for Row {
        policy, at, report, ..
    } in rows
    {
        let flow = &report.flow;
        let _ = writeln!(
            text,
            "{policy:<16} {at:>6} {:>11} {:>11} {:>11} {:>11} {:>7.2} {:>7.1} {:>7} {:>9} {:>9.1}",
            time(flow.mean),
            time(flow.p50 as f64),
            time(flow.p95 as f64),
            time(flow.p99 as f64),
            flow.growth,
            report.utilisation() * 100.0,
            report.most_running,
            report.most_waiting,
            report.moves as f64 / flow.count.max(1) as f64,
        );
    }
    text.push_str("growth: mean of the last quarter of the jobs in parts of the second's; far above 1: overloaded\n");
    text
}

/// Deadlines, one row for each policy and period.
pub(super) fn elastic(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<14} {:>9} {:>10} {:>7} {:>8} {:>7} {:>8} {:>16} {:>8}\n",
        "policy",
        "period ms",
        "iterations",
        "missed",
        "miss %",
        "bursts",
        "refused",
        "2nd: iterations",
        "missed"
    );
    for Row {
        policy, at, report, ..
    } in rows
    {
        let [first, second] = [report.tasks[0], report.tasks[1]];
        let _ = writeln!(
            text,
            "{policy:<14} {at:>9} {:>10} {:>7} {:>8.1} {:>7} {:>8} {:>16} {:>8}",
            first.released,
            first.missed,
            f64::from(first.missed) / f64::from(first.released.max(1)) * 100.0,
            first.bursts,
            first.refused,
            second.released,
            second.missed
        );
    }
    text
}

/// Two jobs, one row for each policy.
pub(super) fn feedback(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:>11} {:>11} {:>8} {:>10} {:>7} {:>7} {:>7} {:>11}\n",
        "policy",
        "first ends",
        "second",
        "util %",
        "decisions",
        "moves",
        "climbs",
        "steps",
        "settled in"
    );
    for Row {
        policy,
        ended,
        report,
        ..
    } in rows
    {
        let climbs = report.climbs(0);
        let middle = |of: fn(&Climb) -> u64| {
            let mut all: Vec<u64> = climbs.iter().map(of).collect();
            all.sort_unstable();
            quantile(&all, 0.5)
        };
        let _ = writeln!(
            text,
            "{policy:<16} {:>11} {:>11} {:>8.1} {:>10} {:>7} {:>7} {:>7} {:>11}",
            time(ended[0] as f64),
            time(ended[1] as f64),
            report.utilisation() * 100.0,
            report.decisions,
            report.moves,
            climbs.len(),
            middle(|climb| climb.steps as u64),
            time(middle(|climb| climb.nanos) as f64)
        );
    }
    text.push_str("climbs: how often the first job came from a quarter of the cores to three; steps, time: medians\n");
    text
}
