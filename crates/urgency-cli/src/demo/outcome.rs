//! What a contender achieved over all its turns.

use super::{
    contender::Contender,
    messages::Account,
    turn::{Gained, Rates},
};
use urgency_measure::latencies::{Latencies, Quantile};
use urgency_measure::picture::{Colour, Series};

/// The quantiles that are shown, with their names.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// A distribution as a curve: the contender's colour, Urgency's is thick; a curve that is less important is thin.
pub fn curve(name: &str, contender: Contender, is_thin: bool, latencies: &Latencies) -> Series {
    let (colour, width) = match contender {
        Contender::Idle => (Colour::GREY, 2),
        Contender::Urgency => (Colour::BLUE, 4),
        Contender::TokioRayon => (Colour::VERMILION, 2),
        Contender::Threads => (Colour::GREEN, 2),
        Contender::TwoPools => (Colour::PURPLE, 2),
    };
    let width = if is_thin { 1 } else { width };
    Series::of_latencies(name.to_owned(), colour, width, latencies)
}

/// One contender's results.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whose they are.
    pub contender: Contender,
    /// All recorded requests.
    pub latencies: Latencies,
    /// Its compute; `None` where there is none.
    pub compute: Option<Rates>,
    /// What its runtime counted, all turns together.
    pub account: Account,
    /// Why it has no further turn.
    pub failure: Option<String>,
}

impl Outcome {
    /// No turn yet.
    pub fn new(contender: Contender) -> Self {
        Outcome {
            contender,
            latencies: Latencies::new(),
            compute: None,
            account: Account::new(),
            failure: None,
        }
    }

    /// Adds a turn.
    pub fn add(&mut self, gained: &Gained) {
        self.latencies.merge(&gained.latencies);
        if let Some(more) = gained.compute {
            let so_far = self.compute.unwrap_or_default();
            self.compute = Some(Rates {
                alone: so_far.alone.and(more.alone),
                loaded: so_far.loaded.and(more.loaded),
            });
        }
        for (name, count) in &gained.account {
            *self.account.entry(name.clone()).or_default() += count;
        }
    }

    /// The latency that this share of the requests did not exceed.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        self.latencies.quantile(q)
    }

    /// The distribution that is drawn.
    pub fn curve(&self) -> Series {
        curve(
            self.contender.title(),
            self.contender,
            false,
            &self.latencies,
        )
    }

    /// The compute's rate beside the requests over its rate alone.
    pub fn kept(&self) -> Option<f64> {
        let rates = self.compute?;
        let alone = rates.alone.per_s();
        (alone > 0.0).then(|| rates.loaded.per_s() / alone)
    }
}
