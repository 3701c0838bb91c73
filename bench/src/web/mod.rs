//! HTTP at 64 connections: hyper's "hello", and a JSON route of axum; alone, and beside endless fork-join compute.
//!
//! The programs are the same but for the runtime: the same hyper builder with the same service, the same axum
//! router. axum is served as shipped, by `axum::serve` on Tokio and by `urgency_web::serve` on ours, which
//! sets TCP_NODELAY, as `axum::serve` does not. No delay follows from that here: each answer is one write, and
//! the client has nothing under way that the kernel could wait for.
//! *Beside* means the compute of `mixed`: on ours at a lower level of the same runtime, on Tokio in a rayon
//! pool of two threads, as one does.
//!
//! The client is a process of its own with one thread: `wrk`, a closed loop that saturates the machine, or
//! for *paced* `h2load` at 50 requests a second on each connection. Beside compute it runs in the class
//! SCHED_FIFO where that is permitted, because otherwise the compute delays the client, and the client's
//! clock measures that; metric `client_real_time`.
mod load;
#[cfg(feature = "ours")]
mod ours;
mod tokio;

use crate::harness::{Bar, Experiment, Sample, Scale, machine};
use crate::mixed::METER;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// hyper's HTTP/1 server and a service that says hello.
    HyperHello,
    /// An axum route that returns JSON.
    AxumJson,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The next one on a connection when the answer to the last has come.
    Closed,
    /// So many per second on each connection.
    PerConnection(u32),
}

/// The load and its surroundings.
#[derive(Clone, Copy)]
pub struct Config {
    program: Program,
    /// Whether two processors' worth of compute runs beside it.
    beside: bool,
    pace: Pace,
    run: Duration,
}

/// What the hello service says.
pub const HELLO: &str = "Hello, World!";

/// What the JSON route returns.
#[derive(serde::Serialize)]
pub struct Answer {
    message: &'static str,
    numbers: [u32; 4],
}

/// The answer of the JSON route.
pub fn answer() -> Answer {
    Answer {
        message: HELLO,
        numbers: [1, 10, 100, 1000],
    }
}

/// The axum router, the same on both runtimes.
pub fn router() -> axum::Router {
    axum::Router::new().route("/", axum::routing::get(|| async { axum::Json(answer()) }))
}

impl Config {
    /// Loads the server at `server`, which runs in this process, after `compute` was started if it is to be.
    fn measure(&self, server: SocketAddr, compute: impl FnOnce()) -> Sample {
        if self.beside {
            compute();
            std::thread::sleep(Duration::from_millis(20));
        }
        // Warms up.
        load::run(server, self.pace, self.run / 4, self.beside);
        let (cpu, start, units) = (machine::cpu_time(), Instant::now(), METER.units());
        let sample = load::run(server, self.pace, self.run, self.beside);
        let elapsed = start.elapsed().as_secs_f64();
        let units = (METER.units() - units) as f64;
        let cpu = (machine::cpu_time() - cpu).as_nanos() as f64;
        let requests = sample
            .get("requests_per_s")
            .expect("both clients measure it")
            * elapsed;
        sample
            .with("cpu_ns", cpu / requests)
            .with("compute_per_s", units / elapsed)
            .with("peak_rss_bytes", machine::peak_rss())
    }
}

const COLUMNS: [&str; 6] = [
    "requests_per_s",
    "p50_ns",
    "p99_ns",
    "cpu_ns",
    "compute_per_s",
    "client_real_time",
];

/// Each program alone and beside compute.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let run = Duration::from_millis(scale.pick(3000, 1000));
    [
        ("web-hello", Program::HyperHello, false, Pace::Closed),
        ("web-json", Program::AxumJson, false, Pace::Closed),
        ("web-hello-beside", Program::HyperHello, true, Pace::Closed),
        ("web-json-beside", Program::AxumJson, true, Pace::Closed),
        (
            "web-json-paced",
            Program::AxumJson,
            true,
            Pace::PerConnection(50),
        ),
    ]
    .into_iter()
    .map(|(name, program, beside, pace)| {
        let config = Config {
            program,
            beside,
            pace,
            run,
        };
        experiment(name, config)
    })
    .collect()
}

fn experiment(name: &str, config: Config) -> Experiment {
    let program = match config.program {
        Program::HyperHello => "hyper's hello",
        Program::AxumJson => "an axum JSON route",
    };
    let beside = if config.beside {
        " beside endless fork-join compute"
    } else {
        ""
    };
    let load = match config.pace {
        Pace::Closed => "wrk, 64 connections".to_owned(),
        Pace::PerConnection(rate) => format!("h2load, 64 connections at {rate}/s each"),
    };
    let about = format!("{program} under {load}{beside}, 2 workers");
    let peer = if config.beside {
        "tokio-rayon"
    } else {
        "tokio"
    };
    let experiment = Experiment::new(name, about)
        .table(peer, &COLUMNS)
        .contender(peer, move || tokio::run(config));
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    if config.beside {
        experiment.bar(Bar::times_at_most("ours", "p99_ns", 0.2, &["tokio-rayon"]))
    } else {
        experiment
            .bar(Bar::times_at_least(
                "ours",
                "requests_per_s",
                1.0,
                &["tokio"],
            ))
            .bar(Bar::times_at_most("ours", "p99_ns", 1.0, &["tokio"]))
    }
}
