//! `join` of Urgency and of rayon over the halves of the sort and of each merge.

use super::{Config, GRAIN, merge_leaf, sort_leaf, split_merge};
use crate::engines::{Engine, Join};
use urgency_measure::Sample;

/// One sample.
pub fn run(engine: impl Engine, config: Config) -> Sample {
    let sort = |data: &mut [u64], buffer: &mut [u64]| sort(engine, data, buffer, false);
    engine.run(config.workers, || config.measure(sort))
}

/// Sorts `data`, or what is in it into `buffer`, which is as long.
pub fn sort(engine: impl Join, data: &mut [u64], buffer: &mut [u64], into_buffer: bool) {
    if data.len() <= GRAIN {
        return sort_leaf(data, buffer, into_buffer);
    }
    let middle = data.len() / 2;
    let (data_low, data_high) = data.split_at_mut(middle);
    let (buffer_low, buffer_high) = buffer.split_at_mut(middle);
    engine.join(
        || sort(engine, data_low, buffer_low, !into_buffer),
        || sort(engine, data_high, buffer_high, !into_buffer),
    );
    if into_buffer {
        merge(engine, data_low, data_high, buffer);
    } else {
        merge(engine, buffer_low, buffer_high, data);
    }
}

fn merge(engine: impl Join, a: &[u64], b: &[u64], out: &mut [u64]) {
    if out.len() <= GRAIN {
        return merge_leaf(a, b, out);
    }
    let (low, high) = split_merge(a, b, out);
    engine.join(
        || merge(engine, low.0, low.1, low.2),
        || merge(engine, high.0, high.1, high.2),
    );
}
