//! The frame loop: the demo's second scene.
//!
//! A frame 60 times a second, forked into 600 items of 16 to 100 us; audio each 5 ms above it; four decoders below,
//! which compute for 5 to 80 ms without a look at anything else ([`urgency_measure::frame`]). Two contenders: Urgency
//! with three levels, and what an expert would build today, two Rayon pools (the decoders' at niceness 19) and a
//! thread for audio.
//!
//! The parent's side is here: it starts one process for each turn (`stage.rs`), waits for what it says, and adds it up.
//! There is no client and no server, because nothing arrives from outside: the ticks are the load.

mod outcome;
pub mod stage;
mod two_pools;
mod urgency;
pub mod words;

pub use outcome::Outcome;

use super::{
    contender::Contender,
    error::Error,
    messages::{FramesSaid, FramesSpec},
    options::Options,
    progress::Progress,
};
use std::time::Duration;
use urgency_measure::{Latencies, child::Child, table};

/// The share of the demo's time that the frame loop has, if both scenes have contenders.
pub const SHARE: f64 = 0.25;
/// Rounds: each contender has so many turns, in alternating order.
const ROUNDS: usize = 2;
/// What starting and ending a process takes, in seconds.
const START_S: f64 = 0.06;
/// The part of a turn before anything is recorded.
const WARM_UP: f64 = 0.15;
/// How long a process may be silent after its time. Machines can be very busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Takes all turns within so many seconds.
pub fn measure(options: &Options, seconds: f64, progress: &Progress) -> Vec<Outcome> {
    let contenders = options.among(&Contender::FRAMES);
    let mut outcomes: Vec<_> = contenders.into_iter().map(Outcome::new).collect();
    let count = ROUNDS * outcomes.len();
    let turn_s = seconds / count.max(1) as f64;
    for turn in 0..count {
        let (round, place) = (turn / outcomes.len(), turn % outcomes.len());
        let place = (round + place) % outcomes.len();
        let outcome = &mut outcomes[place];
        if outcome.failure.is_some() {
            continue;
        }
        let contender = outcome.contender;
        let title = format!("[frames {}/{count}] {}", turn + 1, contender.title());
        progress.live(&format!("{title}: drawing"));
        match take(contender, options, turn_s) {
            Ok(said) => {
                progress.line(&format!("{title}: {}", summary(&said)));
                outcome.add(&said);
            }
            Err(error) => {
                progress.line(&format!("{title}: failed: {error}"));
                outcome.failure = Some(error.to_string());
            }
        }
    }
    outcomes
}

fn take(contender: Contender, options: &Options, seconds: f64) -> Result<FramesSaid, Error> {
    let usable = (seconds - START_S).max(seconds / 2.0);
    let ms = |share: f64| (usable * share * 1e3) as u64;
    let spec = FramesSpec {
        contender,
        workers: options.worker_count(),
        warm_up_ms: ms(WARM_UP),
        run_ms: ms(1.0 - WARM_UP),
    };
    let who = format!("the frame loop of {}", contender.title());
    let mut child = Child::with_task(&who, "demo-frames", &spec)?;
    Ok(child.hear(Duration::from_secs_f64(usable) + PATIENCE)?)
}

/// One turn in a line.
fn summary(said: &FramesSaid) -> String {
    let p99 = |latencies: &Latencies| {
        let p99 = latencies.quantile(0.99);
        p99.map_or_else(|| "-".to_owned(), |p99| table::ms(p99.ms))
    };
    format!(
        "{} frames, p99 {} ms, {} late or skipped, audio p99 {} ms",
        said.frames.asked(),
        p99(&said.frames),
        said.missed(),
        p99(&said.audio)
    )
}
