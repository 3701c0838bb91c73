//! The work of a scene: what a request computes, and what the batch does. Which thread does it is the contender's.
//!
//! The same amount for all contenders, and each request's result is verified by the count of its leaves.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use urgency_measure::frame;

/// Units (some 1 us each) of a leaf of a request.
const LEAF: u64 = 50;
/// Units of a leaf of the batch.
const BATCH_LEAF: u64 = 1000;
/// Leaves of a round of the batch.
pub const BATCH: Range<u64> = 0..256;
/// Units for which a request has the lock.
const HELD: u64 = 20;
/// Units for which a leaf of the batch has the lock.
const BATCH_HELD: u64 = 200;

static UNITS: AtomicU64 = AtomicU64::new(0);

/// What a request computes: so many units, forked into leaves.
pub fn amount(number: u64, (least, most): (f64, f64)) -> u64 {
    if most == 0.0 {
        return 0;
    }
    // SplitMix64's last steps: numbers in a row have shares that look independent.
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let share = (mixed >> 11) as f64 / (1u64 << 53) as f64;
    (least * (most / least).powf(share)) as u64
}

/// Both halves, in whole leaves, of what is more than one leaf.
pub fn halves(units: u64) -> Option<(u64, u64)> {
    let leaves = units.div_ceil(LEAF);
    let left = leaves / 2 * LEAF;
    (leaves > 1).then_some((left, units - left))
}

/// One leaf of a request, or all of it serially; returns what was computed.
pub fn compute(units: u64) -> u64 {
    run(units);
    units
}

/// Both halves of what is more than one leaf of the batch.
pub fn batch_halves(leaves: &Range<u64>) -> Option<(Range<u64>, Range<u64>)> {
    let middle = leaves.start + (leaves.end - leaves.start) / 2;
    (middle > leaves.start).then_some((leaves.start..middle, middle..leaves.end))
}

/// One leaf of the batch.
pub fn batch_leaf() {
    run(BATCH_LEAF);
}

/// What a request does under the lock.
pub fn request_held() {
    run(HELD);
}

/// What a leaf of the batch does under the lock.
pub fn batch_held() {
    run(BATCH_HELD);
}

/// Units that this process has computed so far, for requests and for the batch.
pub fn units() -> u64 {
    UNITS.load(Ordering::Relaxed)
}

fn run(units: u64) {
    std::hint::black_box(frame::units(units));
    UNITS.fetch_add(units, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_between_their_limits_with_the_mean_of_a_log_uniform_distribution() {
        let all: Vec<u64> = (0..100_000).map(|n| amount(n, (200.0, 20_000.0))).collect();
        assert!(all.iter().all(|size| (200..=20_000).contains(size)));
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((mean / 4299.5 - 1.0).abs() < 0.02, "{mean}");
    }

    #[test]
    fn leaves_are_all_of_a_request_and_none_is_larger() {
        fn leaves(units: u64) -> Vec<u64> {
            match halves(units) {
                None => vec![units],
                Some((left, right)) => [leaves(left), leaves(right)].concat(),
            }
        }
        for units in [0, 20, 50, 51, 219, 20_000] {
            let all = leaves(units);
            assert_eq!(all.iter().sum::<u64>(), units);
            assert!(all.iter().all(|&leaf| leaf <= LEAF));
        }
    }
}
