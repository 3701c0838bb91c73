//! Table 5: fib with the network echo, 50 requests a second, on runtimes without levels. All fork down to
//! fib(20), which is serial (the paper's source does the same), and all echo 64 bytes; a contender's
//! `time_ns` is fib's, the response times are the echo's.
//!
//! - `ours`: the echo at the more urgent of two levels.
//! - `rayon`: a thread reads each connection, and has the pool write each reply: the only way for work to get
//!   in there. `threads-rayon`: the thread replies itself, and the kernel of the operating system divides the
//!   processors.
//! - `tokio`: a task per connection, and a task per fork. `tokio-rayon`: the usual pair, a runtime and a pool.
//! - `go`: a goroutine per connection and per fork, `GOMAXPROCS` as many as workers. Built with the Go
//!   toolchain when it is installed; otherwise there is no such contender.

mod go;
#[cfg(feature = "ours")]
mod ours;
mod rayon;
mod tokio;

use super::EchoLoad;
use crate::engines::{by_workers, go::is_installed};
use crate::fib;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use urgency_measure::timing::serial_fib;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// fib of this and less is serial.
const BASE: u32 = 20;

/// What to compute, with how many workers.
#[derive(Clone, Copy)]
struct Config {
    n: u32,
    workers: usize,
}

impl Config {
    /// Starts the echo's load, and times `fib`, which returns the value.
    fn measure(&self, server: SocketAddr, fib: impl FnOnce(u32) -> u64) -> Sample {
        let echo = self.start(server);
        let start = Instant::now();
        let value = fib(self.n);
        self.end(echo, start.elapsed(), value)
    }

    fn start(&self, server: SocketAddr) -> EchoLoad {
        let echo = EchoLoad::start(server);
        std::thread::sleep(Duration::from_millis(50));
        echo
    }

    fn end(&self, echo: EchoLoad, time: Duration, value: u64) -> Sample {
        assert_eq!(value, fib::value(self.n), "wrong result");
        echo.end().with("time_ns", time.as_nanos() as f64)
    }
}

/// One experiment per number of workers.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    by_workers(scale, experiment)
}

fn experiment(scale: Scale, workers: usize) -> Experiment {
    let config = Config {
        n: scale.pick(43, 28),
        workers,
    };
    let peers: &[&str] = match is_installed() {
        true => &["rayon", "threads-rayon", "tokio", "tokio-rayon", "go"],
        false => &["rayon", "threads-rayon", "tokio", "tokio-rayon"],
    };
    let experiment = Experiment::new(
        format!("fair-peers-{workers}"),
        format!(
            "fib({}) with an echo at 50/s, {workers} worker(s)",
            config.n
        ),
    )
    .table("ours", &["time_ns", "mean_ns", "p99_ns", "unanswered"])
    .contender("rayon", move || rayon::run(config))
    .contender("threads-rayon", move || rayon::beside_threads(config))
    .contender("tokio", move || tokio::run(config))
    .contender("tokio-rayon", move || tokio::beside_rayon(config))
    .bar(Bar::at_most("ours", "mean_ns", 1e6))
    .bar(Bar::times_at_most("ours", "mean_ns", 1.0, peers));
    let experiment = match is_installed() {
        true => experiment.contender("go", move || go::run(config)),
        false => experiment,
    };
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    experiment
}
