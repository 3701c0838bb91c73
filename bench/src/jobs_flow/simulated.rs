//! The simulator, beside what it simulates.

use super::{CORES, Config};
use urgency_measure::Sample;
use urgency_policy::cores::named;
use urgency_sim::jobs::run as simulate;

/// The contenders, with the names of their core policies.
pub static POLICIES: [(&str, &str); 5] = [
    ("simulated-shares", "shares"),
    ("simulated-drep", "drep"),
    ("simulated-steal-boundary", "steal-boundary"),
    ("simulated-static", "static"),
    ("simulated-none", "none"),
];

/// One sample, of this core policy.
pub fn run(config: Config, policy: &str) -> Sample {
    let workload = config.workload();
    let mut policy = named(policy, 1, CORES).expect("it is in the table");
    let report = simulate(&workload, &Config::machine(), &mut policy);
    let flow = report.expect("no policy breaks a rule").flow;
    Sample::new()
        .with("mean_ns", flow.mean)
        .with("p50_ns", flow.p50 as f64)
        .with("p95_ns", flow.p95 as f64)
        .with("p99_ns", flow.p99 as f64)
}
