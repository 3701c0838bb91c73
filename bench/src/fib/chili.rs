//! chili with `join_with_heartbeat_every::<1>`: as shipped it skips 63 of 64 forks once 3 are queued, and a
//! skipped fork can never be shared.

use super::Config;
use crate::engines;
use chili::Scope;
use urgency_measure::Sample;

/// One sample.
pub fn run(config: Config) -> Sample {
    let pool = engines::chili::pool(config.workers);
    let mut scope = pool.scope();
    config.measure(|n| fib(&mut scope, n))
}

fn fib(scope: &mut Scope<'_>, n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) =
        scope.join_with_heartbeat_every::<1, _, _, _, _>(|s| fib(s, n - 1), |s| fib(s, n - 2));
    a + b
}
