//! The serial program: the same recursion with a serial merge.

use super::{Config, GRAIN, merge_leaf, sort_leaf};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(|data, buffer| sort(data, buffer, false))
}

fn sort(data: &mut [u64], buffer: &mut [u64], into_buffer: bool) {
    if data.len() <= GRAIN {
        return sort_leaf(data, buffer, into_buffer);
    }
    let middle = data.len() / 2;
    let (data_low, data_high) = data.split_at_mut(middle);
    let (buffer_low, buffer_high) = buffer.split_at_mut(middle);
    sort(data_low, buffer_low, !into_buffer);
    sort(data_high, buffer_high, !into_buffer);
    if into_buffer {
        merge_leaf(data_low, data_high, buffer);
    } else {
        merge_leaf(buffer_low, buffer_high, data);
    }
}
