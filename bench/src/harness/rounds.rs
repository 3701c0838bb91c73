//! Interleaving: in each round every contender gives one sample.
//!
//! The order is drawn once per experiment (from `--seed`, which is the time unless it is given, and the
//! experiment's name). Each second round has the order of the one before it reversed, so of two contenders
//! each comes first as often as the other; and each pair of rounds begins one place further on, so that in
//! twice as many rounds as there are contenders each is at each place twice. Rejected: to draw anew in each
//! round. Few rounds of two contenders then often have the same order three times, and the median of their ratios is
//! the median of one order.

use super::child::{self, Taken};
use super::options::Options;
use super::{Experiment, Sample, slices};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
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
    let mut pool = slices::Pool::default();
    let slices = experiment.slices().filter(|_| !options.whole);
    for round in 0..options.rounds {
        let order = in_round(round, &order);
        if let Some(slices) = slices {
            rows.extend(slices::round(
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

/// The contenders in the order of a round.
pub fn in_round(round: u32, order: &[&'static str]) -> Vec<&'static str> {
    let mut order = order.to_vec();
    if !order.is_empty() {
        let first = round as usize / 2 % order.len();
        order.rotate_left(first);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

fn take(experiment: &str, contender: &str, round: u32, options: &Options) -> Taken {
    let limit = Duration::from_secs(options.timeout);
    let one = super::experiment::program(experiment, contender);
    let events = options.events_file(experiment, contender, round);
    let take = || child::take(&one, &events, options.quick, limit);
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

#[cfg(test)]
mod tests {
    use super::in_round;

    const ALL: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn place(round: u32, name: &str) -> usize {
        let order = in_round(round, &ALL);
        let place = order.iter().position(|other| *other == name);
        place.expect("every contender is in every round")
    }

    #[test]
    fn of_two_contenders_each_is_first_in_one_of_two_rounds() {
        let pairs = || ALL.iter().flat_map(|a| ALL.iter().map(move |b| (a, b)));
        for (a, b) in pairs().filter(|(a, b)| a != b) {
            for round in (0..20).step_by(2) {
                let first = |round| place(round, a) < place(round, b);
                assert_ne!(first(round), first(round + 1), "{round} {a} {b}");
            }
        }
    }

    #[test]
    fn each_contender_is_at_each_place_as_often_as_at_any_other() {
        for name in ALL {
            let mut times = [0; 5];
            (0..10).for_each(|round| times[place(round, name)] += 1);
            assert_eq!(times, [2; 5], "{name}");
        }
    }

    #[test]
    fn a_round_of_no_contenders_is_empty() {
        assert!(in_round(3, &[]).is_empty());
    }
}
