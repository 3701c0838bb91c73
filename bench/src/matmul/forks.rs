//! `join` of Urgency and of rayon over the four products of each half.

use super::{BLOCK, Config, multiply_block, quarters, quarters_mut};
use crate::engines::Join;
use urgency_measure::Sample;

/// One sample.
pub fn run(engine: impl Join, config: Config) -> Sample {
    let multiply = |c: &mut [f64], a: &[f64], b: &[f64]| multiply(engine, c, a, b);
    engine.run(config.workers, || config.measure(multiply))
}

fn multiply(engine: impl Join, c: &mut [f64], a: &[f64], b: &[f64]) {
    if c.len() == BLOCK * BLOCK {
        return multiply_block(c, a, b);
    }
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
    let [c0, c1, c2, c3] = quarters_mut(c);
    engine.join(
        || {
            engine.join(
                || multiply(engine, c0, a0, b0),
                || multiply(engine, c1, a0, b1),
            )
        },
        || {
            engine.join(
                || multiply(engine, c2, a2, b0),
                || multiply(engine, c3, a2, b1),
            )
        },
    );
    let [c0, c1, c2, c3] = quarters_mut(c);
    engine.join(
        || {
            engine.join(
                || multiply(engine, c0, a1, b2),
                || multiply(engine, c1, a1, b3),
            )
        },
        || {
            engine.join(
                || multiply(engine, c2, a3, b2),
                || multiply(engine, c3, a3, b3),
            )
        },
    );
}
