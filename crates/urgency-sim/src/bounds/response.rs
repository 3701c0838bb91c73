//! The three theorems about the response of a thread.

use super::{Check, cone::Cone, not_greedy};
use crate::{
    dag::{Dag, Thread},
    machine::Machine,
    report::Report,
};
use urgency_policy::level::{Criterion, Schedule};

/// At most so many threads, spread evenly over all: the bounds of a thread take time in proportion to the DAG.
pub fn sample(dag: &Dag, most: usize) -> Vec<Thread> {
    let threads = dag.threads().len();
    let count = threads.min(most);
    (0..count)
        .map(|number| (number * threads / count) as Thread)
        .collect()
}

/// The check of the thread that comes nearest to its bound, of those whose premises hold if there are any.
pub(super) fn worst(threads: &[Thread], check: impl Fn(Thread) -> Option<Check>) -> Option<Check> {
    let checks = threads.iter().filter_map(|&thread| check(thread));
    checks.max_by(|a, b| {
        let key = |c: &Check| (c.broken.is_empty(), c.ratio());
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })
}

/// The longest time that anything below `level` runs without a scheduling point.
fn longest_below(dag: &Dag, machine: &Machine, level: u8) -> u64 {
    let below = (0..dag.len() as u32).filter(|&v| dag.level(v) > level);
    let longest = below.map(|v| dag.work(v)).max().unwrap_or(0);
    machine.check_in.map_or(longest, |most| longest.min(most))
}

fn broken(dag: &Dag, machine: &Machine, report: &Report, cone: &Cone, level: u8) -> Vec<String> {
    let mut broken = not_greedy(report);
    if let Some(vertex) = cone.inversion {
        broken.push(format!(
            "ill-formed: the thread of level {level} waits for vertex {vertex} of level {}",
            dag.level(vertex)
        ));
    }
    let longest = longest_below(dag, machine, level);
    if longest > 1 {
        broken.push(format!(
            "less urgent code runs up to {longest} ns without a scheduling point"
        ));
    }
    broken
}

/// Theorem 1: under a prompt schedule of a well-formed DAG, T(a) ≤ W/P + S, where W is the work at a's level
/// or above that may run in parallel with a, and S a's span. `None` if the schedule is not prompt.
pub fn prompt_response(
    dag: &Dag,
    machine: &Machine,
    report: &Report,
    thread: Thread,
) -> Option<Check> {
    let Schedule::Prompt = machine.schedule else {
        return None;
    };
    let level = dag.threads()[thread as usize].level;
    let cone = Cone::of(dag, thread);
    Some(Check {
        name: "Theorem 1: T(a) <= W/P + S",
        measured: report.responses[thread as usize].time() as f64,
        bound: cone.down_to(level) as f64 / machine.workers as f64 + cone.span as f64,
        broken: broken(dag, machine, report, &cone, level),
    })
}

/// The mean response over runs with different seeds, and whatever is broken in the first of them.
fn expectation(
    dag: &Dag,
    machine: &Machine,
    reports: &[Report],
    thread: Thread,
) -> Option<(Criterion, f64, Cone, Vec<String>)> {
    let Schedule::FairlyPrompt(rounds) = &machine.schedule else {
        return None;
    };
    let level = dag.threads()[thread as usize].level;
    let times = reports.iter().map(|r| r.responses[thread as usize].time());
    let mean = times.sum::<u64>() as f64 / reports.len() as f64;
    let cone = Cone::of(dag, thread);
    let mut broken = broken(dag, machine, reports.first()?, &cone, level);
    if rounds.length() > 1 {
        broken.push(format!(
            "a round is {} steps, not one: the bound holds for long threads only",
            rounds.length()
        ));
    }
    Some((rounds.criterion().clone(), mean, cone, broken))
}

/// Theorem 2: under a fairly prompt schedule, for a thread that waits for its own level ρ only, E\[T(a)\] <
/// (W + S (P-1)) / (F(ρ) P) + 1, with W the parallel work at ρ alone. The mean is over `reports`, of runs
/// with different seeds. `None` if the schedule is not fairly prompt, or the level has no share.
pub fn fair_response_alone(
    dag: &Dag,
    machine: &Machine,
    reports: &[Report],
    thread: Thread,
) -> Option<Check> {
    let (criterion, mean, cone, mut broken) = expectation(dag, machine, reports, thread)?;
    let level = dag.threads()[thread as usize].level;
    let share = criterion.share(level);
    if share == 0.0 {
        return None;
    }
    if let Some(vertex) = cone.foreign {
        broken.push(format!(
            "the thread waits for vertex {vertex} of another level"
        ));
    }
    let p = machine.workers as f64;
    let work = cone.competitors[usize::from(level)] as f64;
    Some(Check {
        name: "Theorem 2: E[T(a)] < (W + S (P-1)) / (F P) + 1",
        measured: mean,
        bound: (work + cone.span as f64 * (p - 1.0)) / (share * p) + 1.0,
        broken,
    })
}

/// Theorem 3: under a fairly prompt schedule E\[T(a)\] < (W/P + S) / F + 1, with W and F of a's level and all
/// above. `None` if the schedule is not fairly prompt, or these levels have no share.
pub fn fair_response(
    dag: &Dag,
    machine: &Machine,
    reports: &[Report],
    thread: Thread,
) -> Option<Check> {
    let (criterion, mean, cone, broken) = expectation(dag, machine, reports, thread)?;
    let level = dag.threads()[thread as usize].level;
    let share = criterion.share_down_to(level);
    if share == 0.0 {
        return None;
    }
    let work = cone.down_to(level) as f64 / machine.workers as f64;
    Some(Check {
        name: "Theorem 3: E[T(a)] < (W/P + S) / F + 1",
        measured: mean,
        bound: (work + cone.span as f64) / share + 1.0,
        broken,
    })
}
