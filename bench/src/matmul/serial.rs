//! The serial program: the same recursion.

use super::{BLOCK, Config, multiply_block, quarters, quarters_mut};
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    config.measure(multiply)
}

/// Adds the product of `a` and `b` to `c`.
pub fn multiply(c: &mut [f64], a: &[f64], b: &[f64]) {
    if c.len() == BLOCK * BLOCK {
        return multiply_block(c, a, b);
    }
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
    let [c0, c1, c2, c3] = quarters_mut(c);
    for (c, a, b) in [(&mut *c0, a0, b0), (c1, a0, b1), (c2, a2, b0), (c3, a2, b1)] {
        multiply(c, a, b);
    }
    let [c0, c1, c2, c3] = quarters_mut(c);
    for (c, a, b) in [(&mut *c0, a1, b2), (c1, a1, b3), (c2, a3, b2), (c3, a3, b3)] {
        multiply(c, a, b);
    }
}
