//! The demo, in two scenes: interactive requests beside endless compute, and a frame loop beside decoders, each under
//! its contenders in turn. The second is in `frames/`.
//!
//! The requests take three kinds of processes, all of this program:
//!
//!     parent ──tells──> server (one contender: answers and computes)
//!        │                 ^
//!        └──starts──> client (sends requests, measures)
//!
//! The parent only coordinates: it sleeps nearly all the time. Each turn has a server process of its own, so
//! that nothing of one contender disturbs another, and a client process of its own.
//!
//! Reading order: `plan.rs` (which turns, how long), `turn.rs` (what happens in one), `server/` (the
//! contenders: the code that a user would write), then what is made of the numbers: `outcome.rs`, `table.rs`,
//! `words.rs`, `raw.rs`. The client, the distributions and the drawer are in `urgency-measure`.
//!
//! A contender that fails loses its further turns; the others go on, their results are shown and written as
//! ever, and the exit code is 1. What can be known to fail is tried before the first turn: files that cannot
//! be written, a port that is taken.

pub mod compute;
mod contender;
mod error;
pub mod files;
pub mod frames;
mod messages;
mod options;
mod outcome;
mod plan;
mod progress;
mod raw;
pub mod server;
mod table;
mod turn;
mod words;

pub use error::Error;
pub use options::Options;

use contender::Contender;
use files::{Wanted, are_one};
use options::{Kind, ServeAt};
use outcome::Outcome;
use plan::Plan;
use progress::Progress;
use std::{
    net::{Ipv4Addr, TcpListener},
    process::ExitCode,
};
use turn::Gained;
use urgency_measure::others::Moment;
use urgency_measure::output;
use urgency_measure::picture::{Axis, Chart, Picture};
use urgency_measure::table as numbers;

/// The second scene, in a sentence.
const FRAMES: &str =
    "60 frames per second of 600 forked items beside four decoders, with audio each 5 ms.";
/// The share of the machine that other programs may use without a word about it.
const QUIET: f64 = 0.05;

/// The parent process.
pub fn run(options: &Options) -> ExitCode {
    let json = options.json.as_deref();
    if json.is_some_and(|json| are_one(json, &options.picture)) {
        let path = options.picture.display();
        eprintln!("urgency demo: --picture and --json are both {path}: name two files");
        return ExitCode::from(2);
    }
    match try_run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => {
            for error in errors {
                eprintln!("urgency demo: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn try_run(options: &Options) -> Result<(), Vec<String>> {
    let told = |error: Error| vec![error.to_string()];
    let picture = Wanted {
        what: "the picture",
        option: "--picture",
        path: &options.picture,
    };
    let json = options.json.as_deref().map(|path| Wanted {
        what: "the raw results",
        option: "--json",
        path,
    });
    probe(options, picture, json).map_err(told)?;

    let measured = measure(options);
    let outcomes = &measured.outcomes;
    let frames = &measured.frames;
    if !outcomes.is_empty() {
        print(&format!("\n{}", table::table(outcomes, options.kind)));
        let meaning = words::meaning(outcomes, options.level, options.kind);
        print(&format!("\n{meaning}\n"));
    }
    if !frames.is_empty() {
        print(&format!("\n{}", frames::words::table(frames)));
        print(&format!("\n{}\n", frames::words::meaning(frames)));
    }
    print(&format!("\n{}", measured.caveats()));

    let failures = outcomes.iter().map(|outcome| &outcome.failure);
    let failures = failures.chain(frames.iter().map(|outcome| &outcome.failure));
    let mut errors: Vec<_> = failures.flatten().cloned().collect();
    let drawn = draw(options, &measured).and_then(|svg| picture.write(&svg));
    match drawn {
        Ok(()) => print(&format!("Picture: {}\n", options.picture.display())),
        Err(error) => errors.push(error.to_string()),
    }
    if let Some(json) = json {
        let conditions = raw::Conditions {
            client_in_real_time_class: measured.real_time.as_ref().map(Result::is_ok),
            share_used_by_others: measured.others,
        };
        match json.write(&raw::json(options, conditions, outcomes, frames)) {
            Ok(()) => print(&format!("Raw results: {}\n", json.path.display())),
            Err(error) => errors.push(error.to_string()),
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// The picture: a panel for each scene that ran.
fn draw(options: &Options, measured: &Measured) -> Result<String, Error> {
    let scenario = scenario(options).replace('\n', " ");
    let panel = |title: &str, subtitle: &str, shares_of: &str, times: &str, series| Chart {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        across: Axis::shares(shares_of),
        up: Axis::logarithmic(times),
        bar: None,
        series,
    };
    let mut charts = Vec::new();
    if !measured.outcomes.is_empty() {
        charts.push(panel(
            "How long interactive requests take beside endless compute",
            &scenario,
            "share of the requests",
            "answered within, milliseconds",
            measured.outcomes.iter().map(Outcome::curve).collect(),
        ));
    }
    if !measured.frames.is_empty() {
        let curves = measured.frames.iter().flat_map(frames::Outcome::curves);
        charts.push(panel(
            "How long frames and audio take beside decoders",
            FRAMES,
            "share of the frames, and of the buffers of audio",
            "done within, milliseconds",
            curves.collect(),
        ));
    }
    let picture = Picture {
        title: String::new(),
        size: (960, 600),
        columns: 1,
        charts,
    };
    picture.draw().map_err(Error::Draw)
}

/// Fails now with what would fail later.
fn probe(options: &Options, picture: Wanted<'_>, json: Option<Wanted<'_>>) -> Result<(), Error> {
    picture.probe()?;
    json.map_or(Ok(()), Wanted::probe)?;
    match options.port {
        None => Ok(()),
        Some(port) => TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map(drop)
            .map_err(|cause| Error::Listen { port, cause }),
    }
}

/// All that was measured.
struct Measured {
    outcomes: Vec<Outcome>,
    frames: Vec<frames::Outcome>,
    /// Whether the client was in the real-time class in all turns, or why not; unknown if no turn succeeded.
    real_time: Option<Result<(), String>>,
    /// The share of the machine that other programs used.
    others: Option<f64>,
}

fn measure(options: &Options) -> Measured {
    let contenders = options.among(&Contender::REQUESTS);
    let for_frames = match options.among(&Contender::FRAMES).is_empty() {
        true => 0.0,
        false if contenders.is_empty() => options.duration,
        false => options.duration * frames::SHARE,
    };
    let plan = Plan::new(&contenders, options.duration - for_frames);
    let progress = Progress::new(options.duration);
    let begin = Moment::now();
    let scenes = [
        (!contenders.is_empty()).then(|| scenario(options)),
        (for_frames > 0.0).then(|| FRAMES.to_owned()),
    ];
    let scenes: Vec<_> = scenes.into_iter().flatten().collect();
    let (scenes, seconds) = (scenes.join("\n"), options.duration);
    progress.line(&format!("{scenes}\nThis takes about {seconds:.0} s.\n"));
    let mut measured = Measured {
        outcomes: contenders.into_iter().map(Outcome::new).collect(),
        frames: Vec::new(),
        real_time: None,
        others: None,
    };
    let count = plan.turns.len();
    for (number, turn) in (1..).zip(&plan.turns) {
        let outcomes = measured.outcomes.iter_mut();
        let outcome = outcomes
            .filter(|outcome| outcome.failure.is_none())
            .find(|outcome| outcome.contender == turn.contender);
        let Some(outcome) = outcome else {
            continue;
        };
        let title = format!("[{number}/{count}] {}", turn.contender.title());
        let taken = turn::take(turn, options, &mut |doing| {
            progress.live(&format!("{title}: {doing}"));
        });
        match taken {
            Ok(gained) => {
                progress.line(&format!("{title}: {}", summary(&gained)));
                outcome.add(&gained);
                let before = measured.real_time.take().unwrap_or(Ok(()));
                let now = gained.not_real_time.map_or(Ok(()), Err);
                measured.real_time = Some(now.and(before));
            }
            Err(error) => {
                progress.line(&format!("{title}: failed: {error}"));
                outcome.failure = Some(error.to_string());
            }
        }
    }
    measured.frames = frames::measure(options, for_frames, &progress);
    let end = Moment::now();
    measured.others = begin.is_known().then(|| begin.share_until(end));
    measured
}

impl Measured {
    /// What one must know to trust the numbers.
    fn caveats(&self) -> String {
        let mut text = match &self.real_time {
            None => String::new(),
            Some(Ok(())) => "The load client ran in the real-time class (SCHED_FIFO), so its own waits are not part of the times.\n".to_owned(),
            Some(Err(reason)) => format!(
                "The load client could not enter the real-time class ({reason}): its own waits for a processor are part of the times, for all \
                 contenders alike.\n"
            ),
        };
        if let Some(others) = self.others.filter(|share| *share > QUIET) {
            text.push_str(&format!(
                "Other programs used {} of the machine meanwhile, which makes everything slower and the longest times longer: compare again when it \
                 is quiet.\n",
                numbers::percent(others)
            ));
        }
        let asked = self
            .outcomes
            .iter()
            .map(|outcome| outcome.latencies.asked());
        if asked.min().is_some_and(|fewest| fewest < 1000) {
            text.push_str(
                "Some had less than 1000 requests, so their p99.9 is their slowest one: give it more time with --duration.\n",
            );
        }
        text
    }
}

/// One turn in a line.
fn summary(gained: &Gained) -> String {
    let mut text = format!("{} answered", gained.latencies.answered_count());
    let p50 = gained.latencies.quantile(0.5);
    if let (Some(p50), Some(p99)) = (p50, gained.latencies.quantile(0.99)) {
        let (p50, p99) = (numbers::ms(p50.ms), numbers::ms(p99.ms));
        text.push_str(&format!(", p50 {p50} ms, p99 {p99} ms"));
    }
    if let Some(rates) = gained.compute {
        let kept = rates.loaded.per_s() / rates.alone.per_s();
        text.push_str(&format!(", compute keeps {}", numbers::percent(kept)));
    }
    text
}

/// What is shown, in a sentence.
fn scenario(options: &Options) -> String {
    let compute = match options.kind {
        Kind::ForkJoin => "fork-join compute",
        Kind::Sequential => "sequential loops",
    };
    let level = match options.level {
        ServeAt::Interactive => "interactive",
        ServeAt::Batch => "batch",
        ServeAt::Background => "background",
    };
    let workers = match options.worker_count() {
        1 => "1 worker".to_owned(),
        count => format!("{count} workers"),
    };
    format!(
        "{} requests per second beside endless {compute}, {workers}.\nUnder Urgency the requests are at level {level}, the compute at batch.",
        options.rate
    )
}

/// Prints to standard output. An error is ignored: a closed output does not end the demo.
fn print(text: &str) {
    let _ = output::say(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_about_the_class_of_a_client_that_never_ran() {
        let measured = |real_time| Measured {
            outcomes: vec![Outcome::new(Contender::Urgency)],
            frames: Vec::new(),
            real_time,
            others: None,
        };
        assert!(!measured(None).caveats().contains("real-time class"));
        let caveats = measured(Some(Ok(()))).caveats();
        assert!(caveats.contains("ran in the real-time class"), "{caveats}");
        let caveats = measured(Some(Err("refused".into()))).caveats();
        assert!(caveats.contains("could not enter the real-time class (refused)"));
    }
}
