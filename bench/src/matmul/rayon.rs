//! `rayon::join` over the four products of each half.

use super::{BLOCK, Config, multiply_block, quarters, quarters_mut};
use crate::engines;
use rayon::join;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    engines::rayon::pool(config.workers).install(|| config.measure(multiply))
}

fn multiply(c: &mut [f64], a: &[f64], b: &[f64]) {
    if c.len() == BLOCK * BLOCK {
        return multiply_block(c, a, b);
    }
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
    let [c0, c1, c2, c3] = quarters_mut(c);
    join(
        || join(|| multiply(c0, a0, b0), || multiply(c1, a0, b1)),
        || join(|| multiply(c2, a2, b0), || multiply(c3, a2, b1)),
    );
    let [c0, c1, c2, c3] = quarters_mut(c);
    join(
        || join(|| multiply(c0, a1, b2), || multiply(c1, a1, b3)),
        || join(|| multiply(c2, a3, b2), || multiply(c3, a3, b3)),
    );
}
