//! The options, and what they stand for.

use super::{
    Own, Stop, input, jobs::JobsOptions, limits::REQUEST_GAP, of_option, scaling::ScalingOptions,
    wrong,
};
use crate::{Costs, Machine, MachineError, dag::Dag, generate, machine::MAX_WORKERS, trace};
use clap::{Args, Subcommand, value_parser};
use std::path::PathBuf;
use urgency_policy::{
    level::{
        Adaptive, AdaptiveError, Criterion, FixedShares, Otherwise, Parameters, Rounds, Schedule,
        WinnerTakeAll,
    },
    pool::AnyOrder,
};

/// A vertex takes some 100 bytes, and a shape has up to twelve vertices for each of its size.
const MOST_SIZE: u32 = 10_000_000;

/// The longest round or quantum, in microseconds.
const LONGEST_SPAN: u64 = 1_000_000_000;

/// What to simulate.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, allow_negative_numbers = true)]
pub struct Options {
    /// The computation: fork-join, futures, map-reduce, wavefront, random, inversions, three-levels,
    /// job-server, memcached, bing or finance.
    #[arg(long, default_value = "fork-join")]
    pub(super) dag: String,
    /// A computation from a file or a pipe instead, up to 4 GiB.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// How large a shape is: leaves, futures, rows or vertices, up to ten million: all are in memory.
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u32).range(1..=i64::from(MOST_SIZE)))]
    pub(super) size: u32,
    /// The work of a vertex or leaf in nanoseconds.
    #[arg(long, default_value_t = 1000)]
    pub(super) work: u64,
    /// The latency of I/O in nanoseconds.
    #[arg(long, default_value_t = 100_000)]
    pub(super) latency: u64,
    /// How long requests arrive, in milliseconds. A stream of requests has ten million vertices at most.
    #[arg(long, default_value_t = 100)]
    pub(super) time_ms: u64,
    /// Arrivals a second, up to 1e9; for bing and finance the load in percent, up to 1e6.
    #[arg(long, default_value_t = 50.0)]
    pub(super) rate: f64,
    /// How many workers, up to 1024.
    #[arg(long, default_value_t = 2)]
    pub(super) workers: usize,
    /// Between levels: prompt, fair, winner, adaptive or fixed.
    #[arg(long, default_value = "prompt")]
    pub(super) schedule: String,
    /// The levels' shares for fair and fixed, most urgent first; equal ones if nothing is said.
    #[arg(long, value_delimiter = ',')]
    shares: Vec<f64>,
    /// The stretches that the levels tolerate, instead of shares.
    #[arg(long, value_delimiter = ',', conflicts_with = "shares")]
    stretches: Vec<f64>,
    /// The length of a round in microseconds, up to 1,000 s.
    #[arg(long, default_value_t = 5000, value_parser = value_parser!(u64).range(1..=LONGEST_SPAN))]
    round_us: u64,
    /// Draw rounds independently, as the fairness paper does.
    #[arg(long)]
    lots: bool,
    /// Fixed shares: idle workers serve other levels.
    #[arg(long)]
    donate: bool,
    /// The quantum of the adaptive schedule in microseconds, up to 1,000 s.
    #[arg(long, default_value_t = 1000, value_parser = value_parser!(u64).range(1..=LONGEST_SPAN))]
    pub(super) quantum_us: u64,
    /// Its utilisation bound, 0 to 1.
    #[arg(long, default_value_t = 0.9)]
    utilisation: f64,
    /// Its growth factor.
    #[arg(long, default_value_t = 2.0)]
    growth: f64,
    /// Its initial desire.
    #[arg(long, default_value_t = 1)]
    desire: usize,
    /// Within a level: the name of a pool policy; a wrong one lists them.
    #[arg(long, default_value = "aging")]
    pool: String,
    /// What scheduling costs: zero, measured, or a file of JSON as `--calibrate` prints it.
    #[arg(long, default_value = "zero")]
    costs: String,
    /// The longest time without a scheduling point, in nanoseconds; not so short that vertices have ten million slices.
    #[arg(long, value_parser = value_parser!(u64).range(1..))]
    pub(super) check_in: Option<u64>,
    /// How many looks in a row may fail before a worker sleeps, up to ten thousand.
    #[arg(long, default_value_t = 32, value_parser = value_parser!(u32).range(..=10_000))]
    patience: u32,
    /// The seed of everything that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs with seeds from there on, up to ten thousand; bounds on expectations use them all at once.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u64).range(1..=10_000))]
    pub(super) seeds: u64,
    /// Run every pool policy, one row each.
    #[arg(long)]
    pub(super) compare: bool,
    /// Write the report as JSON.
    #[arg(long)]
    pub(super) json: Option<PathBuf>,
    /// Write a picture (SVG): the schedule, or the trade-off of a comparison.
    #[arg(long)]
    pub(super) picture: Option<PathBuf>,
    /// Write the computation as a trace.
    #[arg(long)]
    pub(super) write_trace: Option<PathBuf>,
    /// Measure this machine's costs, and simulate nothing.
    #[arg(long)]
    pub(super) calibrate: bool,
    /// Something else to simulate.
    #[command(subcommand)]
    pub(super) more: Option<More>,
}

/// What can be simulated besides one computation.
#[derive(Debug, Subcommand)]
pub(super) enum More {
    /// Many jobs on one set of cores: flow times, deadlines, parallelism feedback.
    Jobs(Box<JobsOptions>),
    /// The queue of a level with 8 to 1,024 cores: as one, and in shards.
    Scaling(ScalingOptions),
}

/// A computation that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    ForkJoin,
    Futures,
    MapReduce,
    Wavefront,
    Random,
    Inversions,
    ThreeLevels,
    JobServer,
    Memcached,
    Bing,
    Finance,
}

impl Shape {
    pub(super) const ALL: [Shape; 11] = [
        Shape::ForkJoin,
        Shape::Futures,
        Shape::MapReduce,
        Shape::Wavefront,
        Shape::Random,
        Shape::Inversions,
        Shape::ThreeLevels,
        Shape::JobServer,
        Shape::Memcached,
        Shape::Bing,
        Shape::Finance,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::ForkJoin => "fork-join",
            Shape::Futures => "futures",
            Shape::MapReduce => "map-reduce",
            Shape::Wavefront => "wavefront",
            Shape::Random => "random",
            Shape::Inversions => "inversions",
            Shape::ThreeLevels => "three-levels",
            Shape::JobServer => "job-server",
            Shape::Memcached => "memcached",
            Shape::Bing => "bing",
            Shape::Finance => "finance",
        }
    }

    pub(super) fn of(name: &str) -> Result<Shape, Stop> {
        let found = Shape::ALL.into_iter().find(|shape| shape.name() == name);
        found.ok_or_else(|| {
            let names = Shape::ALL.map(Shape::name).join(", ");
            let said = format!("there is no computation {name:?}; there are {names}");
            of_option("--dag", said)
        })
    }
}

impl Options {
    /// The computation, and what a trace says of the run that it was recorded from. A trace is read once: it may be a
    /// pipe, or what `--write-trace` is about to replace.
    pub(super) fn input(&self) -> Result<(Dag, Option<trace::Recorded>), Stop> {
        let Some(path) = &self.trace else {
            return Ok((self.dag()?, None));
        };
        let text = input::text("--trace", path, input::MOST_OF_A_TRACE)?;
        let of = |cause| of_option("--trace", cause);
        let dag = trace::read(&text).map_err(of)?;
        Ok((dag, trace::recorded(&text).map_err(of)?))
    }

    /// How long requests arrive, in nanoseconds.
    pub(super) fn time(&self) -> u64 {
        self.time_ms.saturating_mul(1_000_000)
    }

    /// Whether there can be so many workers: before anything is made for them.
    pub(super) fn check_workers(&self) -> Result<(), Stop> {
        match self.workers {
            1..=MAX_WORKERS => Ok(()),
            workers => Err(of_option("--workers", MachineError::Workers(workers))),
        }
    }

    /// A computation that is generated.
    pub(super) fn dag(&self) -> Result<Dag, Stop> {
        let shape = Shape::of(&self.dag)?;
        self.check(shape)?;
        let (size, work, seed) = (self.size, self.work, self.seed);
        let time = self.time();
        let random = generate::Random {
            vertices: size,
            work,
            latency: self.latency,
            within: time,
            ..generate::Random::default()
        };
        Ok(match shape {
            Shape::ForkJoin => generate::fork_join(size.ilog2(), 2, work),
            Shape::Futures => generate::futures(size, work, seed),
            Shape::MapReduce => generate::map_reduce(u64::from(size), self.latency, work, 100),
            Shape::Wavefront => generate::wavefront(size.isqrt(), size.isqrt(), work),
            Shape::Random => generate::random(random, seed),
            Shape::Inversions => {
                let inversions = true;
                generate::random(
                    generate::Random {
                        inversions,
                        ..random
                    },
                    seed,
                )
            }
            Shape::ThreeLevels => {
                let kernel = time * self.workers as u64 / 8;
                generate::three_levels(self.workers, time, REQUEST_GAP, kernel, work)
            }
            Shape::JobServer => generate::job_server(self.rate, time, seed),
            Shape::Memcached => generate::memcached_like(600, self.rate, time, seed),
            Shape::Bing => generate::bing(self.workers, self.rate / 100.0, time, seed),
            Shape::Finance => generate::finance_like(self.workers, self.rate / 100.0, time, seed),
        })
    }

    fn criterion(&self, levels: usize) -> Result<Criterion, Stop> {
        let equal = vec![1.0 / levels as f64; levels];
        let (option, given) = match (&self.stretches[..], &self.shares[..]) {
            ([], []) => ("--schedule", &equal[..]),
            ([], shares) => ("--shares", shares),
            (stretches, _) => ("--stretches", stretches),
        };
        if given.len() < levels {
            let cause = MachineError::Levels {
                schedule: given.len(),
                dag: levels,
            };
            return Err(of_option(option, cause));
        }
        let criterion = match option {
            "--stretches" => Criterion::from_stretches(given),
            _ => Criterion::from_shares(given),
        };
        criterion.map_err(|cause| of_option(option, cause))
    }

    pub(super) fn machine(&self, levels: usize, own: &Own) -> Result<Machine, Stop> {
        let round = self.round_us.saturating_mul(1000);
        let schedule = match self.schedule.as_str() {
            "prompt" => Schedule::Prompt,
            "fair" => {
                let rounds = Rounds::new(self.criterion(levels)?).with_length(round);
                Schedule::FairlyPrompt(if self.lots {
                    rounds.independent(self.seed)
                } else {
                    rounds
                })
            }
            "winner" => Schedule::WinnerTakeAll(WinnerTakeAll::new(round)),
            "adaptive" => {
                let parameters = Parameters {
                    quantum: self.quantum_us.saturating_mul(1000),
                    utilisation: self.utilisation,
                    growth: self.growth,
                    initial: self.desire,
                };
                let of = |cause: AdaptiveError| of_option(option_of(&cause), cause);
                Schedule::Adaptive(Adaptive::new(levels, parameters).map_err(of)?)
            }
            "fixed" => {
                let otherwise = if self.donate || self.workers < levels {
                    Otherwise::Donate
                } else {
                    Otherwise::Wait
                };
                Schedule::Fixed(FixedShares::new(&self.criterion(levels)?, otherwise))
            }
            other => own.schedule(other).ok_or_else(|| {
                let known = "prompt, fair, winner, adaptive and fixed";
                let said = format!("there is no schedule {other:?}; there are {known}");
                of_option("--schedule", said)
            })?,
        };
        let costs = match self.costs.as_str() {
            "zero" => Costs::ZERO,
            "measured" => Costs::MEASURED,
            path => {
                let text = input::text("--costs", path, input::MOST_OF_A_TABLE)?;
                serde_json::from_str(&text).map_err(|cause| {
                    wrong(format!("--costs {path:?} is no table of costs: {cause}"))
                })?
            }
        };
        costs.check().map_err(|cause| of_option("--costs", cause))?;
        Ok(Machine {
            workers: self.workers,
            schedule,
            pool: match own.pool(&self.pool) {
                Some(pool) => pool,
                None => {
                    let named = self.pool.parse::<AnyOrder>();
                    named.map_err(|cause| of_option("--pool", cause))?
                }
            },
            costs,
            check_in: self.check_in,
            patience: self.patience,
            seed: self.seed,
            record: if self.picture.is_some() { 20_000 } else { 0 },
            ..Machine::default()
        })
    }

    /// The machine of a further run: its lots, too, come from its seed.
    pub(super) fn reseeded(&self, machine: Machine) -> Machine {
        match machine.schedule {
            Schedule::FairlyPrompt(rounds) if self.lots => Machine {
                schedule: Schedule::FairlyPrompt(rounds.independent(machine.seed)),
                ..machine
            },
            _ => machine,
        }
    }
}

/// Which option the number is of that is wrong.
fn option_of(error: &AdaptiveError) -> &'static str {
    match error {
        AdaptiveError::Quantum => "--quantum-us",
        AdaptiveError::Utilisation(_) => "--utilisation",
        AdaptiveError::Growth(_) => "--growth",
        AdaptiveError::Initial => "--desire",
        _ => "--schedule",
    }
}
