//! What the user may choose, with the allowed range of each choice.
//!
//! A value outside its range is refused before anything is started: the message names the option, the value
//! and what is allowed, and the exit code is 2. One constant per range is the only place where it is written.

use super::contender::Contender;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::{ops::RangeInclusive, path::PathBuf};
use urgency_measure::{arguments::within, client::Arrivals};

const RATES: RangeInclusive<f64> = 1.0..=100_000.0;
const SECONDS: RangeInclusive<f64> = 1.0..=3600.0;
const WORKERS: RangeInclusive<usize> = 1..=urgency::MAX_WORKERS;

/// Urgent work goes first: requests beside endless compute, and frames beside decoders, live.
///
/// Two scenes, each under Urgency and under what one would use today.
///
/// Requests: a load client, a process of its own, sends small requests over loopback TCP at a fixed rate and measures
/// how long each answer takes, from the moment at which the request was due. The process that answers them
/// computes endlessly on all processors at the same time.
///
/// Frames: 60 a second, forked into 600 items of 16 to 100 us (12 ms of processor time), audio each 5 ms above them,
/// and four decoders of 5 to 80 ms without scheduling points below; under Urgency, and in two Rayon pools, the
/// decoders' at niceness 19.
///
/// At the end: a table for each scene, what it means in words, and a picture of both.
#[derive(Args, Clone, Debug, Serialize)]
pub struct Options {
    /// The level at which Urgency serves the requests; the compute is always at `batch`.
    #[arg(long, value_enum, default_value_t = ServeAt::Interactive)]
    pub level: ServeAt,

    /// Requests per second, 1 to 100000.
    #[arg(long, value_name = "PER_SECOND", default_value_t = 500.0, value_parser = rate)]
    pub rate: f64,

    /// Seconds for everything together, 1 to 3600: a quarter for the frames, the rest for the requests.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = duration)]
    pub duration: f64,

    /// Workers of Urgency, of Tokio and of each Rayon pool, and computing threads [default: the CPUs that this
    /// process may use].
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<usize>,

    /// What the compute is: computations that fork at every step, or sequential loops that never let go of a worker.
    #[arg(long, value_enum, default_value_t = Kind::ForkJoin)]
    pub kind: Kind,

    /// The times at which requests are due: at random (a Poisson process), or one exactly every 1/rate seconds.
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    pub arrivals: Arrivals,

    /// Run these contenders only; a scene that has none of them does not run.
    #[arg(long, value_enum, value_name = "CONTENDER", value_delimiter = ',')]
    pub only: Vec<Contender>,

    /// The TCP port of the servers on 127.0.0.1 [default: any free one].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// Where the picture of the latency distributions goes (SVG).
    #[arg(long, value_name = "PATH", default_value = "urgency-demo.svg")]
    #[serde(skip)]
    pub picture: PathBuf,

    /// Where the raw results go (JSON); not written by default.
    #[arg(long, value_name = "PATH")]
    #[serde(skip)]
    pub json: Option<PathBuf>,
}

/// The levels of the demo's program, as a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServeAt {
    /// More urgent than the compute.
    Interactive,
    /// The level of the compute: requests wait their turn.
    Batch,
    /// Less urgent than the compute: requests are answered when the compute leaves a worker idle.
    Background,
}

/// What the compute does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Divide and conquer without a sequential cut-off.
    ForkJoin,
    /// One loop per worker that neither forks nor checks in.
    Sequential,
}

impl Options {
    /// The contenders of a scene that run, in the scene's order.
    pub fn among(&self, scene: &[Contender]) -> Vec<Contender> {
        let wanted = |c: &&Contender| self.only.is_empty() || self.only.contains(c);
        scene.iter().filter(wanted).copied().collect()
    }

    /// The number of workers, chosen or found.
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(|| {
            std::thread::available_parallelism().map_or(1, |n| n.get().min(*WORKERS.end()))
        })
    }
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, RATES, "requests per second")
}

fn duration(text: &str) -> Result<f64, String> {
    within(text, SECONDS, "seconds")
}

fn workers(text: &str) -> Result<usize, String> {
    within(text, WORKERS, "workers")
}
