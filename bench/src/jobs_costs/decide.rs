//! Decisions of a policy, without a runtime.

use std::time::Instant;
use urgency::policy::cores::{CorePolicy, Cores, Demand, Event, JobId, Task, Usage, named};
use urgency_measure::{Latencies, Sample};

/// The policies, by their names.
pub const POLICIES: [&str; 4] = ["shares", "drep", "elastic", "feedback"];

const CORES: usize = 38;
const JOBS: u64 = 40;

/// A demand of job number `id`; under *elastic* every second job is a real-time task.
fn demand(policy: &str, id: u64) -> Demand {
    let ms = 1_000_000;
    let period = (20 + id % 7 * 10) * ms;
    let task = Task {
        longest: 4 * period,
        ..Task::new(period / 3, period / 20, period)
    };
    Demand {
        weight: 1 + (id % 5) as u32,
        task: (policy == "elastic" && id.is_multiple_of(2)).then_some(task),
        ..Demand::default()
    }
}

/// One sample.
pub fn run(name: &str, rounds: u32) -> Sample {
    let mut policy = named(name, 16, 2).expect("the policy has this name");
    let mut cores = Cores::new(CORES);
    let mut random = fastrand::Rng::with_seed(16);
    let (mut starts, mut exits, mut timers) =
        (Latencies::new(), Latencies::new(), Latencies::new());
    let mut next = 0;
    let time = |cores: &mut Cores, policy: &mut dyn CorePolicy, event| {
        let before = Instant::now();
        let decided = cores.decide(policy, event).is_ok();
        let took = before.elapsed();
        assert!(decided, "the policy broke a rule");
        took
    };
    for round in 0..u64::from(rounds) + JOBS {
        cores.set_now(round * 1_000_000);
        if cores.jobs().len() as u64 == JOBS {
            let ended = cores.jobs()[random.usize(..JOBS as usize)].id();
            cores.exit(ended).expect("the job is in the table");
            exits.record(time(&mut cores, &mut *policy, Event::Exit(ended)));
        }
        next += 1;
        let id = JobId(next);
        let started = cores.start(&mut *policy, id, demand(name, next));
        started.expect("there is room for the job");
        let took = time(&mut cores, &mut *policy, Event::Start(id));
        if round < JOBS {
            continue;
        }
        starts.record(took);
        let all: Vec<_> = cores
            .jobs()
            .iter()
            .map(|job| (job.id(), job.cores()))
            .collect();
        for (id, had) in all {
            let given = had as u64 * 1_000_000;
            let usage = Usage {
                interval: 1_000_000,
                work: (given as f64 * random.f64()) as u64,
                waste: given / 4,
                ..Usage::default()
            };
            cores.measure(id, usage).expect("the job is in the table");
        }
        timers.record(time(&mut cores, &mut *policy, Event::Timer));
    }
    let sample = starts.sample("start_").with_all("exit_", &exits.sample(""));
    sample.with_all("timer_", &timers.sample(""))
}
