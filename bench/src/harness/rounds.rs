//! Interleaving: in each round every contender gives one sample, in a freshly shuffled order.

use super::child::{self, Taken};
use super::options::Options;
use super::{Experiment, Sample};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// One sample with where it belongs.
pub struct Row {
    /// Round, from 0.
    pub round: u32,
    /// Contender.
    pub contender: &'static str,
    /// What came of it.
    pub outcome: Result<Sample, String>,
    /// Share of the machine that others used meanwhile.
    pub foreign: f64,
}

/// Runs all rounds of an experiment.
pub fn run(experiment: &Experiment, options: &Options) -> Vec<Row> {
    let mut order: Vec<&'static str> = experiment
        .contenders()
        .iter()
        .map(|contender| contender.name)
        .filter(|name| options.admits_contender(name))
        .collect();
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut rows = Vec::new();
    for round in 0..options.rounds {
        random.shuffle(&mut order);
        for &contender in &order {
            progress(experiment.name(), round, options.rounds, contender);
            let Taken { outcome, foreign } = take(experiment.name(), contender, options);
            rows.push(Row {
                round,
                contender,
                outcome,
                foreign,
            });
        }
    }
    clear_progress();
    rows
}

fn take(experiment: &str, contender: &str, options: &Options) -> Taken {
    let limit = Duration::from_secs(options.timeout);
    let mut best = child::take(experiment, contender, options.quick, limit);
    for _ in 0..3 {
        if best.outcome.is_err() || options.quiet.is_none_or(|quiet| best.foreign <= quiet) {
            break;
        }
        let again = child::take(experiment, contender, options.quick, limit);
        if again.foreign < best.foreign || again.outcome.is_err() {
            best = again;
        }
    }
    best
}

fn progress(experiment: &str, round: u32, rounds: u32, contender: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // A progress display that cannot be written is no reason to stop.
        let _ = write!(
            err,
            "\r\x1b[K{experiment}: round {} of {rounds}, {contender}",
            round + 1
        );
        let _ = err.flush();
    }
}

fn clear_progress() {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K");
    }
}
