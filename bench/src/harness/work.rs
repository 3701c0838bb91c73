//! Work that is compared: an amount of it, the same for all contenders.
//!
//! A *unit* is a chain of arithmetic that takes about a microsecond on the machine on which Urgency is developed.
//! No compiler shortens it, and its value can be verified.

use super::machine::now_ns;
use std::hint::black_box;

/// Steps of one unit.
const STEPS: u32 = 780;

/// Computes so many units.
pub fn units(count: u64) -> u64 {
    let mut value = black_box(count);
    for _ in 0..count {
        for _ in 0..STEPS {
            value ^= value >> 29;
            value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        value = black_box(value);
    }
    value
}

/// How long a unit takes here and now, in nanoseconds: the best of ten times a thousand.
pub fn unit_ns() -> f64 {
    let thousand = |_| {
        let start = now_ns();
        black_box(units(1000));
        now_ns() - start
    };
    let best = (0..10).map(thousand).min();
    best.expect("ten were measured") as f64 / 1000.0
}
