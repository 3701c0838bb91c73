//! A game or a video editor: a frame 60 times a second, audio above it, decoders below, on two processors.
//!
//! - A *frame* has three stages of 200 forked items of 16 to 100 us: 12 ms of processor time, 6 ms on both
//!   processors. It is due at its tick and late after the next one; ticks that pass while a frame is drawn are
//!   skipped. `frame_*` is the time from a tick until its frame is drawn.
//! - *Audio* fills a buffer (100 us of work) each 5 ms. `audio_*` is the time from its tick until the buffer is
//!   full; a buffer that is late keeps its tick.
//! - Four *decoders* compute pieces of 5 to 80 ms without a scheduling point, each piece a closure that begins
//!   the next. `units_per_s` counts grains of 100 us of their work.
//!
//! Contenders: `ours` has three levels and is otherwise as shipped; `ours-privileged` also asks for
//! `real_time_polling`; in `ours-checking` the decoders come to a scheduling point after each grain; `ours-user` is
//! `ours` as a user without privileges. `two-pools` is what an expert would do today: a rayon pool for frames, one at
//! niceness 19 for the decoders, and a thread for audio; `two-pools-fifo` has that thread in the class SCHED_FIFO.
//!
//! `unit_ns` is what a unit of work took before the load (about 1000): it tells a slow machine from a slow scheduler.

#[cfg(feature = "ours")]
mod ours;
mod two_pools;

use std::time::Duration;
use urgency_measure::events::{Event, Events, Log};
use urgency_measure::frame::{self, AUDIO, FRAME};
use urgency_measure::gate::Gate;
use urgency_measure::loaded::{self, Lengths, Loaded};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// The frames' pulse.
const FRAMES: usize = 0;
/// The audio's pulse.
const BUFFERS: usize = 1;

/// What the loops of a contender share: when there is load, and what came of it.
pub struct Scene {
    gate: Gate,
    frames: Log,
    skipped: Log,
    audio: Log,
}

impl Scene {
    /// A scene for the rest of the process.
    fn new() -> &'static Self {
        Box::leak(Box::new(Scene {
            gate: Gate::new(2),
            frames: Log::default(),
            skipped: Log::default(),
            audio: Log::default(),
        }))
    }

    /// The next frame's tick after `last`, if there is load.
    fn next_frame(&self, last: u64) -> Option<u64> {
        self.gate.next(FRAMES, FRAME, last)
    }

    /// The frame of `tick` is drawn; returns the last tick that has passed.
    fn frame_is_drawn(&self, tick: u64) -> u64 {
        self.frames.done(tick);
        let (now, mut last) = (machine::now_ns(), tick);
        while let Some(skipped) = self.next_frame(last).filter(|&next| next <= now) {
            self.skipped.add(Event {
                due: skipped,
                latency: now - skipped,
            });
            last = skipped;
        }
        last
    }

    /// The next tick of audio after `last`, if there is load.
    fn next_buffer(&self, last: u64) -> Option<u64> {
        self.gate.next(BUFFERS, AUDIO, last)
    }

    /// Fills the buffer of `tick`.
    fn fill_buffer(&self, tick: u64) {
        frame::fill_buffer();
        self.audio.done(tick);
    }
}

impl Loaded for &'static Scene {
    fn open(&mut self, start: u64, end: u64) {
        self.gate.open(start, end);
    }

    fn is_drained(&mut self) -> bool {
        self.gate.is_drained()
    }

    fn units(&self) -> u64 {
        frame::decoded()
    }

    fn events(self) -> (Events, Sample) {
        let mut events = Events::default();
        for (series, log) in [
            ("frame", &self.frames),
            ("skipped", &self.skipped),
            ("audio", &self.audio),
        ] {
            events.add(series, log.events());
        }
        (events, Sample::new())
    }
}

/// Lets a contender have its load; `start` starts its loops.
fn measure(scene: &'static Scene, lengths: Lengths, start: impl FnOnce()) -> Sample {
    let unit = frame::unit_ns();
    start();
    loaded::measure(scene, lengths, summarize).with("unit_ns", unit)
}

/// What is said about a scene's events.
fn summarize(events: &Events) -> Sample {
    let is_late = |event: &&Event| event.latency > FRAME.as_nanos() as u64;
    let late = events.of("frame").iter().filter(is_late).count();
    let missed = late + events.of("skipped").len();
    events
        .sample("frame")
        .with_all("", &events.sample("audio"))
        .with("late_or_skipped", missed as f64)
}

const COLUMNS: [&str; 9] = [
    "frame_p99_ns",
    "frame_p50_ns",
    "frame_p95_ns",
    "late_or_skipped",
    "audio_p50_ns",
    "audio_p99_ns",
    "units_per_s",
    "threads_peak",
    "peak_rss_bytes",
];

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let lengths = Lengths {
        warm_up: FRAME * scale.pick(30, 3),
        run: FRAME * scale.pick(360, 12),
        alone: Duration::ZERO,
        after: Duration::ZERO,
    };
    let peer = &["two-pools"];
    let experiment = Experiment::new(
        "frame",
        "60 frames a second of 12 ms, audio each 5 ms above, 4 decoders of 5 to 80 ms below, 2 workers",
    )
    .table("two-pools", &COLUMNS)
    .contender("two-pools", move || two_pools::run(lengths, false))
    .contender("two-pools-fifo", move || two_pools::run(lengths, true));
    #[cfg(feature = "ours")]
    let experiment = {
        use ours::Variant;
        experiment
            .contender("ours", move || ours::run(lengths, Variant::Default))
            .contender("ours-user", move || ours::run(lengths, Variant::User))
            .contender("ours-privileged", move || {
                ours::run(lengths, Variant::Privileged)
            })
            .contender("ours-checking", move || {
                ours::run(lengths, Variant::Checking)
            })
    };
    let bars = [
        "frame_p50_ns",
        "frame_p99_ns",
        "late_or_skipped",
        "audio_p99_ns",
    ];
    let of = |ours| bars.map(|metric| Bar::times_at_most(ours, metric, 1.0, peer));
    let all = of("ours").into_iter().chain(of("ours-user"));
    let slices = Slices {
        length: FRAME * scale.pick(12, 4),
        count: scale.pick(30, 2),
        reach: FRAME,
        summarize,
    };
    vec![all.fold(experiment, Experiment::bar).sliced(slices)]
}
