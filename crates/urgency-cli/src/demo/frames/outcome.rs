//! What a contender of the frame loop achieved over all its turns.

use crate::demo::{contender::Contender, messages::FramesSaid, outcome::curve, turn::Span};
use urgency_measure::{Latencies, picture::Series};

/// One contender's results.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whose they are.
    pub contender: Contender,
    /// From the tick of each recorded frame until it was drawn.
    pub frames: Latencies,
    /// Frames that were due.
    pub due: u64,
    /// Of these, late, skipped, or never drawn.
    pub missed: u64,
    /// From the tick of each recorded buffer of audio until it was full.
    pub audio: Latencies,
    /// Decoding: grains of about 100 us of processor time.
    pub decoding: Span,
    /// Why it has no further turn.
    pub failure: Option<String>,
}

impl Outcome {
    /// No turn yet.
    pub fn new(contender: Contender) -> Self {
        Outcome {
            contender,
            frames: Latencies::new(),
            due: 0,
            missed: 0,
            audio: Latencies::new(),
            decoding: Span::default(),
            failure: None,
        }
    }

    /// Adds a turn.
    pub fn add(&mut self, said: &FramesSaid) {
        self.frames.merge(&said.frames);
        self.audio.merge(&said.audio);
        self.due += said.due;
        self.missed += said.missed();
        self.decoding = self.decoding.and(Span {
            units: said.grains,
            ns: said.ns,
        });
    }

    /// The distributions that are drawn.
    pub fn curves(&self) -> [Series; 2] {
        let of = |what: &str, is_thin, latencies| {
            let name = format!("{}, {what}", self.contender.title());
            curve(&name, self.contender, is_thin, latencies)
        };
        [
            of("frames", false, &self.frames),
            of("audio", true, &self.audio),
        ]
    }
}
