//! Option pricing by binomial lattices (dissertation, 5.4): an American call per item, backward induction
//! over its time steps, a task per step. One option in 200 has 2000 steps, the others 20. (The source's heavy
//! ones have 5000, the text's 2000.)

use super::{Executor, Flow, Way, flow_experiment};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use urgency_measure::{Experiment, Scale};

const START: f64 = 100.0;
const STRIKE: f64 = 110.0;
const VOLATILITY: f64 = 0.02;
const RATE: f64 = 0.01;
const YEARS: f64 = 1.0;
const STEPS: usize = 20;
const HEAVY_STEPS: usize = 2000;
/// One option in so many is heavy.
const HEAVY_EVERY: usize = 200;

/// The experiment.
pub fn experiment(scale: Scale, workers: usize) -> Experiment {
    let options = scale.pick(30_000, 400);
    flow_experiment(
        "pricer",
        "options by lattices, a task per time step, one in 200 with 100 times the steps",
        workers,
        move || Pricer {
            options,
            cents: AtomicU64::new(0),
        },
    )
}

struct Pricer {
    options: usize,
    /// The sum of the prices, each rounded to a ten-thousandth.
    cents: AtomicU64,
}

/// An option on its way back from its last step: the values at the nodes of the step that was computed.
struct Lattice {
    values: Vec<f64>,
    up: f64,
    chance: f64,
    discount: f64,
}

impl Lattice {
    fn new(steps: usize) -> Self {
        let step = YEARS / steps as f64;
        let up = (VOLATILITY * step.sqrt()).exp();
        let growth = (RATE * step).exp();
        let at = |node: usize| START * up.powf(2.0 * node as f64 - steps as f64);
        Lattice {
            values: (0..=steps)
                .map(|node| (at(node) - STRIKE).max(0.0))
                .collect(),
            up,
            chance: (growth - up.recip()) / (up - up.recip()),
            discount: growth.recip(),
        }
    }

    /// One time step back. Whether it was the first one, and the price is known.
    fn step(&mut self) -> bool {
        let steps = self.values.len() - 2;
        let mut price = START * self.up.powf(-(steps as f64));
        for node in 0..=steps {
            let later =
                self.chance * self.values[node + 1] + (1.0 - self.chance) * self.values[node];
            self.values[node] = (self.discount * later).max(price - STRIKE);
            price *= self.up * self.up;
        }
        self.values.truncate(steps + 1);
        steps == 0
    }

    fn cents(&self) -> u64 {
        (self.values[0] * 10_000.0).round() as u64
    }
}

fn steps_of(index: usize) -> usize {
    if index.is_multiple_of(HEAVY_EVERY) {
        HEAVY_STEPS
    } else {
        STEPS
    }
}

impl Pricer {
    fn step<E: Executor>(self: Arc<Self>, executor: &E, mut lattice: Box<Lattice>, way: Way) {
        if lattice.step() {
            self.cents.fetch_add(lattice.cents(), Ordering::Relaxed);
            return way.ledger.finish(way.index);
        }
        executor.spawn(move |executor| self.step(executor, lattice, way));
    }
}

impl Flow for Pricer {
    type Item = usize;

    fn items(&self) -> usize {
        self.options
    }

    fn feeders(&self) -> usize {
        1
    }

    fn make(&self, index: usize) -> usize {
        steps_of(index)
    }

    fn enter<E: Executor>(self: Arc<Self>, executor: &E, steps: usize, way: Way) {
        self.step(executor, Box::new(Lattice::new(steps)), way);
    }

    fn verify(&self) {
        let price = |steps| {
            let mut lattice = Lattice::new(steps);
            while !lattice.step() {}
            lattice.cents()
        };
        let (light, heavy) = (price(STEPS), price(HEAVY_STEPS));
        let heavies = self.options.div_ceil(HEAVY_EVERY);
        let expected = heavy * heavies as u64 + light * (self.options - heavies) as u64;
        assert_eq!(self.cents.load(Ordering::Relaxed), expected, "wrong prices");
    }
}
