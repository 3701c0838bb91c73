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
//! `units_per_s` is entries read by compaction.

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
use urgency_measure::client::pacer::{Paced, Pacer, poisson};
use urgency_measure::client::stamps::{MOST, Stamps};
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// The load and the store's size.
#[derive(Clone, Copy)]
pub struct Config {
    reads_per_s: f64,
    writes_per_s: f64,
    lengths: Lengths,
    size: Size,
}

/// A store with its load.
pub struct Scene {
    /// The store.
    pub store: Store,
    is_write: Vec<bool>,
    read: Stamps,
    written: Stamps,
}

impl Scene {
    /// A store of which nothing was asked.
    pub fn new(config: Config) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(13);
        let writes = config.writes_per_s / (config.reads_per_s + config.writes_per_s);
        Arc::new(Scene {
            store: Store::new(config.size),
            is_write: (0..MOST).map(|_| random.f64() < writes).collect(),
            read: Stamps::default(),
            written: Stamps::default(),
        })
    }

    /// Writes the operations' numbers into `socket`, and gives the sample.
    pub fn measure(self: &Arc<Self>, config: Config, socket: UnixStream) -> Sample {
        let per_s = config.reads_per_s + config.writes_per_s;
        let pacer = Pacer::new(self.clone(), socket, poisson(per_s, 29));
        loaded::measure(pacer, config.lengths, summarize)
    }

    /// Whether an operation is a write, not a read.
    pub fn is_write(&self, number: usize) -> bool {
        self.is_write[number]
    }

    /// A read.
    pub fn read(&self, number: usize) {
        self.store.read(number);
        self.read.done(number);
    }

    /// A write; returns what is to be flushed, if anything.
    pub fn write(&self, number: usize) -> Option<Arc<Frozen>> {
        let full = self.store.write(number);
        self.written.done(number);
        full
    }
}

impl Paced for Scene {
    fn expect(&self, first: usize, due: &[u64]) {
        for (number, &due) in (first..).zip(due) {
            let stamps = match self.is_write(number) {
                true => &self.written,
                false => &self.read,
            };
            stamps.expect(number, due);
        }
    }

    fn is_done(&self) -> bool {
        self.read.are_done() && self.written.are_done()
    }

    fn units(&self) -> u64 {
        self.store.compacted.load(Ordering::Relaxed)
    }

    fn events(&self) -> (Events, Sample) {
        let flushed = self.store.flushed.load(Ordering::Relaxed);
        let backlog = self.store.backlog();
        assert!(flushed > 0 || backlog > 0, "no memtable was filled");
        self.store.remove();
        let mut events = self.read.events("read");
        events.append(self.written.events("write"));
        let counts = Sample::new().with("flushed", flushed as f64);
        (events, counts.with("backlog", backlog as f64))
    }
}

/// What is said about reads and writes.
fn summarize(events: &Events) -> Sample {
    let reads = events.sample("read");
    reads.with_all("", &events.sample("write"))
}

/// The contenders that the bars compare with.
const PEERS: &[&str] = &[NAMES[0], NAMES[1], NAMES[2], "threads"];

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        reads_per_s: 3000.0,
        writes_per_s: 1500.0,
        lengths: Lengths {
            warm_up: Duration::from_millis(scale.pick(500, 50)),
            run: Duration::from_millis(scale.pick(4000, 200)),
            alone: Duration::ZERO,
            after: Duration::ZERO,
        },
        size: Size {
            cold: 8,
            cold_entries: scale.pick(3 << 16, 1 << 11),
            batch: 64,
            memtable: scale.pick(1 << 16, 1 << 12),
        },
    };
    let slices = Slices {
        length: Duration::from_millis(scale.pick(200, 100)),
        count: scale.pick(25, 2),
        reach: Duration::from_millis(5),
        summarize,
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
            "units_per_s",
            "flushed",
            "threads_peak",
            "peak_rss_bytes",
        ],
    )
    .contender("threads", move || threads::run(config))
    .bar(Bar::times_at_most("ours", "read_p99_ns", 1.0, PEERS))
    .bar(Bar::times_at_most("ours", "write_p99_ns", 1.0, PEERS))
    .bar(Bar::times_at_least("ours", "units_per_s", 1.0, PEERS));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(config, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment.sliced(slices)]
}
