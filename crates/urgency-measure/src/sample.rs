//! One sample: what a child process measured, as a map from metric names to numbers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Metrics of one run of one contender.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sample {
    metrics: BTreeMap<String, f64>,
}

impl Sample {
    /// A sample without metrics.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a metric; the name's last part is the unit.
    pub fn with(mut self, metric: impl Into<String>, value: f64) -> Self {
        self.metrics.insert(metric.into(), value);
        self
    }

    /// Adds as a metric what one of `count` operations took, of the `time_ns` that is there.
    ///
    /// # Panics
    /// If no time was measured.
    pub fn with_each(self, metric: impl Into<String>, count: u64) -> Self {
        let time = self.get("time_ns").expect("the time was measured");
        self.with(metric, time / count as f64)
    }

    /// Adds all metrics of `other`, each name with `prefix` before it.
    pub fn with_all(mut self, prefix: &str, other: &Sample) -> Self {
        for (name, value) in &other.metrics {
            self.metrics.insert(format!("{prefix}{name}"), *value);
        }
        self
    }

    /// All metrics.
    pub fn metrics(&self) -> impl Iterator<Item = (&str, f64)> {
        let all = self.metrics.iter();
        all.map(|(name, value)| (name.as_str(), *value))
    }

    /// The value of a metric, if this sample has it.
    pub fn get(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).copied()
    }
}
