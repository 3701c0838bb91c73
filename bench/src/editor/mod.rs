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
//! `batch_per_s` is files a second.
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
use urgency_measure::client::pacer::{Schedule, Stamps};
use urgency_measure::{Bar, Experiment, Sample, Scale, machine};

/// How large everything is.
#[derive(Clone, Copy)]
pub struct Config {
    keystrokes: usize,
    warm_up: Duration,
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
    keystrokes: Schedule,
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
    /// An editor; the first keystroke comes soon.
    pub fn new(config: Config) -> Arc<Self> {
        let mut random = fastrand::Rng::with_seed(17);
        let mut at = Duration::ZERO;
        let due = (0..config.keystrokes).map(|_| {
            at += Duration::from_micros(random.u64(30_000..80_000));
            at
        });
        let due = due.collect();
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
        let keystrokes = Schedule::new(due, config.warm_up);
        Arc::new(Editor {
            tokens: visible.iter().map(|chunk| chunk.text.lex(0)).sum(),
            best: best.into(),
            highlighted: keystrokes.stamps(),
            completed: keystrokes.stamps(),
            keystrokes,
            visible,
            names,
            files,
            parsed: AtomicU64::new(0),
        })
    }

    /// Writes the keystrokes' numbers into `socket`, and gives the sample.
    pub fn measure(&self, socket: UnixStream) -> Sample {
        let paced = self.keystrokes.pace(&self.parsed, socket);
        let highlighted = self
            .keystrokes
            .sample(&self.highlighted, "highlight_", |_| true);
        let completed = self
            .keystrokes
            .sample(&self.completed, "complete_", |_| true);
        let in_time = self
            .keystrokes
            .share_within(&self.completed, DEADLINE, |_| true);
        paced
            .with_all("", &highlighted)
            .with_all("", &completed)
            .with("completed_share", in_time)
            .with("threads", machine::threads())
            .with("peak_rss_bytes", machine::peak_rss())
    }

    /// The text is coloured: it has so many tokens.
    pub fn highlighted(&self, keystroke: usize, tokens: u64) {
        assert_eq!(tokens, self.tokens, "a wrong result");
        self.highlighted.done(&self.keystrokes, keystroke);
    }

    /// What was typed when a keystroke came.
    pub fn typed(&self, keystroke: usize) -> &'static str {
        TYPED[keystroke % TYPED.len()]
    }

    /// The best fit of all parts is found.
    pub fn completed(&self, keystroke: usize, best: Fit) {
        assert_eq!(best, self.best[keystroke % TYPED.len()], "a wrong result");
        self.completed.done(&self.keystrokes, keystroke);
    }

    /// Parses a file of the project.
    pub fn parse(&self, file: &Work) {
        file.run();
        self.parsed.fetch_add(1, Ordering::Relaxed);
    }
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
        keystrokes: scale.pick(100, 6),
        warm_up: Duration::from_millis(scale.pick(500, 50)),
        files: scale.pick(48, 8),
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
            "batch_per_s",
            "threads",
            "peak_rss_bytes",
        ],
    )
    .bar(Bar::times_at_most("ours", "highlight_p50_ns", 1.0, NAMES))
    .bar(Bar::times_at_most("ours", "highlight_p99_ns", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "completed_share", 1.0, NAMES))
    .bar(Bar::times_at_least("ours", "batch_per_s", 1.0, NAMES));
    for (name, arrangement) in ARRANGEMENTS {
        experiment = experiment.contender(name, move || tokio_rayon::run(config, arrangement));
    }
    #[cfg(feature = "ours")]
    let experiment = experiment.contender("ours", move || ours::run(config));
    vec![experiment]
}
