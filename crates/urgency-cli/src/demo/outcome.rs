//! What a contender achieved over all its turns.

use super::{
    contender::Contender,
    latencies::{Latencies, Quantile},
    messages::Account,
    turn::{Gained, Rates},
};

/// The quantiles that are shown, with their names.
pub const QUANTILES: [(&str, f64); 4] =
    [("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// A distribution as it is drawn.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// Decides the colour.
    pub contender: Contender,
    /// For the legend.
    pub name: String,
    /// Whether it is less important than the contender's other one.
    pub is_thin: bool,
    /// What is drawn.
    pub latencies: &'a Latencies,
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
    pub fn curve(&self) -> Curve<'_> {
        Curve {
            contender: self.contender,
            name: self.contender.title().to_owned(),
            is_thin: false,
            latencies: &self.latencies,
        }
    }

    /// The compute's rate beside the requests over its rate alone.
    pub fn kept(&self) -> Option<f64> {
        let rates = self.compute?;
        let alone = rates.alone.per_s();
        (alone > 0.0).then(|| rates.loaded.per_s() / alone)
    }
}
