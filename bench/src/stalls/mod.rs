//! Two programs of users whose runtime stalled, in their shapes.
//!
//! - `stall-sst-build` (slatedb/slatedb#1963): the build of a sorted table is one giant poll, since
//!   everything that it awaits is ready. Beside two such builders, of 200 ms a poll, a task sleeps 10 ms
//!   again and again: by how much does it oversleep? A plain thread that does the same is the control.
//! - `stall-io` (DataFusion's and InfluxDB's `io_stall`): 16 streams fetch a piece in 8 round trips of 1 ms
//!   each, and then decode it, which is a fixed amount of work of about 20 ms, all on one runtime. `late` is
//!   how much longer than 8 ms a fetch takes from its first poll until all of the piece is there. `stream_late` is the
//!   same for the stream, from asking for the piece until it can decode it. With everything in one task this is `late`,
//!   while ours fetches in a task of its own, at a higher level, after which the stream has to wait for its turn among
//!   the others' decoding. `time` is the time of the whole; `cpu` shows that all contenders did the same work.

#[cfg(feature = "ours")]
mod ours;
mod thread;
mod tokio;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use urgency_measure::{Bar, Experiment, Latencies, Sample, Scale, machine, timing};

/// How long it goes on.
#[derive(Clone, Copy)]
pub struct Config {
    /// Sleeps of the sentinel, or pieces of a stream.
    pub rounds: u32,
}

/// A poll of a builder.
const BUILD: Duration = Duration::from_millis(200);
/// A sleep of the sentinel.
const CADENCE: Duration = Duration::from_millis(10);
/// A round trip of a fetch.
const TRIP: Duration = Duration::from_millis(1);
const TRIPS: u32 = 8;
/// Work of a decode, for `timing::compute`: about 20 ms.
const DECODE: u32 = 2000;
/// Streams.
pub const STREAMS: usize = 16;

/// Builds tables until it is over; `pause` is the runtime's way to give others a chance.
pub async fn build<F: Future<Output = ()>>(over: &AtomicBool, pause: impl Fn() -> F) {
    while !over.load(Ordering::Relaxed) {
        timing::spin(BUILD);
        pause().await;
    }
}

/// Sleeps, and records by how much too long.
pub async fn sentinel<F: Future<Output = ()>>(
    config: Config,
    sleep: impl Fn(Duration) -> F,
) -> Latencies {
    let mut late = Latencies::new();
    for _ in 0..config.rounds {
        let start = Instant::now();
        sleep(CADENCE).await;
        late.record(start.elapsed().saturating_sub(CADENCE));
    }
    late
}

/// Fetches one piece; returns how much longer that took than the network did.
pub async fn fetch<F: Future<Output = ()>>(sleep: impl Fn(Duration) -> F) -> Duration {
    let start = Instant::now();
    for _ in 0..TRIPS {
        sleep(TRIP).await;
    }
    start.elapsed().saturating_sub(TRIP * TRIPS)
}

/// What all streams together saw.
pub struct Streams {
    start: Instant,
    cpu: Duration,
    /// Of fetches, and of streams.
    late: Mutex<(Latencies, Latencies)>,
}

impl Streams {
    /// Begins.
    pub fn start() -> Self {
        Streams {
            start: Instant::now(),
            cpu: machine::cpu_time(),
            late: Mutex::new((Latencies::new(), Latencies::new())),
        }
    }

    /// The course of one stream; `fetched` fetches a piece, and returns by how much that was late.
    pub async fn stream<F: Future<Output = Duration>>(
        &self,
        config: Config,
        fetched: impl Fn() -> F,
    ) {
        for _ in 0..config.rounds {
            let asked = Instant::now();
            let fetch_late = fetched().await;
            let stream_late = asked.elapsed().saturating_sub(TRIP * TRIPS);
            timing::compute(DECODE);
            let mut late = self.late.lock().expect("nobody panics");
            late.0.record(fetch_late);
            late.1.record(stream_late);
        }
    }

    /// The sample, when all streams have ended.
    pub fn sample(&self, config: Config) -> Sample {
        let time = self.start.elapsed().as_nanos() as f64;
        let cpu = (machine::cpu_time() - self.cpu).as_nanos() as f64;
        let late = self.late.lock().expect("nobody panics");
        sample(&late.0, u64::from(config.rounds) * STREAMS as u64)
            .with_all("stream_", &late.1.sample("late_"))
            .with("time_ns", time)
            .with("cpu_ns", cpu)
    }
}

/// The sample of a distribution.
pub fn sample(late: &Latencies, expected: u64) -> Sample {
    assert_eq!(late.asked(), expected, "some are missing");
    late.sample("late_")
}

/// Both.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let build = Config {
        rounds: scale.pick(300, 5),
    };
    let io = Config {
        rounds: scale.pick(6, 1),
    };
    let sst = Experiment::new(
        "stall-sst-build",
        "how late a 10 ms timer is beside two builders of 200 ms a poll, 2 workers",
    )
    .table("tokio", &["late_p99_ns", "late_p50_ns", "late_max_ns"])
    .contender("tokio", move || tokio::sst_build(build))
    .contender("thread", move || thread::sst_build(build))
    .bar(Bar::times_at_most("ours", "late_p99_ns", 0.1, &["tokio"]));
    let stall = Experiment::new(
        "stall-io",
        "how much too long a fetch takes beside the decoding of other streams, 2 workers",
    )
    .table(
        "tokio",
        &[
            "late_p99_ns",
            "late_p50_ns",
            "stream_late_p99_ns",
            "stream_late_p50_ns",
            "time_ns",
            "cpu_ns",
        ],
    )
    .contender("tokio", move || tokio::io(io))
    .bar(Bar::times_at_most("ours", "late_p99_ns", 0.2, &["tokio"]))
    .bar(Bar::times_at_most("ours", "time_ns", 1.05, &["tokio"]));
    #[cfg(feature = "ours")]
    let (sst, stall) = (
        sst.contender("ours", move || ours::sst_build(build)),
        stall.contender("ours", move || ours::io(io)),
    );
    vec![sst, stall]
}
