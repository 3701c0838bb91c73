//! The contenders: what runs in a process of its own, and how it is called.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One way of sharing the machine between urgent work and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contender {
    /// Urgency with nothing but the requests: the baseline.
    Idle,
    /// Urgency: requests and compute in one runtime, at two levels.
    Urgency,
    /// Tokio answers, a Rayon pool beside it computes: the usual workaround.
    TokioRayon,
    /// A thread per connection and computing threads, scheduled by the kernel alone.
    Threads,
    /// Frames in one Rayon pool, decoders in another at niceness 19, a thread for audio: the expert's arrangement.
    TwoPools,
}

impl Contender {
    /// The contenders that answer requests, in the order of the table.
    pub const REQUESTS: [Contender; 4] = [
        Contender::Idle,
        Contender::Urgency,
        Contender::TokioRayon,
        Contender::Threads,
    ];
    /// The contenders that draw frames, in the order of the table.
    pub const FRAMES: [Contender; 2] = [Contender::Urgency, Contender::TwoPools];

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Contender::Idle => "Urgency, no compute",
            Contender::Urgency => "Urgency",
            Contender::TokioRayon => "Tokio + Rayon",
            Contender::Threads => "plain threads",
            Contender::TwoPools => "two Rayon pools",
        }
    }

    /// Whether it computes beside the requests.
    pub const fn computes(self) -> bool {
        !matches!(self, Contender::Idle)
    }
}
