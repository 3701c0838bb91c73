//! `Scope::join_with_heartbeat_every::<1>` over the four products of each half.

use super::{BLOCK, Config, multiply_block, quarters, quarters_mut};
use crate::engines;
use chili::Scope;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|c, a, b| multiply(&mut scope, c, a, b))
}

fn join(
    scope: &mut Scope<'_>,
    a: impl FnOnce(&mut Scope<'_>) + Send,
    b: impl FnOnce(&mut Scope<'_>) + Send,
) {
    scope.join_with_heartbeat_every::<1, _, _, _, _>(a, b);
}

fn multiply(scope: &mut Scope<'_>, c: &mut [f64], a: &[f64], b: &[f64]) {
    if c.len() == BLOCK * BLOCK {
        return multiply_block(c, a, b);
    }
    let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (quarters(a), quarters(b));
    let [c0, c1, c2, c3] = quarters_mut(c);
    join(
        scope,
        |s| join(s, |s| multiply(s, c0, a0, b0), |s| multiply(s, c1, a0, b1)),
        |s| join(s, |s| multiply(s, c2, a2, b0), |s| multiply(s, c3, a2, b1)),
    );
    let [c0, c1, c2, c3] = quarters_mut(c);
    join(
        scope,
        |s| join(s, |s| multiply(s, c0, a1, b2), |s| multiply(s, c1, a1, b3)),
        |s| join(s, |s| multiply(s, c2, a3, b2), |s| multiply(s, c3, a3, b3)),
    );
}
