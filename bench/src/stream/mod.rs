//! A stream pipeline: packets from four sources at a fixed rate, slow decoders, a watermark, windows that are to be
//! emitted in time, and a backfill of late data below.
//!
//! - A packet's time is when it is due. Decoding it takes 2 to 30 ms without a scheduling point, 60 % of two
//!   processors over all. A packet whose decoding has not begun [`PATIENCE`] after that is dropped.
//! - The *watermark* has passed a packet when that and all before it are decoded or dropped. `lag_*` is from a
//!   packet's time until the watermark passes it.
//! - A *window* holds the packets of 100 ms. When the watermark has passed its last one, its decoded packets are
//!   aggregated, each in a leaf of some 300 us, in parallel. `emit_*` is from the window's last packet until that is
//!   done; within [`DEADLINE`] is in time (`emitted_share`).
//! - The *backfill* decodes and aggregates archived packets without end, 16 to a batch that can go in parallel, some
//!   5 ms each: `batch_per_s` is packets a second.
//!
//! Contenders:
//!
//! - `ours`: four levels, the receiver above windows above decoders above the backfill; a closure for each packet.
//! - `tokio-rayon`, `tokio-rayon-nice`, `tokio-two-pools`: decoders in `spawn_blocking`, as many at once as there are
//!   processors, in the order of the packets; windows fork in the urgent pool, the backfill in the batch pool.

#[cfg(feature = "ours")]
mod ours;
mod packet;
mod tokio_rayon;

use crate::engines::pair::{ARRANGEMENTS, NAMES};
pub use packet::Aggregate;
use packet::{Decoded, Packet};
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urgency_measure::client::pacer::{Schedule, Stamps};
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// How long it goes on.
#[derive(Clone, Copy)]
pub struct Config {
    run: Duration,
    warm_up: Duration,
}

const SOURCES: u32 = 4;
/// From a packet of a source to the next one.
const PERIOD: Duration = Duration::from_millis(30);
/// Passes of a decoder, at least and at most: some 2 and 30 ms.
const PASSES: (u32, u32) = (800, 12_000);
/// Passes of an archived packet: some 5 ms.
const ARCHIVED_PASSES: u32 = 2000;
/// Packets of a batch of the backfill.
const BATCH: usize = 16;
const WINDOW: Duration = Duration::from_millis(100);
/// Passes over a decoded packet in its window.
const AGGREGATE_PASSES: u32 = 60;
/// From a packet's time until it is too late to begin with it.
const PATIENCE: Duration = Duration::from_millis(80);
/// From a window's last packet until its aggregate is late.
const DEADLINE: Duration = Duration::from_millis(100);

/// The pipeline with its load.
pub struct Pipeline {
    arrivals: Schedule,
    packets: Vec<Packet>,
    /// Of each window, its packets.
    windows: Vec<Range<usize>>,
    archive: Vec<Packet>,
    progress: Mutex<Progress>,
    /// By packet: the watermark has passed it.
    passed: Stamps,
    /// By packet, for the last one of each window: the window is emitted.
    emitted: Stamps,
    dropped: AtomicU64,
    backfilled: AtomicU64,
}

/// How far the packets are.
struct Progress {
    packets: Vec<Fate>,
    /// The first packet that the watermark has not passed.
    watermark: usize,
    /// The first window that it has not passed.
    window: usize,
}

enum Fate {
    Expected,
    Decoded(Arc<Decoded>),
    Dropped,
}

/// A window that the watermark has passed.
pub struct Window {
    last: usize,
    /// Its packets, without the dropped ones.
    pub packets: Vec<Arc<Decoded>>,
    expected: Aggregate,
}

impl Pipeline {
    /// A pipeline; the first packet comes soon.
    pub fn new(config: Config) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(19);
        let end = config.warm_up + config.run;
        let mut due: Vec<Duration> = (0..SOURCES)
            .flat_map(|source| {
                // Each source has a phase of its own.
                let phase = PERIOD * (source * source) / 17;
                (0..)
                    .map(move |n| phase + PERIOD * n)
                    .take_while(move |&at| at < end)
            })
            .collect();
        due.sort();
        let first_of = |window: u32| due.partition_point(|&at| at < WINDOW * window);
        let count = (end.as_nanos() / WINDOW.as_nanos()) as u32;
        let windows: Vec<_> = (0..count)
            .map(|window| first_of(window)..first_of(window + 1))
            .collect();
        let packet = |_: &Duration| {
            // Most packets are small: the share to the third.
            let (least, most) = PASSES;
            let passes = least + (f64::from(most - least) * random.f64().powi(3)) as u32;
            Packet::random(&mut random, passes)
        };
        let packets: Vec<_> = due.iter().map(packet).collect();
        let archive: Vec<Packet> = (0..BATCH)
            .map(|_| Packet::random(&mut random, ARCHIVED_PASSES))
            .collect();
        let arrivals = Schedule::new(due, config.warm_up);
        Arc::new(Pipeline {
            progress: Mutex::new(Progress {
                packets: packets.iter().map(|_| Fate::Expected).collect(),
                watermark: 0,
                window: 0,
            }),
            passed: arrivals.stamps(),
            emitted: arrivals.stamps(),
            arrivals,
            packets,
            windows,
            archive,
            dropped: AtomicU64::new(0),
            backfilled: AtomicU64::new(0),
        })
    }

    /// Writes the packets' numbers into `socket`, and gives the sample.
    pub fn measure(&self, socket: UnixStream) -> Sample {
        let paced = self.arrivals.pace(&self.backfilled, socket);
        let ends_window = |packet| self.windows.iter().any(|window| window.end == packet + 1);
        let lag = self.arrivals.sample(&self.passed, "lag_", |_| true);
        let emitted = self.arrivals.sample(&self.emitted, "emit_", ends_window);
        let in_time = self
            .arrivals
            .share_within(&self.emitted, DEADLINE, ends_window);
        let dropped = self.dropped.load(Ordering::Relaxed) as f64;
        paced
            .with_all("", &lag)
            .with_all("", &emitted)
            .with("emitted_share", in_time)
            .with("decoded_share", 1.0 - dropped / self.packets.len() as f64)
            .with("threads", machine::threads())
            .with("peak_rss_bytes", machine::peak_rss())
    }

    /// Decodes a packet, or drops it if it is late; returns the windows that the watermark passes by that.
    pub fn decode(&self, packet: usize) -> Vec<Window> {
        let fate = if self.arrivals.age(packet) > PATIENCE {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            Fate::Dropped
        } else {
            Fate::Decoded(Arc::new(self.packets[packet].decode()))
        };
        let mut progress = self.progress.lock().expect("nobody panics");
        progress.packets[packet] = fate;
        while let Some(Fate::Decoded(_) | Fate::Dropped) = progress.packets.get(progress.watermark)
        {
            self.passed.done(&self.arrivals, progress.watermark);
            progress.watermark += 1;
        }
        let mut windows = Vec::new();
        while let Some(window) = self.windows.get(progress.window)
            && window.end <= progress.watermark
        {
            windows.push(self.window(window.clone(), &mut progress.packets));
            progress.window += 1;
        }
        windows
    }

    /// Takes the packets of a window.
    fn window(&self, range: Range<usize>, packets: &mut [Fate]) -> Window {
        let last = range.end - 1;
        let (mut decoded, mut expected) = (Vec::new(), Aggregate::default());
        for packet in range {
            if let Fate::Decoded(numbers) = std::mem::replace(&mut packets[packet], Fate::Dropped) {
                decoded.push(numbers);
                expected = expected.and(self.packets[packet].expected());
            }
        }
        Window {
            last,
            packets: decoded,
            expected,
        }
    }

    /// A window is aggregated.
    pub fn emit(&self, window: &Window, aggregate: Aggregate) {
        assert_eq!(aggregate, window.expected, "a wrong result");
        self.emitted.done(&self.arrivals, window.last);
    }

    /// Packets of a batch of the backfill.
    pub fn archive(&self) -> &[Packet] {
        &self.archive
    }

    /// Decodes and aggregates an archived packet: one leaf.
    pub fn backfill(&self, packet: &Packet) {
        let aggregate = packet.decode().aggregate(1);
        assert_eq!(aggregate, packet.expected(), "a wrong result");
        self.backfilled.fetch_add(1, Ordering::Relaxed);
    }
}

/// Aggregates a packet of a window: one leaf.
pub fn aggregate(packet: &Arc<Decoded>) -> Aggregate {
    packet.aggregate(AGGREGATE_PASSES)
}

/// The contenders that the bar on the backfill compares with: the arrangement without nice threads drops packets, so it
/// has more time left for the backfill.
const NICE: &[&str] = &[NAMES[1], NAMES[2]];

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        run: Duration::from_millis(scale.pick(5000, 300)),
        warm_up: Duration::from_millis(scale.pick(500, 50)),
    };
    let mut experiment = Experiment::new(
        "stream",
        "a stream pipeline: the watermark's lag with slow decoders, above it windows, below it a backfill, 2 workers",
    )
    .table(
        "tokio-two-pools",
        &[
            "lag_p99_ns",
            "lag_p50_ns",
            "lag_p95_ns",
            "emit_p50_ns",
            "emit_p99_ns",
            "emitted_share",
            "decoded_share",
            "batch_per_s",
            "threads",
            "peak_rss_bytes",
        ],
    )
    .bar(Bar::times_at_most("ours", "lag_p50_ns", 1.0, NAMES))
    .bar(Bar::times_at_most("ours", "lag_p99_ns", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "emitted_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "decoded_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "batch_per_s", 1.0, NICE));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(config, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
