//! The results as a table for people.

use super::{
    options::Kind,
    outcome::{Outcome, QUANTILES},
};
use urgency_measure::latencies::Quantile;
use urgency_measure::table::{Rule, aligned, ms, percent};

const NONE: &str = "-";

/// The table, with a line that explains its columns.
pub fn table(outcomes: &[Outcome], kind: Kind) -> String {
    let mut rows = vec![header()];
    rows.extend(outcomes.iter().map(row));
    let unit = match kind {
        Kind::ForkJoin => {
            "one unit is a fib(18) that forks at every call, or plain recursion where plain threads, which cannot fork, compute"
        }
        Kind::Sequential => "one unit is a fib(18) by plain recursion",
    };
    let mut text = format!(
        "Time from the moment a request was due until its answer, in ms: half of the requests took at most p50, 99 of 100 at most p99.\n\
         Compute keeps: its speed beside the requests, as a share of its own speed alone (units/s alone; {unit}).\n\n"
    );
    text.push_str(&aligned(&rows, Rule::Line));
    for outcome in outcomes {
        if let Some(failure) = &outcome.failure {
            text.push_str(&format!(
                "{} failed: {failure}\n",
                outcome.contender.title()
            ));
        }
    }
    text
}

fn header() -> Vec<String> {
    let quantiles = QUANTILES.iter().map(|(name, _)| *name);
    let columns = [""].into_iter().chain(quantiles);
    let columns = columns.chain(["answered", "compute keeps", "units/s alone"]);
    columns.map(str::to_owned).collect()
}

fn row(outcome: &Outcome) -> Vec<String> {
    let (asked, answered) = (
        outcome.latencies.asked(),
        outcome.latencies.answered_count(),
    );
    let mut cells = vec![outcome.contender.title().to_owned()];
    cells.extend(QUANTILES.map(|(_, q)| outcome.quantile(q).map_or_else(none, quantile)));
    cells.push(format!("{answered} of {asked}"));
    cells.push(outcome.kept().map_or_else(none, percent));
    cells.push(
        outcome
            .compute
            .map_or_else(none, |rates| format!("{:.0}", rates.alone.per_s())),
    );
    cells
}

fn none() -> String {
    NONE.to_owned()
}

fn quantile(quantile: Quantile) -> String {
    let mark = if quantile.at_least { "> " } else { "" };
    format!("{mark}{}", ms(quantile.ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{
        contender::Contender,
        turn::{Rates, Span},
    };
    use std::time::Duration;

    fn outcome(contender: Contender, ms: &[u64]) -> Outcome {
        let mut outcome = Outcome::new(contender);
        for &ms in ms {
            outcome.latencies.record(Duration::from_millis(ms));
        }
        outcome
    }

    #[test]
    fn a_row_shows_quantiles_answers_and_what_the_compute_keeps() {
        let mut urgency = outcome(Contender::Urgency, &[1, 1, 1, 40]);
        urgency.compute = Some(Rates {
            alone: Span {
                units: 1000,
                ns: 1_000_000_000,
            },
            loaded: Span {
                units: 1940,
                ns: 2_000_000_000,
            },
        });
        let cells = row(&urgency);
        assert_eq!(cells[0], "Urgency");
        assert_eq!(cells[1], "1.00");
        assert_eq!(cells[3], "40.0");
        assert_eq!(cells[5..], ["4 of 4", "97 %", "1000"]);
    }

    #[test]
    fn what_was_not_measured_is_a_dash_and_what_was_not_answered_a_lower_bound() {
        assert_eq!(row(&outcome(Contender::Idle, &[]))[1..4], ["-", "-", "-"]);
        let mut threads = outcome(Contender::Threads, &[1, 1]);
        threads.latencies.unanswered(Duration::from_secs(2));
        let cells = row(&threads);
        assert_eq!(cells[1..4], ["1.00", "> 2000", "> 2000"].map(str::to_owned));
        assert_eq!(cells[5], "2 of 3");
        assert_eq!(cells[6], "-");
    }

    #[test]
    fn columns_are_aligned_and_failures_are_told() {
        let mut failed = outcome(Contender::TokioRayon, &[3]);
        failed.failure = Some("it fell over".to_owned());
        let text = table(&[outcome(Contender::Idle, &[1]), failed], Kind::ForkJoin);
        let lines: Vec<_> = text.lines().skip(3).collect();
        let ends = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        assert_eq!(ends(lines[0], "p50"), ends(lines[2], "1.00"));
        assert_eq!(ends(lines[0], "p50"), ends(lines[3], "3.00"));
        assert_eq!(lines[4], "Tokio + Rayon failed: it fell over");
    }
}
