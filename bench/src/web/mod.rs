//! HTTP at 64 connections: hyper's "hello", and a JSON route of axum; alone, and beside endless fork-join compute.
//!
//! The programs are the same but for the runtime: the same hyper builder with the same service, the same axum
//! router. axum is served as shipped, by `axum::serve` on Tokio and by `urgency_web::serve` on ours, which
//! sets TCP_NODELAY, as `axum::serve` does not. No delay follows from that here: each answer is one write, and
//! the client has nothing under way that the kernel could wait for.
//! *Beside* means the compute of `mixed`: on ours at a lower level of the same runtime, on Tokio in a rayon
//! pool of two threads, as one does.
//!
//! The client is a process of its own with one thread: a closed loop that saturates the machine, or for *paced* an open
//! one of 50 requests a second for each connection. (Until 22 November 2026 these were `wrk` and `h2load`, in whole
//! runs. `h2load` counts from when it sends, so figures of `web-json-paced` from before do not compare.)
#[cfg(feature = "ours")]
mod ours;
mod tokio;

use crate::mixed::METER;
use std::net::SocketAddr;
use std::time::Duration;
use urgency_measure::client::Arrivals;
use urgency_measure::client::lanes::{Lane, Lanes, Pace, Protocol, Served};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// Connections of the client.
const CONNECTIONS: usize = 64;
/// The series of the requests.
const REQUEST: &str = "request";

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// hyper's HTTP/1 server and a service that says hello.
    HyperHello,
    /// An axum route that returns JSON.
    AxumJson,
}

/// The load and its surroundings.
#[derive(Clone, Copy)]
pub struct Config {
    program: Program,
    /// Whether two processors' worth of compute runs beside it.
    beside: bool,
    pace: Pace,
    lengths: Lengths,
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
        let expects = match self.program {
            Program::HyperHello => HELLO.to_owned(),
            Program::AxumJson => serde_json::to_string(&answer()).expect("numbers can be JSON"),
        };
        let path = "/".to_owned();
        let lane = Lane {
            name: REQUEST.to_owned(),
            protocol: Protocol::Get { path, expects },
            pace: self.pace,
            connections: CONNECTIONS,
        };
        let served = Served::start(&Lanes::new(server, vec![lane]), || METER.units());
        if self.beside {
            compute();
        }
        loaded::measure(served, self.lengths, self.summarize())
    }

    fn summarize(&self) -> fn(&Events) -> Sample {
        match self.pace {
            Pace::Closed => saturated,
            Pace::Open(..) => paced,
        }
    }
}

/// What is said about the requests of the closed loop.
fn saturated(events: &Events) -> Sample {
    let per_s = events.per_s(REQUEST);
    paced(events).with("requests_per_s", per_s)
}

/// What is said about the requests of the open loop.
fn paced(events: &Events) -> Sample {
    events.sample_as(REQUEST, "")
}

const COLUMNS: [&str; 7] = [
    "requests_per_s",
    "p50_ns",
    "p99_ns",
    "cpu_ns",
    "units_per_s",
    "compute_share",
    "client_real_time",
];

/// Each program alone and beside compute.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let lengths = |beside| Lengths {
        warm_up: Duration::from_millis(scale.pick(750, 50)),
        run: Duration::from_millis(scale.pick(3000, 200)),
        alone: Duration::from_millis(if beside { scale.pick(500, 50) } else { 0 }),
        after: Duration::ZERO,
    };
    let rate = 50.0 * CONNECTIONS as f64;
    [
        ("web-hello", Program::HyperHello, false, Pace::Closed),
        ("web-json", Program::AxumJson, false, Pace::Closed),
        ("web-hello-beside", Program::HyperHello, true, Pace::Closed),
        ("web-json-beside", Program::AxumJson, true, Pace::Closed),
        (
            "web-json-paced",
            Program::AxumJson,
            true,
            Pace::Open(rate, Arrivals::Poisson),
        ),
    ]
    .into_iter()
    .map(|(name, program, beside, pace)| {
        let config = Config {
            program,
            beside,
            pace,
            lengths: lengths(beside),
        };
        experiment(name, config).sliced(Slices {
            length: Duration::from_millis(scale.pick(200, 50)),
            count: scale.pick(15, 2),
            reach: Duration::from_millis(2),
            summarize: config.summarize(),
        })
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
        Pace::Closed => format!("{CONNECTIONS} connections, closed loop"),
        Pace::Open(per_s, _) => format!("{per_s} requests/s over {CONNECTIONS} connections"),
    };
    let about = format!("{program} under {load}{beside}, 2 workers");
    let columns = match config.pace {
        Pace::Closed => &COLUMNS[..],
        Pace::Open(..) => &COLUMNS[1..],
    };
    let peer = if config.beside {
        "tokio-rayon"
    } else {
        "tokio"
    };
    let experiment = Experiment::new(name, about)
        .table(peer, columns)
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
                1.05,
                &["tokio"],
            ))
            .bar(Bar::times_at_most("ours", "p99_ns", 0.9, &["tokio"]))
            .bar(Bar::times_at_most("ours", "cpu_ns", 0.95, &["tokio"]))
    }
}
