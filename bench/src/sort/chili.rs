//! `Scope::join_with_heartbeat_every::<1>` over the halves of the sort and of each merge.

use super::{Config, GRAIN, merge_leaf, sort_leaf, split_merge};
use crate::engines;
use chili::Scope;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|data, buffer| sort(&mut scope, data, buffer, false))
}

fn sort(scope: &mut Scope<'_>, data: &mut [u64], buffer: &mut [u64], into_buffer: bool) {
    if data.len() <= GRAIN {
        return sort_leaf(data, buffer, into_buffer);
    }
    let middle = data.len() / 2;
    let (data_low, data_high) = data.split_at_mut(middle);
    let (buffer_low, buffer_high) = buffer.split_at_mut(middle);
    scope.join_with_heartbeat_every::<1, _, _, _, _>(
        |scope| sort(scope, data_low, buffer_low, !into_buffer),
        |scope| sort(scope, data_high, buffer_high, !into_buffer),
    );
    if into_buffer {
        merge(scope, data_low, data_high, buffer);
    } else {
        merge(scope, buffer_low, buffer_high, data);
    }
}

fn merge(scope: &mut Scope<'_>, a: &[u64], b: &[u64], out: &mut [u64]) {
    if out.len() <= GRAIN {
        return merge_leaf(a, b, out);
    }
    let (low, high) = split_merge(a, b, out);
    scope.join_with_heartbeat_every::<1, _, _, _, _>(
        |scope| merge(scope, low.0, low.1, low.2),
        |scope| merge(scope, high.0, high.1, high.2),
    );
}
