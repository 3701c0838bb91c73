//! What the user may choose.

use crate::class::{Class, Cpus};
use crate::protocol::Protocol;
use crate::search::Quality;
use crate::{Arrivals, Load, Popularity, Server, ValueSizes, Waiting, Workload};
use clap::Args;
use std::{ops::RangeInclusive, path::PathBuf};
use urgency_measure::arguments::within;

const RATES: RangeInclusive<f64> = 1.0..=100_000_000.0;
const SECONDS: RangeInclusive<f64> = 0.1..=86_400.0;
const RAMPS: RangeInclusive<f64> = 0.0..=3600.0;
const SHARES: RangeInclusive<f64> = 0.0..=1.0;
const PRECISIONS: RangeInclusive<f64> = 0.001..=0.5;

/// Loads a server that speaks memcached's protocol, and measures how long its replies take.
///
/// With --rate: requests at this rate whatever the server does (open loop); latency counts from the time at
/// which a request was due. With --search: the highest such rate that meets a quality of service. With
/// neither: as fast as the server answers (closed loop). Every value that is read is verified. First every
/// key is written once.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// HOST:PORT, HOST, or the path of a Unix socket.
    #[arg(default_value = "127.0.0.1:11211")]
    pub server: Server,

    /// Requests per second, over all connections (open loop).
    #[arg(long, value_name = "PER_SECOND", value_parser = rate, conflicts_with = "search")]
    pub rate: Option<f64>,

    /// Search the highest rate that meets this, as in "p95<10ms" or "p99<1ms".
    #[arg(long, value_name = "QUALITY")]
    pub search: Option<Quality>,

    /// Seconds that are recorded.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    pub duration: f64,

    /// Seconds of load before anything is recorded, in each run.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = ramp)]
    pub ramp: f64,

    /// Connections, 1 to 10000.
    #[arg(long, short, value_name = "N", default_value_t = 50)]
    pub connections: usize,

    /// Threads of the client; connections and rate are shared among them.
    #[arg(long, short, value_name = "N", default_value_t = 1)]
    pub threads: usize,

    /// Requests under way on one connection at most [default: 1 in the closed loop, 16 in the open loop].
    #[arg(long, value_name = "N")]
    pub pipeline: Option<usize>,

    /// The times at which requests are due: at random (a Poisson process), or with equal gaps.
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    pub arrivals: Arrivals,

    /// Keys.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub keys: u32,

    /// Bytes of each key.
    #[arg(long, value_name = "BYTES", default_value_t = 32)]
    pub key_size: usize,

    /// uniform, zipf, or zipf:EXPONENT.
    #[arg(long, value_name = "LAW", default_value = "zipf:0.99")]
    pub popularity: Popularity,

    /// The share of gets, 0 to 1; the others are sets.
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, value_parser = share)]
    pub gets: f64,

    /// Bytes of the values: N, LOW-HIGH, a mix SIZE:WEIGHT,SIZE:WEIGHT,..., or etc (many small, few large, as
    /// in Facebook's pool ETC).
    #[arg(long, value_name = "BYTES", default_value = "100")]
    pub value: ValueSizes,

    /// get and set, or mg and ms.
    #[arg(long, value_enum, default_value_t = Protocol::Text)]
    pub protocol: Protocol,

    /// Do not write the keys first: gets may miss, and whether a value is stale cannot be told.
    #[arg(long)]
    pub no_fill: bool,

    /// Do not look at the values that are read.
    #[arg(long)]
    pub no_verify: bool,

    /// Chooses among equally likely loads: the same seed gives the same requests.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Seconds that are recorded of each trial of a search.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    pub trial: f64,

    /// How near the end of a search is to the true limit, as a share.
    #[arg(long, value_name = "SHARE", default_value_t = 0.03, value_parser = precision)]
    pub precision: f64,

    /// Trials that confirm the end of a search.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub confirmations: u32,

    /// Processors of the client's threads, as in 0 or 2-3 [default: all that it may use].
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<Cpus>,

    /// The scheduling class of the client's threads: SCHED_FIFO if that is permitted, so that the client is
    /// not starved by what it measures (niceness -20 with --waiting spin, because the kernel throttles
    /// real-time threads that never sleep), or as it was started.
    #[arg(long, value_enum, default_value_t = Class::RealTime)]
    pub class: Class,

    /// What the client's threads do while there is nothing to do: sleep; or spin, which is most exact but
    /// takes a whole processor for each thread.
    #[arg(long, value_enum, default_value_t = Waiting::Sleep)]
    pub waiting: Waiting,

    /// Where the result goes as JSON, with whole histograms (- is standard output).
    #[arg(long, value_name = "PATH")]
    pub json: Option<PathBuf>,

    /// No progress while it runs.
    #[arg(long, short)]
    pub quiet: bool,
}

impl Options {
    /// The load that was chosen.
    pub fn load(&self) -> Load {
        let is_open = self.rate.is_some() || self.search.is_some();
        Load {
            server: self.server.clone(),
            connections: self.connections,
            threads: self.threads,
            pipeline: self.pipeline.unwrap_or(if is_open { 16 } else { 1 }),
            protocol: self.protocol,
            workload: Workload {
                keys: self.keys,
                key_size: self.key_size,
                popularity: self.popularity,
                gets: self.gets,
                values: self.value.clone(),
                verify: !self.no_verify,
                seed: self.seed,
            },
            cpus: self.cpus.clone(),
            class: self.class,
            waiting: self.waiting,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, RATES, "requests per second")
}

fn seconds(text: &str) -> Result<f64, String> {
    within(text, SECONDS, "seconds")
}

fn ramp(text: &str) -> Result<f64, String> {
    within(text, RAMPS, "seconds")
}

fn share(text: &str) -> Result<f64, String> {
    within(text, SHARES, "as a share")
}

fn precision(text: &str) -> Result<f64, String> {
    within(text, PRECISIONS, "as a share")
}
