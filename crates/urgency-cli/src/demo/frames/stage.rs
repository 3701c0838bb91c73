//! The process of one turn: the ticks of the frame loop, and what came of each.
//!
//! A tick is a number; its time is the start plus so many periods. The loops of a contender ask when their next tick is
//! due, wait for it in their own way, and say when its work is done. A tick that is due before the warm-up is over is
//! drawn and not recorded. A frame that is not drawn when the next tick has come makes that one *skipped*.
//!
//! The main thread belongs to none of the runtimes: it sleeps, reads the count of decoding at both ends, and prints
//! what was recorded. A loop that was starved does not keep it: a tick that was never done counts as missed.

use super::{two_pools, urgency};
use crate::demo::{
    contender::Contender,
    error::Error,
    messages::{FramesSaid, FramesSpec},
};
use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use urgency_measure::child::say;
use urgency_measure::frame::{self, AUDIO, FRAME};
use urgency_measure::latencies::Latencies;

/// From the start of the contender to the first tick.
const LEAD: Duration = Duration::from_millis(20);
/// How long what is due before the end may take after it.
const GRACE: Duration = Duration::from_millis(100);

/// What the loops of a contender share.
pub struct Stage {
    start: Instant,
    warm_up: Duration,
    length: Duration,
    recorded: Mutex<Recorded>,
}

struct Recorded {
    frames: Latencies,
    on_time: u64,
    audio: Latencies,
}

/// The process.
pub fn main(spec: &FramesSpec) -> Result<(), Error> {
    let warm_up = Duration::from_millis(spec.warm_up_ms);
    let length = warm_up + Duration::from_millis(spec.run_ms);
    let stage = Stage::new(warm_up, length);
    // Kept until the process ends: the decoders have no end.
    let _running: Box<dyn Send> = match spec.contender {
        Contender::Urgency => Box::new(urgency::start(spec, stage)?),
        Contender::TwoPools => Box::new(two_pools::start(spec, stage)?),
        other => {
            let line = format!("{} draws no frames", other.title());
            return Err(Error::unexpected(line));
        }
    };
    let meter = |at: Duration| {
        thread::sleep((stage.start + at).saturating_duration_since(Instant::now()));
        (Instant::now(), frame::decoded())
    };
    let (begin, before) = meter(warm_up);
    let (end, after) = meter(length);
    thread::sleep(GRACE);
    say(&stage.said(after - before, end - begin));
    std::process::exit(0)
}

impl Stage {
    /// A stage for the rest of the process.
    fn new(warm_up: Duration, length: Duration) -> &'static Self {
        Box::leak(Box::new(Stage {
            start: Instant::now() + LEAD,
            warm_up,
            length,
            recorded: Mutex::new(Recorded {
                frames: Latencies::new(),
                on_time: 0,
                audio: Latencies::new(),
            }),
        }))
    }

    /// When this frame is due; none if that is after the end.
    pub fn frame_due(&self, tick: u32) -> Option<Instant> {
        self.due(FRAME, tick)
    }

    /// This frame is drawn. The next one: those whose successors are due by now are skipped.
    pub fn frame_is_drawn(&self, tick: u32) -> u32 {
        let due = self.start + FRAME * tick;
        let late = Instant::now().saturating_duration_since(due);
        if self.is_recorded(due) {
            let mut recorded = self.recorded();
            recorded.frames.record(late);
            recorded.on_time += u64::from(late <= FRAME);
        }
        tick + 1 + (late.as_nanos() / FRAME.as_nanos()) as u32
    }

    /// When this buffer of audio is due; none if that is after the end.
    pub fn buffer_due(&self, tick: u32) -> Option<Instant> {
        self.due(AUDIO, tick)
    }

    /// Fills this buffer. The next one keeps its time, however late this one was.
    pub fn fill_buffer(&self, tick: u32) -> u32 {
        frame::fill_buffer();
        let due = self.start + AUDIO * tick;
        if self.is_recorded(due) {
            let late = Instant::now().saturating_duration_since(due);
            self.recorded().audio.record(late);
        }
        tick + 1
    }

    fn due(&self, period: Duration, tick: u32) -> Option<Instant> {
        let after = period * tick;
        (after < self.length).then(|| self.start + after)
    }

    fn is_recorded(&self, due: Instant) -> bool {
        due >= self.start + self.warm_up
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn said(&self, grains: u64, time: Duration) -> FramesSaid {
        let recorded = self.recorded();
        let before = |end: Duration| end.as_nanos().div_ceil(FRAME.as_nanos());
        FramesSaid {
            due: (before(self.length) - before(self.warm_up)) as u64,
            on_time: recorded.on_time,
            frames: recorded.frames.clone(),
            audio: recorded.audio.clone(),
            grains,
            ns: time.as_nanos() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_were_due_while_one_was_drawn_are_skipped_and_missed() {
        let mut stage = Stage {
            start: Instant::now() - FRAME * 7 - FRAME / 2,
            warm_up: FRAME * 2,
            length: FRAME * 10,
            recorded: Mutex::new(Recorded {
                frames: Latencies::new(),
                on_time: 0,
                audio: Latencies::new(),
            }),
        };
        assert_eq!(stage.frame_is_drawn(1), 8);
        stage.start = Instant::now() - FRAME * 8;
        assert_eq!(stage.frame_is_drawn(8), 9);
        let said = stage.said(5, FRAME);
        assert_eq!((said.due, said.frames.asked(), said.missed()), (8, 1, 7));
        assert!(stage.frame_due(9).is_some() && stage.frame_due(10).is_none());
    }
}
