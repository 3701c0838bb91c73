//! The table of all experiments, in the order in which `--list` prints them: fork-join first, then
//! promptness, async, I/O and the mix.

use urgency_measure::{Experiment, Scale};

/// Every experiment with its contenders and bars, at the given scale.
pub fn all(scale: Scale) -> Vec<Experiment> {
    let problems: &[fn(Scale) -> Vec<Experiment>] = &[
        crate::fib::experiments,
        crate::nqueens::experiments,
        crate::uts::experiments,
        crate::matmul::experiments,
        crate::sort::experiments,
        crate::sums::experiments,
        crate::par::experiments,
        crate::scope_spawn::experiments,
        crate::start::experiments,
        crate::tick::experiments,
        crate::idle::experiments,
        crate::inject::experiments,
        crate::task_spawn::experiments,
        crate::yielding::experiments,
        crate::workers::experiments,
        crate::ping_pong::experiments,
        crate::wake::experiments,
        crate::queue::experiments,
        crate::sync::experiments,
        crate::body::experiments,
        crate::deques::experiments,
        crate::cancel_wave::experiments,
        crate::stalls::experiments,
        crate::echo::experiments,
        crate::latency_hiding::experiments,
        crate::hand_off::experiments,
        crate::mixed::experiments,
        crate::frame::experiments,
        crate::service::experiments,
        crate::scenes::experiments,
        crate::fair::experiments,
        crate::flows::experiments,
        crate::jobs_flow::experiments,
        crate::jobs_isolation::experiments,
        #[cfg(feature = "ours")]
        crate::jobs_elastic::experiments,
        #[cfg(feature = "ours")]
        crate::jobs_feedback::experiments,
        #[cfg(feature = "ours")]
        crate::coschedule::experiments,
        crate::web::experiments,
        crate::store::experiments,
        crate::editor::experiments,
        crate::stream::experiments,
        #[cfg(feature = "ours")]
        crate::jobs_costs::experiments,
    ];
    problems.iter().flat_map(|of| of(scale)).collect()
}
