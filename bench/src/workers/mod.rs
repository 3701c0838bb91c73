//! More workers than processors: what each further worker costs a program that does not need it.
//!
//! Three programs, with two levels where there are levels: 16 tasks that spawn and await 20,000 tasks each, 64 tasks
//! that yield 10,000 times each, and fib(32) by `join`, a fork a call. Each runs with 1 to 256 workers, beside a peer
//! with as many threads. The bar is the peer's ratio at two workers: what a runtime is worth there, it is worth with
//! more workers.

#[cfg(feature = "ours")]
mod ours;
mod rayon;

#[cfg(feature = "ours")]
use crate::engines::ours::Ours;
use crate::engines::tasks::{self, Tasks};
use crate::engines::tokio::OnTokio;
use urgency_measure::{Bar, Experiment, Sample, Scale, timing};

/// The numbers of workers.
const WORKERS: [usize; 7] = [1, 2, 8, 32, 64, 128, 256];

/// How large the programs are, and with how many workers they run.
#[derive(Clone, Copy)]
pub struct Config {
    /// Workers, or the peer's threads.
    pub workers: usize,
    /// How many tasks each of [`SPAWNERS`] spawns.
    pub spawns: u64,
    /// How often each of [`YIELDERS`] yields.
    pub yields: u64,
    /// The argument of fib.
    pub n: u32,
}

/// Tasks that spawn others.
pub const SPAWNERS: u64 = 16;

/// Tasks that yield.
pub const YIELDERS: u64 = 64;

impl Config {
    fn new(scale: Scale, workers: usize) -> Self {
        Config {
            workers,
            spawns: scale.pick(20_000, 100),
            yields: scale.pick(10_000, 100),
            n: scale.pick(32, 18),
        }
    }

    /// Times `program`, which returns how many operations it has done; the metric is the time of one.
    pub fn measure(&self, operations: u64, program: impl FnMut() -> u64) -> Sample {
        let sample = timing::repeat(3, &operations, program);
        let time = sample.get("time_ns").expect("repeat measures the time");
        sample.with("operation_ns", time / operations as f64)
    }

    /// One sample of tasks that spawn others.
    fn spawning<E: Tasks>(self) -> Sample {
        let spawns = self.spawns;
        self.of_tasks::<E, _>(SPAWNERS * spawns, || {
            tasks::sum::<E, _>(SPAWNERS, move |_| async move {
                for _ in 0..spawns {
                    E::spawn(async {}).await.expect("no task is lost");
                }
                spawns
            })
        })
    }

    /// One sample of tasks that yield.
    fn yielding<E: Tasks>(self) -> Sample {
        let yields = self.yields;
        self.of_tasks::<E, _>(YIELDERS * yields, || tasks::yielding::<E>(YIELDERS, yields))
    }

    fn of_tasks<E: Tasks, F: Future<Output = u64> + Send + 'static>(
        self,
        operations: u64,
        program: impl Fn() -> F,
    ) -> Sample {
        E::sample(self.workers, true, |runtime| {
            self.measure(operations, || E::run(runtime, program()))
        })
    }

    /// As [`Config::measure`], of fib: an operation is a fork.
    pub fn measure_fib(&self, mut fib: impl FnMut(u32) -> u64) -> Sample {
        let n = self.n;
        let forks = crate::fib::value(n + 1) - 1;
        let expected = crate::fib::value(n);
        self.measure(forks, || {
            let is_right = fib(std::hint::black_box(n)) == expected;
            if is_right { forks } else { 0 }
        })
    }
}

/// The experiments: three for each number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let each = |workers| {
        let config = Config::new(scale, workers);
        [spawn(config), yields(config), fib(config)]
    };
    WORKERS.into_iter().flat_map(each).collect()
}

fn spawn(config: Config) -> Experiment {
    let workers = config.workers;
    let experiment = Experiment::new(
        format!("workers-{workers}-spawn"),
        format!("16 tasks that spawn and await 20,000 each, {workers} worker(s)"),
    )
    .table("tokio", &["operation_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("tokio", move || config.spawning::<OnTokio>())
    .bar(Bar::times_at_most("ours", "operation_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || config.spawning::<Ours>());
    experiment
}

fn yields(config: Config) -> Experiment {
    let workers = config.workers;
    let experiment = Experiment::new(
        format!("workers-{workers}-yield"),
        format!("64 tasks that yield 10,000 times each, {workers} worker(s)"),
    )
    .table("tokio", &["operation_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("tokio", move || config.yielding::<OnTokio>())
    .bar(Bar::times_at_most("ours", "operation_ns", 1.0, &["tokio"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || config.yielding::<Ours>());
    experiment
}

fn fib(config: Config) -> Experiment {
    let workers = config.workers;
    let experiment = Experiment::new(
        format!("workers-{workers}-fib"),
        format!("fib(32) by join, {workers} worker(s)"),
    )
    .table("rayon", &["operation_ns", "cpu_ns", "peak_rss_bytes"])
    .contender("rayon", move || rayon::fib(config))
    .bar(Bar::times_at_most("ours", "operation_ns", 0.5, &["rayon"]));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::fib(config));
    experiment
}
