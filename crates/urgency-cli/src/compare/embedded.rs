//! A child process with the cache in it, or a batch job, or both: what `urgency cache` does, with a job
//! beside it at a lower level of the same runtime.
//!
//! The batch job is endless fork-join compute over all workers (the demo's), the same lines with and without a cache.
//! For each line on its standard input the process prints one number or one line of JSON: `units` of the compute so
//! far, and the runtime's accounts.

use super::{Error, process::Process, schedules::Schedule};
use crate::demo::compute::{self, Join};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::sync::Arc;
use urgency::{Runtime, Stats, net::TcpListener};
use urgency_cache::{
    server::{
        Server, Settings,
        listen::{self, Levels, Sockets},
    },
    store::{Limits, Store},
};
use urgency_measure::child::Child;

urgency::levels! {
    /// The levels of a cache with a batch job.
    CacheAndBatch:
    /// Connections.
    Serve >
    /// The LRU.
    Upkeep >
    /// Growth, crawler.
    Background >
    /// The job.
    Batch
}

/// What the process does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    /// Where the cache listens, if there is one.
    pub port: Option<u16>,
    /// Workers.
    pub threads: usize,
    /// Whether there is a batch job.
    pub batch: bool,
    /// How its threads are to be scheduled.
    pub scheduled: Scheduled,
    /// How its levels share the workers.
    pub schedule: Schedule,
}

/// How the kernel is to schedule the runtime's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheduled {
    /// As the program's other threads.
    Usual,
    /// Threads that lose their workers to requests are lowered.
    ThreadsLowered,
    /// The one in the poller is in the real-time class, if that is permitted.
    RealTimePolling,
}

/// What the process says when it is asked: names and numbers; times in seconds.
pub type Account = BTreeMap<String, f64>;

#[derive(Clone, Copy)]
struct OnUrgency;

impl Join for OnUrgency {
    fn join<A: Send, B: Send>(
        self,
        a: impl FnOnce() -> A + Send,
        b: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        urgency::join(a, b)
    }
}

impl Spec {
    /// Starts the process with this niceness.
    pub fn start(&self, title: &str, niceness: i32) -> Result<Process, Error> {
        let spec = serde_json::to_string(self).expect("numbers can be JSON");
        let mut command = Child::again(title)?;
        command.args(["compare-child", &spec]);
        Process::start(title, &command, niceness)
    }
}

/// The process.
pub fn main(spec: &Spec) -> Result<(), Box<dyn std::error::Error>> {
    let builder = Runtime::builder()
        .levels::<CacheAndBatch>()
        .lower_threads(spec.scheduled == Scheduled::ThreadsLowered)
        .real_time_polling(spec.scheduled == Scheduled::RealTimePolling)
        .schedule(spec.schedule.between(4)?)
        .pool(spec.schedule.pool());
    let runtime = builder.workers(spec.threads).build()?;
    if let Some(port) = spec.port {
        serve(&runtime, port, spec.threads)?;
    }
    if spec.batch {
        let batch = runtime
            .at(Batch)
            .spawn_fn(|| -> () { compute::fork_join(OnUrgency) });
        batch.detach();
    }
    for line in std::io::stdin().lock().lines() {
        line?;
        let account = serde_json::to_string(&account(&runtime.stats()))?;
        println!("{account}");
    }
    // The compute never ends by itself; it ends with the process.
    std::process::exit(0)
}

fn serve(runtime: &Runtime, port: u16, threads: usize) -> Result<(), Box<dyn std::error::Error>> {
    let listener = runtime.run(|| urgency::block_on(TcpListener::bind(("127.0.0.1", port))))?;
    let limits = Limits {
        memory: 1 << 30,
        ..Limits::default()
    };
    let settings = Settings {
        connections_max: 20_000,
        threads,
        port,
        ..Settings::default()
    };
    let server = Arc::new(Server::new(Store::new(&limits)?, settings));
    let levels = Levels {
        serve: Serve.into(),
        upkeep: Upkeep.into(),
        background: Background.into(),
    };
    let sockets = Sockets {
        tcp: vec![listener],
        ..Sockets::default()
    };
    Ok(listen::start(&server, runtime, levels, sockets)?)
}

fn account(stats: &Stats) -> Account {
    let mut account = Account::new();
    let mut add = |name: &str, value: f64| *account.entry(name.to_owned()).or_default() += value;
    add("units", compute::units() as f64);
    for worker in &stats.workers {
        add("scheduling", worker.scheduling.as_secs_f64());
        add("searching", worker.searching.as_secs_f64());
        add("asleep", worker.asleep.as_secs_f64());
    }
    for level in &stats.levels {
        add("running", level.total.running.as_secs_f64());
        add("behind", level.total.behind.as_secs_f64());
    }
    account
}
