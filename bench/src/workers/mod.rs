//! More workers than processors: what each further worker costs a program that does not need it.
//!
//! Three programs, with two levels where there are levels: 16 tasks that spawn and await 20,000 tasks each, 64 tasks
//! that yield 10,000 times each, and fib(32) by `join`, a fork a call. Each runs with 1 to 256 workers, beside a peer
//! with as many threads: Tokio, whose time ours may not exceed, or rayon, of whose time a fork may take half.
//!
//! With eight workers and more there is a second bar: the ratio to the peer is at most the ratio with two workers. What
//! a runtime is worth there, it is worth with more workers. For that, both run with two workers in each round as well
//! (`ours-2`, `tokio-2`, `rayon-2`).

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
        sample.with_each("operation_ns", operations)
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

/// The number of workers with whose ratio to the peer the others are compared.
const FEW: usize = 2;

/// What runs.
struct Program {
    name: &'static str,
    about: &'static str,
    /// The peer, and the same with [`FEW`] workers.
    peer: [&'static str; 2],
    #[cfg(feature = "ours")]
    ours: fn(Config) -> Sample,
    theirs: fn(Config) -> Sample,
    /// At most this times the peer's time.
    bar: Bar,
}

fn programs() -> [Program; 3] {
    let at_most = |times, peers| Bar::times_at_most("ours", "operation_ns", times, peers);
    [
        Program {
            name: "spawn",
            about: "16 tasks that spawn and await 20,000 each",
            peer: ["tokio", "tokio-2"],
            #[cfg(feature = "ours")]
            ours: Config::spawning::<Ours>,
            theirs: Config::spawning::<OnTokio>,
            bar: at_most(1.0, &["tokio"]),
        },
        Program {
            name: "yield",
            about: "64 tasks that yield 10,000 times each",
            peer: ["tokio", "tokio-2"],
            #[cfg(feature = "ours")]
            ours: Config::yielding::<Ours>,
            theirs: Config::yielding::<OnTokio>,
            bar: at_most(1.0, &["tokio"]),
        },
        Program {
            name: "fib",
            about: "fib(32) by join",
            peer: ["rayon", "rayon-2"],
            #[cfg(feature = "ours")]
            ours: ours::fib,
            theirs: rayon::fib,
            bar: at_most(0.5, &["rayon"]),
        },
    ]
}

/// The experiments: three for each number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let each = |workers| programs().map(|program| experiment(scale, workers, program));
    WORKERS.into_iter().flat_map(each).collect()
}

fn experiment(scale: Scale, workers: usize, program: Program) -> Experiment {
    let (many, few) = (Config::new(scale, workers), Config::new(scale, FEW));
    let Program { name, about, .. } = program;
    let [peer, peer_of_few] = program.peer;
    let experiment = Experiment::new(
        format!("workers-{workers}-{name}"),
        format!("{about}, {workers} worker(s)"),
    )
    .table(peer, &["operation_ns", "cpu_ns", "peak_rss_bytes"])
    .contender(peer, move || (program.theirs)(many))
    .bar(program.bar);
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || (program.ours)(many));
    if workers <= FEW {
        return experiment;
    }
    let as_few = ["ours-2", peer_of_few];
    let bar = Bar::ratio_at_most("ours", "operation_ns", peer, 1.0, as_few);
    let experiment = experiment
        .contender(peer_of_few, move || (program.theirs)(few))
        .bar(bar);
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours-2", move || (program.ours)(few));
    experiment
}
