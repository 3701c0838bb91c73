//! The start and the removal of jobs.

use super::{Beside, Config, now};
use std::time::Duration;
use urgency::{
    jobs::{CoreSet, JobBuilder, JobHandle},
    policy::cores::Demand,
};
use urgency_measure::{Latencies, Sample, class};

/// When the root of a job began, and when it ended.
type Span = (u64, u64);

fn submit(shape: &JobBuilder) -> JobHandle<Span> {
    let job = shape.clone().spawn_fn(|| (now(), now()));
    job.expect("the set has room for a job")
}

/// Starts and removals.
#[derive(Default)]
struct Seen {
    starts: Latencies,
    removals: Latencies,
}

impl Seen {
    fn note(&mut self, submitted: u64, (began, ended): Span, answered: u64) {
        self.starts.record(Duration::from_nanos(began - submitted));
        self.removals.record(Duration::from_nanos(answered - ended));
    }

    fn sample(&self) -> Sample {
        let sample = self.starts.sample("start_");
        sample.with_all("removal_", &self.removals.sample(""))
    }
}

/// One sample: a task of one job submits others.
pub fn run(config: Config) -> Sample {
    let (set, load) = config.cores(|builder| builder.build().expect("a set of cores"));
    let shape = set.job();
    let pause = matches!(config.load, Beside::Jobs(_));
    let demand = Demand {
        weight: 100,
        ..Demand::default()
    };
    let driver = set.job().demand(demand).spawn(async move {
        let mut random = fastrand::Rng::with_seed(1);
        let mut seen = Seen::default();
        for round in 0..config.rounds + config.rounds / 10 {
            if pause {
                let pause = Duration::from_millis(1).mul_f64(2.0 * random.f64());
                urgency::time::sleep(pause).await;
            }
            let submitted = now();
            let span = submit(&shape).await.expect("it is not cancelled");
            let answered = now();
            if round >= config.rounds / 10 {
                seen.note(submitted, span, answered);
            }
        }
        seen.sample()
    });
    let sample = driver.expect("the set is empty").get();
    let sample = sample.expect("the driver does not panic");
    sample.with("load_share", load.share())
}

/// One sample: a plain thread submits jobs, each a while after the one before.
pub fn run_waking(rounds: u32) -> Sample {
    class::sharpen_timers();
    let set = CoreSet::builder().cores(1).build().expect("a set of cores");
    let shape = set.job();
    let mut seen = Seen::default();
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(1));
        let submitted = now();
        let span = submit(&shape).get().expect("it is not cancelled");
        seen.note(submitted, span, now());
    }
    seen.sample()
}
