//! An editor: keystrokes, each of which is to be seen at once, beside the indexing of a project.
//!
//! A keystroke comes every 30 to 80 ms, whatever became of the one before. It is followed by two steps:
//!
//! 1. *Highlight*: the visible text is coloured anew, in 40 chunks of 50 to 300 us that can go in parallel. The time
//!    from the keystroke to its end is `highlight_*`.
//! 2. *Complete*: all names of the project are searched for the best fit, in 16 parts of some 500 us. It is of use
//!    within 50 ms from the keystroke: `completed_share`. It is computed to its end in any case, so that all contenders
//!    do the same.
//!
//! Meanwhile the project's files are parsed over and over, 1 to 60 ms each, without a scheduling point:
//! `units_per_s` is files a second.
//!
//! Contenders:
//!
//! - `ours`: three levels. The editor is a task that forks; completion and indexing are closures that fork.
//! - `tokio-rayon`, `tokio-rayon-nice`, `tokio-two-pools`: the editor is a task of Tokio that waits for forks in the
//!   urgent pool; files are jobs in the batch pool.

#[cfg(feature = "ours")]
mod ours;
mod text;
mod tokio_rayon;

use crate::engines::pair::{ARRANGEMENTS, NAMES};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
pub use text::Fit;
use text::{Names, Text};
use urgency_measure::client::pacer::{Paced, Pacer, by_gaps};
use urgency_measure::client::stamps::Stamps;
use urgency_measure::events::Events;
use urgency_measure::loaded::{self, Lengths};
use urgency_measure::slices::Slices;
use urgency_measure::{Bar, Experiment, Sample, Scale};

/// How large everything is.
#[derive(Clone, Copy)]
pub struct Config {
    lengths: Lengths,
    files: usize,
}

/// Chunks of the visible text.
const CHUNKS: u32 = 40;
/// Passes over a chunk, at least and at most: some 17 us each.
const CHUNK_PASSES: (u32, u32) = (3, 17);
/// Passes over a file.
const FILE_PASSES: (u32, u32) = (60, 3400);
/// Files under way at once, each a job of its own: as many as there are workers. A parallel loop over all files would
/// end each round with one file on one worker and nothing on the other.
const AT_ONCE: usize = 2;
/// Bytes that a pass goes over.
const PASS: usize = 8192;
/// Parts of the index of names, and names of each.
const PARTS: usize = 16;
const NAMES_OF_PART: usize = 25_000;
/// From a keystroke until a completion is of no use.
const DEADLINE: Duration = Duration::from_millis(50);
/// What was typed when a keystroke comes.
const TYPED: [&str; 4] = ["que", "urgent", "sched", "abcdef"];

/// Text with how many passes it takes.
pub struct Work {
    text: Text,
    passes: u32,
}

/// The editor with its load.
pub struct Editor {
    /// Chunks that can be seen.
    pub visible: Vec<Work>,
    /// Parts of the index.
    pub names: Vec<Names>,
    /// The project's files.
    pub files: Vec<Work>,
    tokens: u64,
    best: Vec<Fit>,
    highlighted: Stamps,
    completed: Stamps,
    parsed: AtomicU64,
}

impl Editor {
    /// An editor, at which no key has been struck.
    pub fn new(config: Config) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(17);
        let visible: Vec<Work> = (0..CHUNKS)
            .map(|chunk| {
                let (least, most) = CHUNK_PASSES;
                let passes = least + (most - least) * (chunk * 7 % CHUNKS) / (CHUNKS - 1);
                Work::random(&mut random, passes)
            })
            .collect();
        let files = (0..config.files).map(|file| {
            // Most files are small: the share of a file to the third.
            let share = (file * 11 % config.files) as f64 / (config.files - 1) as f64;
            let (least, most) = FILE_PASSES;
            let passes = least + (f64::from(most - least) * share.powi(3)) as u32;
            Work::random(&mut random, passes)
        });
        let files: Vec<Work> = files.collect();
        let names: Vec<Names> = (0..PARTS)
            .map(|_| Names::random(&mut random, NAMES_OF_PART))
            .collect();
        let best = TYPED.map(|typed| best(names.iter().map(|part| part.best(typed))));
        Arc::new(Editor {
            tokens: visible.iter().map(|chunk| chunk.text.lex(0)).sum(),
            best: best.into(),
            highlighted: Stamps::default(),
            completed: Stamps::default(),
            visible,
            names,
            files,
            parsed: AtomicU64::new(0),
        })
    }

    /// Writes the keystrokes' numbers into `socket`, and gives the sample.
    pub fn measure(self: &Arc<Self>, config: Config, socket: UnixStream) -> Sample {
        let mut random = fastrand::Rng::with_seed(23);
        let mut gap = move || Duration::from_micros(random.u64(30_000..80_000));
        let pacer = Pacer::new(self.clone(), socket, move |length| {
            by_gaps(length, &mut gap)
        });
        loaded::measure(pacer, config.lengths, summarize)
    }

    /// The text is coloured: it has so many tokens.
    pub fn highlighted(&self, keystroke: usize, tokens: u64) {
        assert_eq!(tokens, self.tokens, "a wrong result");
        self.highlighted.done(keystroke);
    }

    /// What was typed when a keystroke came.
    pub fn typed(&self, keystroke: usize) -> &'static str {
        TYPED[keystroke % TYPED.len()]
    }

    /// The best fit of all parts is found.
    pub fn completed(&self, keystroke: usize, best: Fit) {
        assert_eq!(best, self.best[keystroke % TYPED.len()], "a wrong result");
        self.completed.done(keystroke);
    }

    /// Parses a file of the project.
    pub fn parse(&self, file: &Work) {
        file.run();
        self.parsed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Paced for Editor {
    fn expect(&self, first: usize, due: &[u64]) {
        self.highlighted.expect_all(first, due);
        self.completed.expect_all(first, due);
    }

    fn is_done(&self) -> bool {
        self.highlighted.are_done() && self.completed.are_done()
    }

    fn units(&self) -> u64 {
        self.parsed.load(Ordering::Relaxed)
    }

    fn events(&self) -> (Events, Sample) {
        let mut events = self.highlighted.events("highlight");
        events.append(self.completed.events("complete"));
        (events, Sample::new())
    }
}

/// What is said about the keystrokes.
fn summarize(events: &Events) -> Sample {
    events
        .sample("highlight")
        .with_all("", &events.sample("complete"))
        .with("completed_share", events.share_within("complete", DEADLINE))
}

impl Work {
    fn random(random: &mut fastrand::Rng, passes: u32) -> Self {
        let text = Text::random(random, PASS);
        Work { text, passes }
    }

    /// Does it, and returns the tokens.
    pub fn run(&self) -> u64 {
        self.text.lex(self.passes)
    }
}

/// The best of several.
pub fn best(fits: impl IntoIterator<Item = Fit>) -> Fit {
    fits.into_iter().max().unwrap_or_default()
}

/// The experiment.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let config = Config {
        lengths: Lengths {
            warm_up: Duration::from_millis(scale.pick(500, 50)),
            run: Duration::from_millis(scale.pick(5500, 330)),
            alone: Duration::ZERO,
            after: Duration::from_millis(scale.pick(200, 20)),
        },
        files: scale.pick(48, 8),
    };
    let slices = Slices {
        length: Duration::from_millis(400),
        count: scale.pick(20, 2),
        reach: Duration::from_millis(20),
        summarize,
    };
    let mut experiment = Experiment::new(
        "editor",
        "an editor: from a keystroke, each 30 to 80 ms, to highlighted text, beside the indexing of a project, 2 workers",
    )
    .table(
        "tokio-two-pools",
        &[
            "highlight_p99_ns",
            "highlight_p50_ns",
            "highlight_p95_ns",
            "complete_p50_ns",
            "completed_share",
            "units_per_s",
            "threads_peak",
            "peak_rss_bytes",
        ],
    )
    .bar(Bar::times_at_most("ours", "highlight_p50_ns", 1.0, NAMES))
    .bar(Bar::times_at_most("ours", "highlight_p99_ns", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "completed_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "units_per_s", 1.0, NAMES));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(config, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment.sliced(slices)]
}
