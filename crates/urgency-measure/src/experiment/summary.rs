//! From samples to statements: medians per contender and metric, and a verdict per bar.
//!
//! Ratios are paired: ours over the peer of the same round, then the median. A drift of the machine between
//! rounds cancels; the ratio of two medians would keep it. Not so what events in slices say: their contenders
//! alternate within a round, so the events of all rounds are pooled, and a figure or a ratio is of these.

use super::Experiment;
use super::question::{Bar, Contender, Limit};
use super::rounds::{Measured, Row};
use crate::rounds::median;
use crate::table::quantity;
use serde::Serialize;
use std::collections::BTreeMap;

/// Median, extremes and count of one metric of one contender.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Median over the rounds, or what pooled events say.
    pub median: f64,
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// Samples.
    pub samples: usize,
}

/// Whether a bar was kept.
#[derive(Clone, Debug, Serialize)]
pub enum Verdict {
    /// Kept; the value or ratio that was compared.
    Kept(f64),
    /// Missed; the value or ratio that was compared.
    Missed(f64),
    /// Some contender has no sample of this metric.
    NotMeasured,
}

/// A bar in words with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The bar in words.
    pub bar: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// Everything that is said about an experiment.
pub struct Summary {
    /// Spreads by contender and metric.
    pub spreads: BTreeMap<&'static str, BTreeMap<&'static str, Spread>>,
    /// Of the headline metric by contender: the paired ratio to the contender to which ratios refer.
    pub ratios: BTreeMap<&'static str, f64>,
    /// Bars.
    pub judged: Vec<Judged>,
    /// Reasons of failed samples by contender.
    pub failed: Vec<(&'static str, String)>,
    /// Median share of the machine that others used.
    pub foreign: f64,
    /// How sure each p99 is that pooled events give.
    pub certainty: Vec<Certainty>,
}

/// How sure p99 of one series is, for the contender that is least sure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Certainty {
    /// The series.
    pub series: String,
    /// The fewest events of a contender.
    pub events: f64,
    /// So many make two runs of the same contender agree within 5 %.
    pub needed: f64,
}

/// The certainty of each series that has events.
fn certainty(measured: &Measured) -> Vec<Certainty> {
    let mut all: Vec<Certainty> = Vec::new();
    for sample in measured.pooled.values() {
        for (metric, needed) in sample.metrics() {
            let Some(series) = metric.strip_suffix("_needed_events") else {
                continue;
            };
            let events = sample.get(&format!("{series}_events")).unwrap_or_default();
            match all.iter_mut().find(|one| one.series == series) {
                Some(one) => {
                    one.events = one.events.min(events);
                    one.needed = one.needed.max(needed);
                }
                None => all.push(Certainty {
                    series: series.to_owned(),
                    events,
                    needed,
                }),
            }
        }
    }
    all
}

impl Summary {
    /// Sums up.
    pub fn of(experiment: &Experiment, measured: &Measured) -> Self {
        let rows = &measured.rows;
        let mut spreads = BTreeMap::new();
        for contender in experiment.contenders() {
            let metrics = experiment.columns().iter().filter_map(|&metric| {
                let spread = spread(measured, contender.name, metric)?;
                Some((metric, spread))
            });
            let metrics: BTreeMap<_, _> = metrics.collect();
            if !metrics.is_empty() {
                spreads.insert(contender.name, metrics);
            }
        }
        let headline = experiment.columns().first();
        let ratio = |contender: &Contender| {
            let ratio = ratio(measured, headline?, contender.name, experiment.reference())?;
            Some((contender.name, ratio))
        };
        let ratios = experiment.contenders().iter().filter_map(ratio).collect();
        let failed = rows
            .iter()
            .filter_map(|row| Some((row.contender, row.outcome.as_ref().err()?.clone())))
            .collect();
        let foreign = median(rows.iter().map(|row| row.foreign));
        let judged = experiment
            .bars()
            .iter()
            .map(|bar| judge(bar, measured))
            .collect();
        Summary {
            spreads,
            ratios,
            judged,
            failed,
            foreign: foreign.unwrap_or_default(),
            certainty: certainty(measured),
        }
    }

    /// Failed samples, plus bars that were not kept if these are judged.
    pub fn failures(&self, judge: bool) -> usize {
        let below = |judged: &&Judged| !matches!(judged.verdict, Verdict::Kept(_));
        let bars = self.judged.iter().filter(below).count();
        self.failed.len() + if judge { bars } else { 0 }
    }
}

/// `of` divided by `by`: of what their pooled events say, or else the median over the rounds.
fn ratio(measured: &Measured, metric: &str, of: &str, by: &str) -> Option<f64> {
    let pooled = pooled(measured, of, metric).zip(pooled(measured, by, metric));
    pooled.map_or_else(
        || paired_ratio(&measured.rows, metric, of, by),
        |(of, by)| Some(quotient(of, by)),
    )
}

fn pooled(measured: &Measured, contender: &str, metric: &str) -> Option<f64> {
    measured.pooled.get(contender)?.get(metric)
}

/// Equal values have the quotient 1, be they 0 (late frames) or not.
fn quotient(of: f64, by: f64) -> f64 {
    if of == by { 1.0 } else { of / by }
}

/// Median over the rounds of `of` divided by `by`, where both have a sample of the round.
fn paired_ratio(rows: &[Row], metric: &str, of: &str, by: &str) -> Option<f64> {
    median(paired_ratios(rows, metric, of, by).into_values())
}

/// `of` divided by `by`, by round.
fn paired_ratios(rows: &[Row], metric: &str, of: &str, by: &str) -> BTreeMap<u32, f64> {
    let by: BTreeMap<u32, f64> = values(rows, by, metric).into_iter().collect();
    let ratio = |(round, value)| Some((round, quotient(value, *by.get(&round)?)));
    values(rows, of, metric)
        .into_iter()
        .filter_map(ratio)
        .collect()
}

/// Median over the rounds of one paired ratio over another, where all four have a sample of the round.
fn ratio_of_ratios(rows: &[Row], metric: &str, of: [&str; 2], by: [&str; 2]) -> Option<f64> {
    let by = paired_ratios(rows, metric, by[0], by[1]);
    let ratios = paired_ratios(rows, metric, of[0], of[1]).into_iter();
    median(ratios.filter_map(|(round, ratio)| Some(quotient(ratio, *by.get(&round)?))))
}

fn values(rows: &[Row], contender: &str, metric: &str) -> Vec<(u32, f64)> {
    rows.iter()
        .filter(|row| row.contender == contender)
        .filter_map(|row| Some((row.round, row.outcome.as_ref().ok()?.get(metric)?)))
        .collect()
}

fn spread(measured: &Measured, contender: &str, metric: &str) -> Option<Spread> {
    let values = values(&measured.rows, contender, metric);
    let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
    let median = median(values.iter().copied())?;
    Some(Spread {
        median: pooled(measured, contender, metric).unwrap_or(median),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        samples: values.len(),
    })
}

fn judge(bar: &Bar, measured: &Measured) -> Judged {
    let own = || spread(measured, bar.contender, bar.metric).map(|own| own.median);
    let (value, kept) = match bar.limit {
        Limit::AtMost(limit) => (own(), limit),
        Limit::AtLeast(limit) => (own(), limit),
        Limit::TimesAtMost(limit, peers) => (against_best(bar, measured, peers, f64::lt), limit),
        Limit::TimesAtLeast(limit, peers) => (against_best(bar, measured, peers, f64::gt), limit),
        Limit::RatioAtMost(limit, peer, others) => {
            let of = [bar.contender, peer];
            (
                ratio_of_ratios(&measured.rows, bar.metric, of, others),
                limit,
            )
        }
    };
    let at_least = matches!(bar.limit, Limit::AtLeast(_) | Limit::TimesAtLeast(..));
    let verdict = match value {
        None => Verdict::NotMeasured,
        Some(value) if (at_least && value >= kept) || (!at_least && value <= kept) => {
            Verdict::Kept(value)
        }
        Some(value) => Verdict::Missed(value),
    };
    Judged {
        bar: in_words(bar),
        verdict,
    }
}

fn against_best(
    bar: &Bar,
    measured: &Measured,
    peers: &[&str],
    better: fn(&f64, &f64) -> bool,
) -> Option<f64> {
    let mut best: Option<(f64, &str)> = None;
    for peer in peers {
        let median = spread(measured, peer, bar.metric)?.median;
        if best.is_none_or(|(than, _)| better(&median, &than)) {
            best = Some((median, peer));
        }
    }
    ratio(measured, bar.metric, bar.contender, best?.1)
}

/// A bar as a sentence.
pub fn in_words(bar: &Bar) -> String {
    let value = |value| quantity(bar.metric, value);
    let best = |peers: &[&str]| match peers {
        [one] => (*one).to_owned(),
        several => format!("the best of {}", several.join(", ")),
    };
    let limit = match &bar.limit {
        Limit::AtMost(limit) => format!("at most {}", value(*limit)),
        Limit::AtLeast(limit) => format!("at least {}", value(*limit)),
        Limit::TimesAtMost(times, peers) => format!("at most {times:.3} x {}", best(peers)),
        Limit::TimesAtLeast(times, peers) => format!("at least {times:.3} x {}", best(peers)),
        Limit::RatioAtMost(times, peer, [other, its]) => {
            format!("over {peer} at most {times:.3} x {other} over {its}")
        }
    };
    format!("{} of {}: {limit}", bar.metric, bar.contender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn row(round: u32, contender: &'static str, value: f64) -> Row {
        let outcome = Ok(Sample::new().with("time_ns", value));
        Row {
            round,
            contender,
            outcome,
            foreign: 0.0,
        }
    }

    fn measured(rows: impl Into<Vec<Row>>) -> Measured {
        Measured {
            rows: rows.into(),
            ..Measured::default()
        }
    }

    fn verdict(bar: Bar, rows: impl Into<Vec<Row>>) -> Verdict {
        judge(&bar, &measured(rows)).verdict
    }

    #[test]
    fn what_pooled_events_say_counts_and_not_the_median_over_rounds() {
        let rows = [row(0, "ours", 1.0), row(0, "rayon", 1.0)];
        let mut measured = measured(rows);
        for (contender, time) in [("ours", 30.0), ("rayon", 20.0)] {
            let sample = Sample::new()
                .with("time_ns", time)
                .with("search_events", time)
                .with("search_needed_events", 100.0 * time);
            measured.pooled.insert(contender, sample);
        }
        let spread = spread(&measured, "ours", "time_ns").unwrap();
        assert_eq!((spread.median, spread.low), (30.0, 1.0));
        assert_eq!(ratio(&measured, "time_ns", "ours", "rayon"), Some(1.5));
        let least_sure = Certainty {
            series: "search".to_owned(),
            events: 20.0,
            needed: 3000.0,
        };
        assert_eq!(certainty(&measured), [least_sure]);
    }

    #[test]
    fn ratios_are_paired_by_round_so_that_drift_cancels() {
        let rows = [
            row(0, "ours", 10.0),
            row(0, "rayon", 20.0),
            row(1, "ours", 100.0),
            row(1, "rayon", 200.0),
            row(2, "ours", 90.0),
        ];
        assert_eq!(paired_ratio(&rows, "time_ns", "ours", "rayon"), Some(0.5));
    }

    #[test]
    fn a_bar_against_several_peers_counts_the_best_of_them() {
        let rows = || [row(0, "ours", 10.0), row(0, "a", 40.0), row(0, "b", 12.0)];
        let bar = |times| Bar::times_at_most("ours", "time_ns", times, &["a", "b"]);
        assert!(matches!(verdict(bar(0.5), rows()), Verdict::Missed(_)));
        assert!(matches!(verdict(bar(0.9), rows()), Verdict::Kept(_)));
    }

    #[test]
    fn a_ratio_that_is_compared_with_a_ratio_is_paired_by_round() {
        // In the second round the machine was ten times slower, and in the third one contender has no sample.
        let round = |round, values: [f64; 4]| {
            let names = ["ours", "tokio", "ours-2", "tokio-2"];
            [0, 1, 2, 3].map(|at| row(round, names[at], values[at]))
        };
        let mut rows: Vec<Row> = round(0, [30.0, 60.0, 8.0, 20.0]).into();
        rows.extend(round(1, [300.0, 600.0, 80.0, 200.0]));
        rows.push(row(2, "ours", 1.0));
        let bar =
            |times| Bar::ratio_at_most("ours", "time_ns", "tokio", times, ["ours-2", "tokio-2"]);
        let said = in_words(&bar(1.0));
        assert_eq!(
            said,
            "time_ns of ours: over tokio at most 1.000 x ours-2 over tokio-2"
        );
        let measured = measured(rows);
        assert!(matches!(judge(&bar(1.3), &measured).verdict, Verdict::Kept(by) if by == 1.25));
        assert!(matches!(
            judge(&bar(1.2), &measured).verdict,
            Verdict::Missed(_)
        ));
    }

    #[test]
    fn a_bar_without_samples_is_not_kept() {
        let rows = [row(0, "ours", 10.0)];
        let bar = Bar::times_at_most("ours", "time_ns", 2.0, &["rayon"]);
        assert!(matches!(verdict(bar, rows), Verdict::NotMeasured));
    }

    #[test]
    fn at_least_is_missed_below_and_kept_at_the_limit() {
        let rows = || [row(0, "ours", 10.0)];
        assert!(matches!(
            verdict(Bar::at_least("ours", "time_ns", 10.0), rows()),
            Verdict::Kept(_)
        ));
        assert!(matches!(
            verdict(Bar::at_least("ours", "time_ns", 10.5), rows()),
            Verdict::Missed(_)
        ));
    }
}
