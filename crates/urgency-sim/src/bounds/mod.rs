//! What the papers promise, checked.
//!
//! A [`Check`] has the measured value, the bound, and the premises of the theorem that this run does not
//! meet. A bound whose premises hold must hold; one whose premises fail may fail, and the list says why.
//!
//! | check | statement | source |
//! |---|---|---|
//! | [`brent`] | T_P ≤ T1/P + T∞ for a greedy schedule | Brent; fairness paper, section 2 |
//! | [`cilk_time`] | T_P = O(T1/P + T∞ lg P) | latency-hiding paper, Theorem 4.1 |
//! | [`steal_attempts`] | O(T1 + P lg P T∞) | the same |
//! | [`deviations`] | O((P lg P + m) T∞), m futures in parallel | the same |
//! | [`muller_acar`] | T_P = O(T1/P + T∞ U (1 + lg U)), U latencies at a time: what that paper improves on | the same |
//! | [`steals_of_active`] | a job with x active workers needs O(x) looks at victims for each unit of span | AMCilk paper, section III-E |
//! | [`prompt_response`] | T(a) ≤ W/P + S for a thread a under a prompt schedule | fairness paper, Theorem 1 |
//! | [`fair_response_alone`] | E\[T(a)\] < (W + S (P-1)) / (F(ρ) P) + 1 | Theorem 2 |
//! | [`fair_response`] | E\[T(a)\] < (W/P + S) / F(not below ρ) + 1 | Theorem 3 |
//! | [`feasibility`] | Σ 1/stretch ≤ 1 while all levels have work ([`contested_stretches`]) | section 3.1 |
//!
//! The O(..) bounds name no constant. They are checked with [`CONSTANT`]; the ratio tells the real one.
//!
//! The theorems are about unit steps. A vertex of w nanoseconds is w steps of one nanosecond without a
//! scheduling point in between; for Brent and the spans that makes no difference, for promptness it does: it
//! is then a broken premise, unless [`Machine::check_in`] is 1.

mod cone;
mod response;

pub use response::{fair_response, fair_response_alone, prompt_response, sample};

use crate::{
    dag::{Dag, Thread},
    jobs::{Crew, Leftovers, Stolen},
    machine::Machine,
    report::Report,
};
use serde::Serialize;
use urgency_policy::pool::Layout;

/// The constant with which O(..) bounds are checked.
pub const CONSTANT: f64 = 4.0;

/// A bound and how a run compares with it. The text at the top of the file says more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Which bound.
    pub name: &'static str,
    /// What was measured: nanoseconds or a count.
    pub measured: f64,
    /// The bound, in the same unit.
    pub bound: f64,
    /// Which premises this run does not meet.
    pub broken: Vec<String>,
}

impl Check {
    /// Measured in parts of the bound.
    pub fn ratio(&self) -> f64 {
        self.measured / self.bound
    }

    /// Whether the bound holds, whatever its premises.
    pub fn holds(&self) -> bool {
        self.measured <= self.bound * (1.0 + 1e-9)
    }

    /// Whether it holds or one of its premises does not: nothing contradicts the theorem.
    pub fn is_consistent(&self) -> bool {
        self.holds() || !self.broken.is_empty()
    }
}

fn lg(workers: usize) -> f64 {
    (workers as f64).log2().max(1.0)
}

/// What keeps this run from being greedy and free of cost.
pub(crate) fn not_greedy(report: &Report) -> Vec<String> {
    let mut broken = Vec::new();
    if report.idle_while_ready > 0 {
        broken.push(format!(
            "not greedy: workers were idle for {} ns while something was ready",
            report.idle_while_ready
        ));
    }
    let costs = report.scheduling.saturating_add(report.searching);
    let costs = costs.saturating_add(report.waking);
    if costs > 0 {
        broken.push(format!("scheduling took {costs} ns of the workers' time"));
    }
    broken
}

/// Brent: a greedy schedule takes at most T1/P + T∞.
pub fn brent(dag: &Dag, machine: &Machine, report: &Report) -> Check {
    Check {
        name: "Brent: T_P <= T1/P + Tinf",
        measured: report.makespan as f64,
        bound: dag.total_work() as f64 / machine.workers as f64 + dag.span() as f64,
        broken: not_greedy(report),
    }
}

/// Proactive work stealing takes O(T1/P + T∞ lg P), however many I/O operations are pending.
pub fn cilk_time(dag: &Dag, machine: &Machine, report: &Report) -> Check {
    let workers = machine.workers;
    let time = dag.total_work() as f64 / workers as f64 + dag.span() as f64 * lg(workers);
    Check {
        name: "Cilk-L: T_P = O(T1/P + Tinf lg P)",
        measured: report.makespan as f64,
        bound: CONSTANT * time,
        broken: not_proactive(machine),
    }
}

/// It looks at other workers O(T1 + P lg P T∞) times.
pub fn steal_attempts(dag: &Dag, machine: &Machine, report: &Report) -> Check {
    let p = machine.workers as f64;
    let attempts = dag.total_work() as f64 + p * lg(machine.workers) * dag.span() as f64;
    Check {
        name: "Cilk-L: steal attempts = O(T1 + P lg P Tinf)",
        measured: report.steal_attempts as f64,
        bound: CONSTANT * attempts,
        broken: not_proactive(machine),
    }
}

/// It deviates from the serial execution O((P lg P + m) T∞) times.
pub fn deviations(dag: &Dag, machine: &Machine, report: &Report) -> Check {
    let p = machine.workers as f64;
    let futures = (dag.joins() + dag.latencies()) as f64;
    Check {
        name: "Cilk-L: deviations = O((P lg P + m) Tinf)",
        measured: report.deviations as f64,
        bound: CONSTANT * (p * lg(machine.workers) + futures) * dag.span() as f64,
        broken: not_proactive(machine),
    }
}

/// The bound that [`cilk_time`] improves on: it grows with the number U of latencies that are under way at a time.
/// Here U is the most that were in this run.
pub fn muller_acar(dag: &Dag, machine: &Machine, report: &Report) -> Check {
    let width = report.most_pending.max(1) as f64;
    let work = dag.total_work() as f64 / machine.workers as f64;
    Check {
        name: "Muller-Acar: T_P = O(T1/P + Tinf U (1 + lg U))",
        measured: report.makespan as f64,
        bound: CONSTANT * (work + dag.span() as f64 * width * (1.0 + width.log2())),
        broken: not_proactive(machine),
    }
}

/// A job with x active workers looks at victims O(x) times for each unit of span, however many workers sleep: what
/// they left is continued first. The unit is the time of a look.
pub fn steals_of_active(stolen: &Stolen, crew: &Crew, look: u64) -> Check {
    let broken = match crew.leftovers {
        Leftovers::MuggedFirst => Vec::new(),
        Leftovers::AmongAll => vec!["thieves look at sleeping workers".to_owned()],
    };
    Check {
        name: "AMCilk: looks = O(x Tinf)",
        measured: stolen.attempts as f64,
        bound: CONSTANT * crew.active as f64 * (stolen.span as f64 / look.max(1) as f64),
        broken,
    }
}

fn not_proactive(machine: &Machine) -> Vec<String> {
    match machine.pool.layout() {
        Layout::Deques => Vec::new(),
        _ => vec!["the pool policy is not randomised proactive stealing".to_owned()],
    }
}

/// While all levels have work, the reciprocals of their stretches sum to at most 1: no level is served faster without
/// another being served slower. `stretches` are measured, by rank.
pub fn feasibility(stretches: &[f64]) -> Check {
    Check {
        name: "feasibility: sum of 1/stretch <= 1",
        measured: stretches.iter().map(|stretch| 1.0 / stretch).sum(),
        bound: 1.0,
        broken: Vec::new(),
    }
}

/// How much the levels were stretched while all of them had work left, by rank: the time of all workers until
/// then, in parts of what a level ran in it. Infinite for one that ran nothing.
pub fn contested_stretches(report: &Report) -> Vec<f64> {
    let all = report.contested as f64 * report.workers as f64;
    let levels = report.levels.iter();
    levels.map(|level| all / level.contested as f64).collect()
}

/// The bounds on expectations, over runs with different seeds, for the sampled thread that comes nearest.
pub fn expectations(dag: &Dag, machine: &Machine, reports: &[Report]) -> Vec<Check> {
    let threads = sample(dag, 8);
    let alone = |thread| fair_response_alone(dag, machine, reports, thread);
    let general = |thread| fair_response(dag, machine, reports, thread);
    let worst = [
        response::worst(&threads, alone),
        response::worst(&threads, general),
    ];
    worst.into_iter().flatten().collect()
}

/// Theorem 1 for the sampled thread that comes nearest to its bound, among the threads that are asked for. `None` if
/// the schedule is not prompt.
pub fn prompt_responses(
    dag: &Dag,
    machine: &Machine,
    report: &Report,
    which: impl Fn(Thread) -> bool,
) -> Option<Check> {
    let mut threads: Vec<Thread> = (0..dag.threads().len() as Thread).collect();
    threads.retain(|&thread| which(thread));
    let most = threads.len().div_ceil(8).max(1);
    let sampled: Vec<Thread> = threads.into_iter().step_by(most).collect();
    response::worst(&sampled, |thread| {
        prompt_response(dag, machine, report, thread)
    })
}

/// All checks that make sense for a schedule, of the first run; checks of expectations are of all runs (with different
/// seeds). Checks of responses are for the sampled threads.
pub fn all(dag: &Dag, machine: &Machine, reports: &[Report]) -> Vec<Check> {
    let Some(report) = reports.first() else {
        return Vec::new();
    };
    let mut checks = vec![
        brent(dag, machine, report),
        cilk_time(dag, machine, report),
        steal_attempts(dag, machine, report),
        deviations(dag, machine, report),
        feasibility(&contested_stretches(report)),
    ];
    if report.most_pending > 0 {
        checks.push(muller_acar(dag, machine, report));
    }
    checks.extend(prompt_responses(dag, machine, report, |_| true));
    checks.extend(expectations(dag, machine, reports));
    checks
}
