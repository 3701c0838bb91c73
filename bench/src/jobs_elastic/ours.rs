//! Two runtimes on two workers. Each releases its iterations by the period that the policy keeps for it.

use super::{CORES, Config, Ends, SECOND, SECOND_LONGEST, tree, units};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use urgency::Runtime;
use urgency::jobs::Iterations;
use urgency::policy::cores::{AtBoundary, Boundary, Demand, Elastic, Task};
use urgency_measure::Sample;

/// What the mechanism needs to move a core, at most: taken off each period.
const ALLOWANCE: Duration = Duration::from_micros(250);

/// One sample, with cores that leave at this boundary, and workers that are pinned or not.
pub fn run(config: Config, boundary: Boundary, pinned: bool) -> Sample {
    let policy = Elastic::with_allowance(ALLOWANCE.as_nanos() as u64);
    let first_work = config.period / 6;
    let second_work = SECOND * 6 / 5;
    let builder = match pinned {
        true => Runtime::builder().pin_workers(),
        false => Runtime::builder(),
    };
    let runtime = builder
        .workers(CORES)
        .core_policy(AtBoundary::new(policy, boundary))
        .demand(demand(first_work, config.period, config.period))
        .build()
        .expect("it is admitted");
    let other = Runtime::builder()
        .share_workers_with(&runtime)
        .demand(demand(second_work, SECOND, SECOND_LONGEST))
        .build()
        .expect("it is admitted");
    let (first_units, second_units) = (units(first_work), units(second_work));
    let ends = [Arc::new(Ends::default()), Arc::new(Ends::default())];
    let stop = Arc::new(AtomicBool::new(false));
    let second = other.spawn(second(second_units, ends[1].clone(), stop.clone()));
    let (rt, first_ends) = (runtime.clone(), ends[0].clone());
    let first = runtime.spawn(first(rt, config, first_units, first_work, first_ends));
    first.get().expect("it ends");
    stop.store(true, Ordering::Relaxed);
    second.get().expect("it ends");
    let (share, other_share) = (runtime.stats().share, other.stats().share);
    assert!(
        share.rejected.is_none() && !share.policy_panicked,
        "{share:?}"
    );
    ends[0]
        .sample("")
        .with_all("", &ends[1].sample("second_"))
        .with("decisions", share.decisions as f64)
        .with("late_by_runtime", (share.late + other_share.late) as f64)
}

fn demand(work: Duration, period: Duration, longest: Duration) -> Demand {
    let nanos = |time: Duration| time.as_nanos() as u64;
    // A tenth more work than measured, and the path through a tree.
    let task = Task {
        longest: nanos(longest),
        ..Task::new(nanos(work * 11 / 10), 500_000, nanos(period))
    };
    Demand {
        task: Some(task),
        ..Demand::default()
    }
}

async fn first(runtime: Runtime, config: Config, units: u32, work: Duration, ends: Arc<Ends>) {
    let mut iterations = Iterations::current();
    let mut before = false;
    for in_burst in config.bursts() {
        if in_burst != before {
            let period = config.period / if in_burst { 3 } else { 1 };
            let wanted = demand(work, period, period);
            runtime.set_demand(wanted).expect("half a core is admitted");
        }
        before = in_burst;
        iterate(&mut iterations, units, &ends).await;
    }
}

/// It learns its period from the policy.
async fn second(units: u32, ends: Arc<Ends>, stop: Arc<AtomicBool>) {
    let mut iterations = Iterations::current();
    while !stop.load(Ordering::Relaxed) {
        iterate(&mut iterations, units, &ends).await;
    }
}

async fn iterate(iterations: &mut Iterations, units: u32, ends: &Ends) {
    let iteration = iterations.next().await;
    let work = urgency::spawn_fn(move || tree(units));
    work.await.expect("it ends");
    let deadline = iteration.deadline().expect("it is a task");
    ends.ended(iteration.released(), deadline);
}
