//! The rounds of an experiment: in each, every contender gives one sample.
//!
//! The order is drawn once per experiment (from `--seed`, which is the time unless it is given, and the
//! experiment's name); [`in_round`] says how it changes from round to round.

use super::one::{self, Taken};
use super::options::Options;
use super::{Experiment, sliced};
use crate::rounds::in_round;
use crate::sample::Sample;
use crate::slices::Pool;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{IsTerminal as _, Write as _};

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

/// All that was measured of an experiment.
#[derive(Default)]
pub struct Measured {
    /// Its samples.
    pub rows: Vec<Row>,
    /// For contenders in slices: what their unspoilt events of all rounds say together.
    pub pooled: BTreeMap<&'static str, Sample>,
}

/// Runs all rounds of an experiment.
pub fn run(experiment: &Experiment, options: &Options) -> Measured {
    let mut order: Vec<&'static str> = experiment
        .contenders()
        .iter()
        .map(|contender| contender.name)
        .filter(|name| options.admits_contender(name))
        .collect();
    let mut seed = DefaultHasher::new();
    (options.seed, experiment.name()).hash(&mut seed);
    fastrand::Rng::with_seed(seed.finish()).shuffle(&mut order);
    let mut rows = Vec::new();
    let mut pool = Pool::default();
    let slices = experiment.slices().filter(|_| !options.whole);
    for round in 0..options.rounds {
        let order = in_round(round, &order);
        if let Some(slices) = slices {
            rows.extend(sliced::round(
                experiment, slices, options, round, &order, &mut pool,
            ));
            continue;
        }
        for contender in order {
            progress(experiment.name(), round, options.rounds, contender);
            let Taken { outcome, foreign } = take(experiment.name(), contender, round, options);
            rows.push(Row {
                round,
                contender,
                outcome,
                foreign,
            });
        }
    }
    clear_progress();
    let pooled = slices
        .map(|slices| pool.samples(slices))
        .unwrap_or_default();
    Measured { rows, pooled }
}

/// A sample; again, while others use too much of the machine, and then the quietest.
fn take(experiment: &str, contender: &str, round: u32, options: &Options) -> Taken {
    let take = || one::take(experiment, contender, round, options);
    let mut best = take();
    for _ in 0..3 {
        if best.outcome.is_err() || options.quiet.is_none_or(|quiet| best.foreign <= quiet) {
            break;
        }
        let again = take();
        if again.foreign < best.foreign || again.outcome.is_err() {
            best = again;
        }
    }
    best
}

/// Says on a terminal how far it is.
pub fn progress(experiment: &str, round: u32, rounds: u32, contender: &str) {
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
