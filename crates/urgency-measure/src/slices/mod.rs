//! The measure that the host cannot spoil.
//!
//! On a virtual machine the host decides what is above p95, and it changes from one second to the next. So the
//! contenders of a latency row do not run one after the other for seconds. All are alive at once, each a group of
//! processes that is stopped (SIGSTOP), and one at a time goes on for a *slice* of 50 to 200 ms:
//!
//! 1. It goes on (SIGCONT), and settles for 15 ms.
//! 2. It has load for the length of the slice. All contenders have the same: ticks, or requests at the same drawn
//!    times.
//! 3. It says when the last request is answered, and is stopped. So no request is open while its server is stopped.
//!
//! The order of contenders is rotated by one each time and reversed each second time, as in rounds. Canaries
//! (`canary.rs`) mark intervals in which the host had a processor, and `filter.rs` leaves out, for all contenders by
//! the same rule, what was due near them; `left_out_share` says how much that was. Percentiles are of what is left in
//! all rounds together, and `certainty.rs` says how sure they are.
//!
//! What this does not show: queues that take longer than a slice to build up, and memory under pressure of
//! one contender alone. `--whole` measures whole runs, one contender after the other.

mod canary;
mod certainty;
mod filter;
mod member;

pub use canary::{Canaries, Spoilt};
pub use filter::unspoilt;
pub use member::Member;

use crate::events::Events;
use crate::sample::Sample;
use std::collections::BTreeMap;
use std::time::Duration;

/// How an experiment is sliced.
#[derive(Clone, Copy, Debug)]
pub struct Slices {
    /// Load of one slice.
    pub length: Duration,
    /// Slices of each contender in a round.
    pub count: u32,
    /// How long before and after a theft an event is thought to feel it.
    pub reach: Duration,
    /// What is said about a contender's events.
    pub summarize: fn(&Events) -> Sample,
}

/// The unspoilt events of all rounds, by contender.
///
/// A percentile is taken of all of them, not of each round with the median of these: of 300 events p99 is the third
/// largest, and a median over rounds of such a number is not the p99 of anything.
#[derive(Debug, Default)]
pub struct Pool(BTreeMap<&'static str, Events>);

impl Pool {
    /// Adds what a contender's round left.
    pub fn add(&mut self, contender: &'static str, events: Events) {
        self.0.entry(contender).or_default().append(events);
    }

    /// What they say, with how sure that is.
    pub fn samples(&self, slices: &Slices) -> BTreeMap<&'static str, Sample> {
        let say = |(contender, events): (&&'static str, &Events)| {
            let sample = (slices.summarize)(events);
            let sample = sample.with_all("", &certainty::of(events, slices.length));
            (*contender, sample)
        };
        self.0.iter().map(say).collect()
    }
}

/// The contender's own sample, with what its unspoilt events of a round say.
pub fn said(sample: &Sample, kept: &Events, left_out: usize, slices: &Slices) -> Sample {
    let all = ((kept.len() + left_out) as f64).max(1.0);
    sample
        .clone()
        .with_all("", &(slices.summarize)(kept))
        .with("left_out_share", left_out as f64 / all)
}
