//! A stream pipeline: packets from four sources at a fixed rate, slow decoders, a watermark, windows that are to be
//! emitted in time, and a backfill of late data below.
//!
//! - A packet's time is when it is due. Decoding it takes 2 to 30 ms without a scheduling point, 60 % of two
//!   processors over all. A packet whose decoding has not begun [`PATIENCE`] after that is dropped.
//! - The *watermark* has passed a packet when that and all before it are decoded or dropped. `lag_*` is from a
//!   packet's time until the watermark passes it.
//! - A *window* holds the packets of 100 ms of a stretch of load. When the watermark has passed its last one, its
//!   decoded packets are aggregated, each in a leaf of some 300 us, in parallel. `emit_*` is from the window's last
//!   packet until that is done; within [`DEADLINE`] is in time (`emitted_share`).
//! - The *backfill* decodes and aggregates archived packets without end, 16 to a batch that can go in parallel, some
//!   5 ms each: `units_per_s` is packets a second.
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
use std::collections::VecDeque;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use urgency_measure::client::pacer::{Paced, Pacer};
use urgency_measure::client::stamps::Stamps;
use urgency_measure::events::{Events, Log};
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

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
/// Packets that differ; then the same come again.
const DIFFERENT: usize = 512;
/// Passes over a decoded packet in its window.
const AGGREGATE_PASSES: u32 = 60;
/// From a packet's time until it is too late to begin with it.
const PATIENCE: Duration = Duration::from_millis(80);
/// From a window's last packet until its aggregate is late.
const DEADLINE: Duration = Duration::from_millis(100);
/// The series of the packets that were too late.
const DROPPED: &str = "dropped";

/// The pipeline with its load.
pub struct Pipeline {
    packets: Vec<Packet>,
    archive: Vec<Packet>,
    progress: Mutex<Progress>,
    /// By packet: the watermark has passed it.
    passed: Stamps,
    /// By packet, for the last one of each window: the window is emitted.
    emitted: Stamps,
    dropped: Log,
    backfilled: AtomicU64,
}

/// How far the packets are.
#[derive(Default)]
struct Progress {
    packets: Vec<Fate>,
    /// The first packet that the watermark has not passed.
    watermark: usize,
    /// The packets of each window that it has not passed.
    windows: VecDeque<Range<usize>>,
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
    /// A pipeline at which nothing has arrived.
    pub fn new() -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(19);
        let packet = |_| {
            // Most packets are small: the share to the third.
            let (least, most) = PASSES;
            let passes = least + (f64::from(most - least) * random.f64().powi(3)) as u32;
            Packet::random(&mut random, passes)
        };
        let packets: Vec<_> = (0..DIFFERENT).map(packet).collect();
        let archive: Vec<Packet> = (0..BATCH)
            .map(|_| Packet::random(&mut random, ARCHIVED_PASSES))
            .collect();
        Arc::new(Pipeline {
            progress: Mutex::default(),
            passed: Stamps::default(),
            emitted: Stamps::default(),
            packets,
            archive,
            dropped: Log::default(),
            backfilled: AtomicU64::new(0),
        })
    }

    /// Writes the packets' numbers into `socket`, and gives the sample.
    pub fn measure(self: &Arc<Self>, lengths: Lengths, socket: UnixStream) -> Sample {
        let pacer = Pacer::new(self.clone(), socket, sources);
        loaded::measure(pacer, lengths, summarize)
    }

    fn packet(&self, packet: usize) -> &Packet {
        &self.packets[packet % DIFFERENT]
    }

    /// Decodes a packet, or drops it if it is late; returns the windows that the watermark passes by that.
    pub fn decode(&self, packet: usize) -> Vec<Window> {
        let fate = if self.passed.since(packet) > PATIENCE {
            self.dropped.done(self.passed.due(packet));
            Fate::Dropped
        } else {
            Fate::Decoded(Arc::new(self.packet(packet).decode()))
        };
        let mut progress = self.progress.lock().expect("nobody panics");
        progress.packets[packet] = fate;
        while let Some(Fate::Decoded(_) | Fate::Dropped) = progress.packets.get(progress.watermark)
        {
            self.passed.done(progress.watermark);
            progress.watermark += 1;
        }
        let mut windows = Vec::new();
        while let Some(window) = progress.windows.front().cloned()
            && window.end <= progress.watermark
        {
            progress.windows.pop_front();
            windows.push(self.window(window, &mut progress.packets));
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
                expected = expected.and(self.packet(packet).expected());
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
        self.emitted.done(window.last);
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

impl Paced for Pipeline {
    fn expect(&self, first: usize, due: &[u64]) {
        let mut progress = self.progress.lock().expect("nobody panics");
        self.passed.expect_all(first, due);
        progress.packets.extend(due.iter().map(|_| Fate::Expected));
        // The first packet is at the beginning.
        let window_of = |at: &u64| (at - due[0]) / WINDOW.as_nanos() as u64;
        let mut packet = first;
        for window in due.chunk_by(|a, b| window_of(a) == window_of(b)) {
            let end = packet + window.len();
            progress.windows.push_back(packet..end);
            self.emitted.expect(end - 1, window[window.len() - 1]);
            packet = end;
        }
    }

    fn is_done(&self) -> bool {
        self.passed.are_done() && self.emitted.are_done()
    }

    fn units(&self) -> u64 {
        self.backfilled.load(Ordering::Relaxed)
    }

    fn events(&self) -> (Events, Sample) {
        let mut events = self.passed.events("lag");
        events.append(self.emitted.events("emit"));
        events.add(DROPPED, self.dropped.events());
        (events, Sample::new())
    }
}

/// When packets come: each source has a phase of its own.
fn sources(length: Duration) -> Vec<Duration> {
    let source = |source: u32| {
        let phase = PERIOD * (source * source) / 17;
        let times = (0..).map(move |n| phase + PERIOD * n);
        times.take_while(move |&at| at < length)
    };
    let mut due: Vec<Duration> = (0..SOURCES).flat_map(source).collect();
    due.sort();
    due
}

/// What is said about packets and windows.
fn summarize(events: &Events) -> Sample {
    let (dropped, all) = (events.of(DROPPED).len(), events.of("lag").len());
    events
        .sample("lag")
        .with_all("", &events.sample("emit"))
        .with("emitted_share", events.share_within("emit", DEADLINE))
        .with("decoded_share", 1.0 - dropped as f64 / all.max(1) as f64)
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
    let lengths = Lengths {
        warm_up: Duration::from_millis(scale.pick(500, 50)),
        run: Duration::from_millis(scale.pick(5000, 300)),
        alone: Duration::ZERO,
        after: Duration::from_millis(scale.pick(200, 20)),
    };
    let slices = Slices {
        length: WINDOW * 4,
        count: scale.pick(20, 2),
        reach: Duration::from_millis(40),
        summarize,
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
            "units_per_s",
            "threads_peak",
            "peak_rss_bytes",
        ],
    )
    .bar(Bar::times_at_most("ours", "lag_p50_ns", 1.0, NAMES))
    .bar(Bar::times_at_most("ours", "lag_p99_ns", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "emitted_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "decoded_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "units_per_s", 1.0, NICE));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(lengths, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(lengths));
    vec![experiment.sliced(slices)]
}
