//! From samples to statements: medians per contender and metric, and a verdict per bar.
//!
//! Ratios are paired: ours over the peer of the same round, then the median. A drift of the machine between
//! rounds cancels; the ratio of two medians would keep it.

use super::experiment::{Bar, Contender, Limit};
use super::rounds::Row;
use super::{Experiment, timing};
use serde::Serialize;
use std::collections::BTreeMap;

/// Median, extremes and count of one metric of one contender.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Median over the rounds.
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
}

impl Summary {
    /// Sums up.
    pub fn of(experiment: &Experiment, rows: &[Row]) -> Self {
        let mut spreads = BTreeMap::new();
        for contender in experiment.contenders() {
            let metrics = experiment.columns().iter().filter_map(|&metric| {
                let spread = spread(&values(rows, contender.name, metric))?;
                Some((metric, spread))
            });
            let metrics: BTreeMap<_, _> = metrics.collect();
            if !metrics.is_empty() {
                spreads.insert(contender.name, metrics);
            }
        }
        let headline = experiment.columns().first();
        let ratio = |contender: &Contender| {
            let ratio = paired_ratio(rows, headline?, contender.name, experiment.reference())?;
            Some((contender.name, ratio))
        };
        let ratios = experiment.contenders().iter().filter_map(ratio).collect();
        let failed = rows
            .iter()
            .filter_map(|row| Some((row.contender, row.outcome.as_ref().err()?.clone())))
            .collect();
        let mut foreign: Vec<f64> = rows.iter().map(|row| row.foreign).collect();
        let judged = experiment
            .bars()
            .iter()
            .map(|bar| judge(bar, rows))
            .collect();
        Summary {
            spreads,
            ratios,
            judged,
            failed,
            foreign: if foreign.is_empty() {
                0.0
            } else {
                timing::median(&mut foreign)
            },
        }
    }

    /// Failed samples, plus bars that were not kept if these are judged.
    pub fn failures(&self, judge: bool) -> usize {
        let below = |judged: &&Judged| !matches!(judged.verdict, Verdict::Kept(_));
        let bars = self.judged.iter().filter(below).count();
        self.failed.len() + if judge { bars } else { 0 }
    }
}

/// Median over the rounds of `of` divided by `by`, where both have a sample of the round. Equal values have the ratio
/// 1, be they 0 (late frames) or not.
fn paired_ratio(rows: &[Row], metric: &str, of: &str, by: &str) -> Option<f64> {
    let by: BTreeMap<u32, f64> = values(rows, by, metric).into_iter().collect();
    let mut ratios: Vec<f64> = values(rows, of, metric)
        .into_iter()
        .filter_map(|(round, value)| {
            let by = *by.get(&round)?;
            Some(if value == by { 1.0 } else { value / by })
        })
        .collect();
    (!ratios.is_empty()).then(|| timing::median(&mut ratios))
}

fn values(rows: &[Row], contender: &str, metric: &str) -> Vec<(u32, f64)> {
    rows.iter()
        .filter(|row| row.contender == contender)
        .filter_map(|row| Some((row.round, row.outcome.as_ref().ok()?.get(metric)?)))
        .collect()
}

fn spread(values: &[(u32, f64)]) -> Option<Spread> {
    let mut values: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    if values.is_empty() {
        return None;
    }
    let median = timing::median(&mut values);
    Some(Spread {
        median,
        low: values[0],
        high: values[values.len() - 1],
        samples: values.len(),
    })
}

fn judge(bar: &Bar, rows: &[Row]) -> Judged {
    let own = || spread(&values(rows, bar.contender, bar.metric)).map(|own| own.median);
    let (value, kept) = match bar.limit {
        Limit::AtMost(limit) => (own(), limit),
        Limit::AtLeast(limit) => (own(), limit),
        Limit::TimesAtMost(limit, peers) => (against_best(bar, rows, peers, f64::lt), limit),
        Limit::TimesAtLeast(limit, peers) => (against_best(bar, rows, peers, f64::gt), limit),
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
    rows: &[Row],
    peers: &[&str],
    better: fn(&f64, &f64) -> bool,
) -> Option<f64> {
    let mut best: Option<(f64, &str)> = None;
    for peer in peers {
        let median = spread(&values(rows, peer, bar.metric))?.median;
        if best.is_none_or(|(than, _)| better(&median, &than)) {
            best = Some((median, peer));
        }
    }
    paired_ratio(rows, bar.metric, bar.contender, best?.1)
}

/// A bar as a sentence.
pub fn in_words(bar: &Bar) -> String {
    let value = |value| super::table::quantity(bar.metric, value);
    let best = |peers: &[&str]| match peers {
        [one] => (*one).to_owned(),
        several => format!("the best of {}", several.join(", ")),
    };
    let limit = match &bar.limit {
        Limit::AtMost(limit) => format!("at most {}", value(*limit)),
        Limit::AtLeast(limit) => format!("at least {}", value(*limit)),
        Limit::TimesAtMost(times, peers) => format!("at most {times:.3} x {}", best(peers)),
        Limit::TimesAtLeast(times, peers) => format!("at least {times:.3} x {}", best(peers)),
    };
    format!("{} of {}: {limit}", bar.metric, bar.contender)
}

#[cfg(test)]
mod tests {
    use super::super::Sample;
    use super::*;

    fn row(round: u32, contender: &'static str, value: f64) -> Row {
        let outcome = Ok(Sample::new().with("time_ns", value));
        Row {
            round,
            contender,
            outcome,
            foreign: 0.0,
        }
    }

    fn verdict(bar: Bar, rows: &[Row]) -> Verdict {
        judge(&bar, rows).verdict
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
        let rows = [row(0, "ours", 10.0), row(0, "a", 40.0), row(0, "b", 12.0)];
        let bar = |times| Bar::times_at_most("ours", "time_ns", times, &["a", "b"]);
        assert!(matches!(verdict(bar(0.5), &rows), Verdict::Missed(_)));
        assert!(matches!(verdict(bar(0.9), &rows), Verdict::Kept(_)));
    }

    #[test]
    fn a_bar_without_samples_is_not_kept() {
        let rows = [row(0, "ours", 10.0)];
        let bar = Bar::times_at_most("ours", "time_ns", 2.0, &["rayon"]);
        assert!(matches!(verdict(bar, &rows), Verdict::NotMeasured));
    }

    #[test]
    fn at_least_is_missed_below_and_kept_at_the_limit() {
        let rows = [row(0, "ours", 10.0)];
        assert!(matches!(
            verdict(Bar::at_least("ours", "time_ns", 10.0), &rows),
            Verdict::Kept(_)
        ));
        assert!(matches!(
            verdict(Bar::at_least("ours", "time_ns", 10.5), &rows),
            Verdict::Missed(_)
        ));
    }
}
