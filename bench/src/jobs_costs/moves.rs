//! A worker moves to a more urgent job, and back.

use super::{Beside, Config, now};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use urgency::{
    jobs::CoreSetBuilder,
    policy::cores::{
        CorePolicy, Cores, Decision, DecisionError, Demand, Event, JobId, Refusal, Shares,
    },
};
use urgency_measure::{Latencies, Sample};

/// *Shares*, and when it last decided about a job that started.
#[derive(Clone, Default)]
pub struct Stamped {
    shares: Shares,
    decided: Arc<AtomicU64>,
}

impl Stamped {
    /// When it last decided about a job that started.
    pub fn decided(&self) -> u64 {
        self.decided.load(Ordering::SeqCst)
    }

    /// A set of cores that are divided so.
    pub fn on(&self, builder: CoreSetBuilder) -> urgency::jobs::CoreSet {
        let set = builder.core_policy(self.clone()).build();
        set.expect("a set of cores")
    }
}

impl CorePolicy for Stamped {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        let decided = self.shares.decide(event, cores, decision);
        if let Event::Start(_) = event {
            self.decided.store(now(), Ordering::SeqCst);
        }
        decided
    }

    fn admit(&mut self, id: JobId, demand: &Demand, cores: &Cores) -> Result<(), Refusal> {
        self.shares.admit(id, demand, cores)
    }

    fn refuses(&self) -> bool {
        self.shares.refuses()
    }

    fn is_work_conserving(&self) -> bool {
        self.shares.is_work_conserving()
    }
}

/// What the root of the urgent job leaves behind.
#[derive(Default)]
struct Urgent {
    began: AtomicU64,
    decided: AtomicU64,
    ended: AtomicU64,
}

/// One sample.
pub fn run(config: Config) -> Sample {
    let policy = Stamped::default();
    let (set, load) = config.cores(|builder| policy.on(builder));
    let urgent = set.job();
    // The driver keeps the one worker busy. Where there are two, it has the priority of the load's jobs and a hundred
    // times their weight, so that no load can starve it. It pauses between two rounds, so that it takes little from
    // the load. What both leave has another job, which comes to a scheduling point all the time: no worker is idle.
    let is_beside = matches!(config.load, Beside::Jobs(_));
    let stop = Arc::new(AtomicU64::new(0));
    let fill = |stop: Arc<AtomicU64>| {
        move || {
            while stop.load(Ordering::Relaxed) == 0 {
                urgency::join(|| (), || ());
            }
        }
    };
    if is_beside {
        let job = set.job().priority(2).spawn_fn(fill(stop.clone()));
        job.expect("the set has room for a job").detach();
    }
    let (driver, priority) = (set.job().weight(100), if is_beside { 1 } else { 2 });
    let driver = driver.priority(priority).spawn_fn(move || {
        let mut random = fastrand::Rng::with_seed(1);
        let all = Arc::new(Urgent::default());
        let (mut moves, mut starts, mut backs) =
            (Latencies::new(), Latencies::new(), Latencies::new());
        for round in 0..config.rounds + config.rounds / 10 {
            if is_beside {
                let pause = Duration::from_millis(1).mul_f64(2.0 * random.f64());
                urgency::blocking(|| std::thread::sleep(pause));
            }
            for _ in 0..200 {
                urgency::join(|| (), || ());
            }
            all.ended.store(0, Ordering::SeqCst);
            let (theirs, policy) = (all.clone(), policy.clone());
            let submitted = now();
            let job = urgent.clone().spawn_fn(move || {
                theirs.began.store(now(), Ordering::SeqCst);
                theirs.decided.store(policy.decided(), Ordering::SeqCst);
                theirs.ended.store(now(), Ordering::SeqCst);
            });
            let job = job.expect("the set has room for a job");
            let ended = loop {
                urgency::join(|| (), || ());
                match all.ended.load(Ordering::SeqCst) {
                    0 => {}
                    ended => break ended,
                }
            };
            let back = now();
            job.get().expect("it does not panic");
            let began = all.began.load(Ordering::SeqCst);
            let decided = all.decided.load(Ordering::SeqCst);
            // A job that was decided about before it was submitted has got an idle worker.
            if round >= config.rounds / 10 && decided > submitted {
                moves.record(Duration::from_nanos(began.saturating_sub(decided)));
                starts.record(Duration::from_nanos(began - submitted));
                backs.record(Duration::from_nanos(back - ended));
            }
        }
        let sample = moves.sample("move_");
        let sample = sample.with_all("start_", &starts.sample(""));
        sample.with_all("back_", &backs.sample(""))
    });
    let sample = driver.expect("the set has room for a job").get();
    stop.store(1, Ordering::Relaxed);
    let sample = sample.expect("the driver does not panic");
    sample.with("load_share", load.share())
}
