//! A log-structured store inside a program: point reads and batched writes, open loop, while memtables are flushed
//! and runs are compacted.
//!
//! `engine.rs` and `run.rs` are the store, the same for all contenders: they say what is done. A contender says which
//! thread does it when. Most urgent first: a read, a write, the flush of a memtable (a sort and a file of some 2.4 MB,
//! about 1.5 a second), compaction. Compaction is always due: runs that were flushed are merged in one leaf; otherwise
//! the cold runs are merged, in eight parts that can go in parallel. Such leaves take some 5 to 50 ms and have no
//! scheduling point.
//!
//! Contenders, as the authors of stores arrange it:
//!
//! - `ours`: four levels; reads and writes are tasks, flushes and compaction are closures, `par` forks.
//! - `tokio-rayon`, `tokio-rayon-nice`, `tokio-two-pools`: reads and writes are tasks of Tokio; flushes sort in the
//!   urgent pool, compaction forks in the batch pool.
//! - `threads`: as RocksDB does it: three threads for reads and writes, one for flushes, and two for compaction at
//!   niceness 19.
//!
//! `batch_per_s` is entries read by compaction.

mod engine;
#[cfg(feature = "ours")]
mod ours;
mod run;
mod threads;
mod tokio_rayon;

use crate::engines::pair::{ARRANGEMENTS, NAMES};
use engine::Size;
pub use engine::{Frozen, Store};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use urgency_measure::client::pacer::{Schedule, Stamps};
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// The load and the store's size.
#[derive(Clone, Copy)]
pub struct Config {
    reads_per_s: f64,
    writes_per_s: f64,
    warm_up: Duration,
    run: Duration,
    size: Size,
}

/// A store with its load.
pub struct Scene {
    /// The store.
    pub store: Store,
    schedule: Schedule,
    is_write: Vec<bool>,
    done: Stamps,
}

impl Scene {
    /// A store, and a load that begins soon.
    pub fn new(config: Config) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(13);
        let per_s = config.reads_per_s + config.writes_per_s;
        let (mut at, mut due, mut is_write) = (Duration::ZERO, Vec::new(), Vec::new());
        while at < config.warm_up + config.run {
            due.push(at);
            is_write.push(random.f64() * per_s < config.writes_per_s);
            at += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / per_s);
        }
        let store = Store::new(config.size);
        let schedule = Schedule::new(due, config.warm_up);
        Arc::new(Scene {
            store,
            done: schedule.stamps(),
            schedule,
            is_write,
        })
    }

    /// Writes the operations' numbers into `socket`, and gives the sample.
    pub fn measure(&self, socket: UnixStream) -> Sample {
        let paced = self.schedule.pace(&self.store.compacted, socket);
        let reads = self
            .schedule
            .sample(&self.done, "read_", |number| !self.is_write(number));
        let writes = self
            .schedule
            .sample(&self.done, "write_", |number| self.is_write(number));
        let (flushed, backlog) = (
            self.store.flushed.load(Ordering::Relaxed),
            self.store.backlog(),
        );
        assert!(flushed > 0 || backlog > 0, "no memtable was filled");
        let sample = paced
            .with_all("", &reads)
            .with_all("", &writes)
            .with("flushed", flushed as f64)
            .with("backlog", backlog as f64)
            .with("threads", machine::threads())
            .with("peak_rss_bytes", machine::peak_rss());
        self.store.remove();
        sample
    }

    /// Whether an operation is a write, not a read.
    pub fn is_write(&self, number: usize) -> bool {
        self.is_write[number]
    }

    /// A read.
    pub fn read(&self, number: usize) {
        self.store.read(number);
        self.done.done(&self.schedule, number);
    }

    /// A write; returns what is to be flushed, if anything.
    pub fn write(&self, number: usize) -> Option<Arc<Frozen>> {
        let full = self.store.write(number);
        self.done.done(&self.schedule, number);
        full
    }
}

/// The contenders that the bars compare with.
const PEERS: &[&str] = &[NAMES[0], NAMES[1], NAMES[2], "threads"];

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        reads_per_s: 3000.0,
        writes_per_s: 1500.0,
        warm_up: Duration::from_millis(scale.pick(500, 50)),
        run: Duration::from_millis(scale.pick(4000, 200)),
        size: Size {
            cold: 8,
            cold_entries: scale.pick(3 << 16, 1 << 11),
            batch: 64,
            memtable: scale.pick(1 << 16, 1 << 12),
        },
    };
    let mut experiment = Experiment::new(
        "store",
        "a log-structured store: reads 3000/s and writes 1500/s, open loop, beside flushes and compaction, 2 workers",
    )
    .table(
        "tokio-two-pools",
        &[
            "read_p99_ns",
            "read_p50_ns",
            "read_p95_ns",
            "write_p99_ns",
            "write_p50_ns",
            "batch_per_s",
            "flushed",
            "threads",
            "peak_rss_bytes",
        ],
    )
    .contender("threads", move || threads::run(config))
    .bar(Bar::times_at_most("ours", "read_p99_ns", 1.0, PEERS))
    .bar(Bar::times_at_most("ours", "write_p99_ns", 1.0, PEERS))
    .bar(Bar::times_at_least("ours", "batch_per_s", 1.0, PEERS));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(config, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
