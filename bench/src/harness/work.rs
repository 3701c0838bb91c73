//! Work that is compared: an amount of it, the same for all contenders.
//!
//! A *unit* is a chain of arithmetic that takes about a microsecond on the machine on which Urgency is developed.
//! No compiler shortens it, and its value can be verified. `urgency demo` computes the same.

use super::machine::now_ns;
use std::hint::black_box;
pub use urgency_load::frame::units;

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
