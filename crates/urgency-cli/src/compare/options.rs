//! What the user may choose, and what follows from it.

use super::contender::Contender;
use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use std::path::PathBuf;
use urgency_load::class::{Class, Cpus};
use urgency_load::search::Quality;
use urgency_load::{Load, Waiting};

/// Measures `urgency cache` beside memcached: same machine, same client, same processors for each server.
///
/// Each server is a process of its own on --server-cpus; this process is the client and spins on
/// --client-cpus. Contenders take turns in an order that changes from round to round; the tables have medians, the
/// directory --save has everything as JSON. A part that needs the result of an earlier one takes it from
/// there.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What to measure [default: everything].
    #[arg(value_enum)]
    pub parts: Vec<Part>,

    /// Compare these only.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CONTENDER")]
    pub only: Vec<Contender>,

    /// Rounds: how often each contender is measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// How often a turn is repeated during which other processes used the processors.
    #[arg(long, default_value_t = 3)]
    pub retries: u32,

    /// Small and short: shows that everything works, and measures nothing; its results have files of their own.
    #[arg(long)]
    pub quick: bool,

    /// Exit with status 1 if a bar is missed or could not be measured.
    #[arg(long)]
    pub check: bool,

    /// The quality of service of the part `highest`, as in "p95<10ms" or "p99<1ms". The other parts go by the
    /// default one.
    #[arg(long, default_value = "p95<10ms")]
    pub quality: Quality,

    /// Connections, 1 to 10000.
    #[arg(long, short, value_name = "N", default_value_t = 600, value_parser = connections())]
    pub connections: usize,

    /// Keys, all of them written before anything is measured.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1000..))]
    pub keys: u32,

    /// Processors of the servers [default: all that it may use but the last].
    #[arg(long, value_name = "LIST")]
    pub server_cpus: Option<Cpus>,

    /// Processors of the client [default: the last].
    #[arg(long, value_name = "LIST")]
    pub client_cpus: Option<Cpus>,

    /// Where the raw results go, and where earlier ones are.
    #[arg(long, value_name = "DIR", default_value = "results/cache")]
    pub save: PathBuf,

    /// Where the picture of the latencies goes (SVG).
    #[arg(long, value_name = "PATH", default_value = "urgency-cache.svg")]
    pub picture: PathBuf,
}

/// What the client can have.
fn connections() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=10_000)
}

/// A part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// The highest rate at which 95 % of the requests are answered within 10 ms.
    Highest,
    /// Latencies against the offered rate, up to saturation; processor time.
    Curves,
    /// Latencies beside a parallel batch job.
    Batch,
    /// Latencies while the table grows and the crawler runs.
    Background,
    /// The cache under prompt and the adaptive schedules, at three loads.
    Schedules,
    /// Memory of each item beyond its key and its value.
    Memory,
}

impl Options {
    /// Whether a part is wanted.
    pub fn wants(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Whether a contender is wanted.
    pub fn admits(&self, contender: Contender) -> bool {
        self.only.is_empty() || self.only.contains(&contender)
    }

    /// With the processors chosen. To be called before this process is bound to some of them.
    ///
    /// # Errors
    ///
    /// Which processor was asked for that this process may not use.
    pub fn resolved(&self) -> Result<Options, String> {
        let allowed = Cpus::allowed().map_err(|cause| cause.to_string())?;
        for (option, cpus) in [
            ("--server-cpus", &self.server_cpus),
            ("--client-cpus", &self.client_cpus),
        ] {
            let mut numbers = cpus.iter().flat_map(Cpus::numbers);
            if let Some(cpu) = numbers.find(|cpu| !allowed.numbers().contains(cpu)) {
                return Err(format!(
                    "{option}: this process may not use processor {cpu}; allowed: {allowed}"
                ));
            }
        }
        let (last, others) = allowed.numbers().split_last().expect("this runs on one");
        let last = Cpus::new(vec![*last]);
        let servers = match others {
            [] => last.clone(),
            others => Cpus::new(others.to_vec()),
        };
        Ok(Options {
            server_cpus: Some(self.server_cpus.clone().unwrap_or(servers)),
            client_cpus: Some(self.client_cpus.clone().unwrap_or(last)),
            ..self.clone()
        })
    }

    /// The servers' processors.
    pub fn servers_on(&self) -> &Cpus {
        self.server_cpus.as_ref().expect("the options are resolved")
    }

    /// The client's processors.
    pub fn client_on(&self) -> &Cpus {
        self.client_cpus.as_ref().expect("the options are resolved")
    }

    /// Seconds of one trial or point.
    pub fn seconds(&self) -> f64 {
        if self.quick { 0.2 } else { 2.0 }
    }

    /// The load: the paper's 600 connections, CloudSuite's 80 % gets, sizes as in Facebook's pool ETC.
    pub fn load(&self, port: u16) -> Load {
        let server = format!("127.0.0.1:{port}");
        let mut load = Load::new(server.parse().expect("an address with a port"));
        let cpus = self.client_on();
        load.connections = self.connections;
        load.threads = cpus.numbers().len().min(self.connections);
        load.workload.keys = if self.quick { 2000 } else { self.keys };
        load.workload.gets = 0.8;
        load.workload.values = "etc".parse().expect("the name of a mix");
        // A client that shares its processor with a server must sleep, or there would be nothing left for the server.
        let shares = cpus
            .numbers()
            .iter()
            .any(|cpu| self.servers_on().numbers().contains(cpu));
        load.waiting = if shares {
            Waiting::Sleep
        } else {
            Waiting::Spin
        };
        load.class = Class::RealTime;
        load.cpus = Some(cpus.clone());
        load
    }
}

/// The options that a command line gives, for the tests of the parts.
#[cfg(test)]
pub(super) fn parsed(line: &str) -> Options {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }
    let line: Line = clap::Parser::parse_from(line.split_whitespace());
    line.options
}
