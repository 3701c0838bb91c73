//! The results in words, with the numbers that were measured, whatever they are.
//!
//! Two sentences: what Urgency did, beside the idle machine if that was measured; and what the others needed
//! for the same. Where Urgency is not the fastest, the second sentence says so.

use super::{
    contender::Contender,
    options::{Kind, ServeAt},
    outcome::Outcome,
};
use urgency_measure::latencies::Quantile;
use urgency_measure::table::{ms, percent};

/// What it all means.
pub fn meaning(outcomes: &[Outcome], level: ServeAt, kind: Kind) -> String {
    let with_p99 = |contender| p99_of(outcomes, contender);
    let ours = with_p99(Contender::Urgency);
    let rivals = [Contender::TokioRayon, Contender::Threads]
        .into_iter()
        .filter_map(with_p99);
    let rivals: Vec<_> = rivals
        .map(|(rival, p99)| needed(rival, p99, ours.map(|(_, ours)| ours)))
        .collect();
    let first = ours.map(|ours| ours_did(ours, with_p99(Contender::Idle), level, kind));
    let second = match (rivals.is_empty(), ours) {
        (true, _) => None,
        (false, Some(_)) => Some(format!(
            "For the same 99 of 100, {}.",
            rivals.join(", and ")
        )),
        (false, None) => Some(format!(
            "To answer 99 of 100 requests, {}.",
            rivals.join(", and ")
        )),
    };
    let sentences: Vec<_> = first.into_iter().chain(second).collect();
    sentences.join("\n")
}

fn p99_of(outcomes: &[Outcome], contender: Contender) -> Option<(&Outcome, Quantile)> {
    let outcome = outcomes.iter().find(|o| o.contender == contender)?;
    Some((outcome, outcome.quantile(0.99)?))
}

fn ours_did(
    (ours, p99): (&Outcome, Quantile),
    idle: Option<(&Outcome, Quantile)>,
    level: ServeAt,
    kind: Kind,
) -> String {
    let beside = match kind {
        Kind::ForkJoin => "fork-join compute that never ends",
        Kind::Sequential => "sequential loops that never end",
    };
    let relation = match level {
        ServeAt::Interactive => "more urgent than it",
        ServeAt::Batch => "no more urgent than it",
        ServeAt::Background => "less urgent than it",
    };
    let mut text = format!(
        "Beside {beside}, and serving the requests as {relation}, Urgency answered 99 of 100 within {}",
        time(p99)
    );
    if let Some((_, idle)) = idle {
        text.push_str(&format!(" (with no compute at all: {})", time(idle)));
    }
    if let Some(kept) = ours.kept() {
        text.push_str(&format!(
            ", while the compute kept {} of its speed",
            percent(kept)
        ));
    }
    text.push('.');
    text
}

fn needed(rival: &Outcome, p99: Quantile, ours: Option<Quantile>) -> String {
    let mut text = format!("{} needed {}", rival.contender.title(), time(p99));
    if let Some(ours) = ours.filter(|ours| ours.ms > 0.0) {
        text.push_str(&format!(" ({})", times_as_long(p99.ms / ours.ms)));
    }
    if let Some(kept) = rival.kept() {
        text.push_str(&format!(", its compute keeping {}", percent(kept)));
    }
    text
}

fn time(quantile: Quantile) -> String {
    let bound = if quantile.at_least { "more than " } else { "" };
    format!("{bound}{} ms", ms(quantile.ms))
}

fn times_as_long(ratio: f64) -> String {
    match ratio {
        r if r >= 9.95 => format!("{r:.0} times as long"),
        r if r >= 1.15 => format!("{r:.1} times as long"),
        r if r > 0.87 => "about as long".to_owned(),
        r => format!("{} of that", percent(r)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome(contender: Contender, us: u64) -> Outcome {
        let mut outcome = Outcome::new(contender);
        outcome.latencies.record(Duration::from_micros(us));
        outcome
    }

    #[test]
    fn the_words_repeat_the_measured_numbers() {
        let outcomes = [
            outcome(Contender::Idle, 200),
            outcome(Contender::Urgency, 400),
            outcome(Contender::TokioRayon, 20_000),
            outcome(Contender::Threads, 100),
        ];
        let text = meaning(&outcomes, ServeAt::Interactive, Kind::ForkJoin);
        assert!(
            text.contains("99 of 100 within 0.400 ms (with no compute at all: 0.200 ms)."),
            "{text}"
        );
        assert!(
            text.contains("Tokio + Rayon needed 20.0 ms (50 times as long)"),
            "{text}"
        );
        assert!(
            text.contains("plain threads needed 0.100 ms (25 % of that)"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn rivals_alone_are_told_without_a_comparison() {
        let text = meaning(
            &[outcome(Contender::Threads, 5_000)],
            ServeAt::Batch,
            Kind::Sequential,
        );
        assert_eq!(
            text,
            "To answer 99 of 100 requests, plain threads needed 5.00 ms."
        );
    }

    #[test]
    fn nothing_measured_is_nothing_said() {
        let none = [Outcome::new(Contender::Urgency)];
        assert_eq!(meaning(&none, ServeAt::Batch, Kind::ForkJoin), "");
    }
}
