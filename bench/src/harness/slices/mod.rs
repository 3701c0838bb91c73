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
pub mod certainty;
mod filter;
mod member;

use super::events::Events;
use super::options::Options;
use super::rounds::{self, Row};
use super::{Experiment, Sample, child, machine};
use canary::Canaries;
use member::Member;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How an experiment is sliced.
#[derive(Clone, Copy)]
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

/// One round of all contenders in slices.
pub fn round(
    experiment: &Experiment,
    slices: &Slices,
    options: &Options,
    round: u32,
    order: &[&'static str],
    pool: &mut Pool,
) -> Vec<Row> {
    let canaries = Canaries::start();
    let before = (Instant::now(), machine::machine_busy(), child::own_cpu());
    let mut members: Vec<(&'static str, Result<Member, String>)> = order
        .iter()
        .map(|&name| {
            rounds::progress(experiment.name(), round, options.rounds, name);
            let one = super::experiment::program(experiment.name(), name);
            let file = options.events_file(experiment.name(), name, round);
            (name, Member::start(&one, file, options.quick))
        })
        .collect();
    for slice in 0..slices.count {
        for name in rounds::in_round(slice, order) {
            let found = members.iter_mut().find(|(other, _)| *other == name);
            let (_, member) = found.expect("every contender was started");
            let failed = match member {
                Ok(alive) => alive.slice(slices.length).err(),
                Err(_) => None,
            };
            if let Some(reason) = failed {
                let dead = std::mem::replace(member, Err(String::new()));
                *member = Err(dead.map_or_else(|said| said, |dead| dead.complaint(&reason)));
            }
        }
    }
    let ended: Vec<_> = members
        .into_iter()
        .map(|(name, member)| (name, member.and_then(Member::end)))
        .collect();
    let elapsed = before.0.elapsed().as_secs_f64() * machine::processors() as f64;
    let busy = (machine::machine_busy() - before.1).as_secs_f64();
    let own = (child::own_cpu() - before.2).as_secs_f64();
    let spoilt = canaries.spoilt();
    let mut row = |(contender, ended): (_, Result<(Sample, Events), String>)| Row {
        round,
        contender,
        outcome: ended.map(|(sample, events)| {
            let (kept, left_out) = filter::unspoilt(&events, &spoilt, slices.reach);
            let sample = said(&sample, &kept, left_out, slices).with("thefts", spoilt.len() as f64);
            pool.add(contender, kept);
            sample
        }),
        foreign: ((busy - own) / elapsed).max(0.0),
    };
    ended.into_iter().map(&mut row).collect()
}

/// The unspoilt events of all rounds, by contender.
///
/// A percentile is taken of all of them, not of each round with the median of these: of 300 events p99 is the third
/// largest, and a median over rounds of such a number is not the p99 of anything.
#[derive(Default)]
pub struct Pool(BTreeMap<&'static str, Events>);

impl Pool {
    fn add(&mut self, contender: &'static str, events: Events) {
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
fn said(sample: &Sample, kept: &Events, left_out: usize, slices: &Slices) -> Sample {
    let all = ((kept.len() + left_out) as f64).max(1.0);
    sample
        .clone()
        .with_all("", &(slices.summarize)(kept))
        .with("left_out_share", left_out as f64 / all)
}
