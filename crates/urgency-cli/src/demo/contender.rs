//! The contenders: what runs in a server process, and how it is called.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// One way of sharing the machine between requests and compute.
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
}

impl Contender {
    /// All of them, in the order of the table.
    pub const ALL: [Contender; 4] = [
        Contender::Idle,
        Contender::Urgency,
        Contender::TokioRayon,
        Contender::Threads,
    ];

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Contender::Idle => "Urgency, no compute",
            Contender::Urgency => "Urgency",
            Contender::TokioRayon => "Tokio + Rayon",
            Contender::Threads => "plain threads",
        }
    }

    /// Whether it computes beside the requests.
    pub const fn computes(self) -> bool {
        !matches!(self, Contender::Idle)
    }
}
