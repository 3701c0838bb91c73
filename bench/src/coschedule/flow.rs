//! Sorts that arrive at random, under *DREP*.

use super::stream::{Stream, Tally};
use super::{Beside, Places, Sizes, random, sorted, verify};
use crate::jobs_flow::{JOB, ours::each_as_a_job, pace};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use urgency::jobs::CoreSet;
use urgency::policy::cores::Drep;
use urgency_measure::Sample;
use urgency_measure::client::pacer::{Paced, poisson};
use urgency_measure::client::stamps::{MOST, Stamps};
use urgency_measure::events::Events;
use urgency_measure::rounds::median;

/// Of so many sorts one is long.
const ONE_IN: usize = 20;

/// How often a short sort is timed alone.
const TIMES: usize = 21;

/// What arrives.
#[derive(Clone, Copy)]
pub struct Load {
    /// Of what the sorts' cores can do.
    pub share: f64,
    /// How many sorts for each of these cores, in the mean.
    pub each: usize,
    /// How many in all at most, in the mean.
    pub most: usize,
}

/// The sorts, and what came of each.
struct Sorts {
    input: Arc<Vec<u64>>,
    /// How many numbers each has.
    lengths: Vec<usize>,
    stamps: Stamps,
    /// How many were right.
    right: AtomicUsize,
    beside: Option<Arc<Tally>>,
}

impl Sorts {
    /// Sorts, and verifies after the end of the flow time.
    fn run(&self, sort: usize) {
        let numbers = part(&self.input, sort, self.lengths[sort]);
        let sorted = sorted(numbers);
        self.stamps.done(sort);
        verify(numbers, &sorted);
        self.right.fetch_add(1, Ordering::Relaxed);
    }
}

impl Paced for Sorts {
    fn expect(&self, first: usize, due: &[u64]) {
        self.stamps.expect_all(first, due);
    }

    fn is_done(&self) -> bool {
        self.stamps.are_done()
    }

    fn units(&self) -> u64 {
        self.beside.as_ref().map_or(0, |tally| tally.modified())
    }

    /// A long sort takes seconds on one core, and several may wait.
    fn patience(&self) -> Duration {
        Duration::from_secs(600)
    }

    fn events(&self) -> (Events, Sample) {
        (self.stamps.events(JOB), Sample::new())
    }
}

/// One sample.
pub fn run(sizes: Sizes, load: Load, beside: Beside) -> Sample {
    let places = Places::with_stream(16);
    let cores = places.sorts.len();
    let builder = CoreSet::builder().pinned_to(places.sorts);
    let builder = builder.core_policy(Drep::new(1)).most_queued(MOST);
    let set = builder.build();
    let set = set.expect("the processors are this process's own");
    let input = Arc::new(random(sizes.long, 1));
    let short = alone(&set, &input, sizes.short, TIMES);
    let long = alone(&set, &input, sizes.long, 1);
    let mean = (short * (ONE_IN - 1) as f64 + long) / ONE_IN as f64;
    let per_ns = load.share * cores as f64 / mean;
    let count = (load.each * cores).min(load.most);
    let length = Duration::from_nanos((count as f64 / per_ns) as u64);
    let due = poisson(per_ns * 1e9, 1)(length);
    let count = due.len();
    let stream = beside.map(|walls| Stream::start(&places.stream, sizes.stream, walls));
    let sorts = Arc::new(Sorts {
        input,
        lengths: lengths(count, sizes),
        stamps: Stamps::default(),
        right: AtomicUsize::new(0),
        beside: stream.as_ref().map(|stream| stream.tally().clone()),
    });
    let sample = pace(sorts.clone(), due, each_as_a_job(&set, Sorts::run));
    set.drain();
    let right = sorts.right.load(Ordering::Relaxed);
    assert_eq!(right, count, "so many sorts were right");
    if let Some(stream) = stream {
        stream.end();
    }
    sample
        .with("short_alone_ns", short)
        .with("long_alone_ns", long)
}

/// How many numbers each sort has: of 20 one is long, in a random order.
fn lengths(count: usize, sizes: Sizes) -> Vec<usize> {
    let length = |sort: usize| match sort.is_multiple_of(ONE_IN) {
        true => sizes.long,
        false => sizes.short,
    };
    let mut lengths: Vec<_> = (0..count).map(length).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut lengths);
    lengths
}

/// The numbers of a sort: another part of the input than the sort before it has.
fn part(input: &[u64], sort: usize, length: usize) -> &[u64] {
    let mut parts = input.chunks_exact(length);
    let count = parts.len();
    parts.nth(sort % count).expect("it has a part")
}

/// How long one core needs for a sort, in nanoseconds: the median of so many.
fn alone(set: &CoreSet, input: &Arc<Vec<u64>>, length: usize, times: usize) -> f64 {
    let like = set.job().max_cpus(1);
    let time = |sort| {
        let input = input.clone();
        let job = like.clone().spawn_fn(move || {
            let began = Instant::now();
            let numbers = part(&input, sort, length);
            verify(numbers, &sorted(numbers));
            began.elapsed().as_nanos() as f64
        });
        job.expect("a job may run").get().expect("it is sorted")
    };
    median((0..times).map(time)).expect("it was timed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_twenty_sorts_one_is_long_and_neighbours_sort_different_numbers() {
        let sizes = Sizes {
            short: 10,
            long: 1_000,
            stream: 0,
        };
        let lengths = lengths(400, sizes);
        let long = lengths.iter().filter(|&&length| length == sizes.long);
        assert_eq!(long.count(), 20);
        let input = random(sizes.long, 5);
        assert_eq!(part(&input, 7, sizes.long), input);
        assert_eq!(part(&input, 7, sizes.short), &input[70..80]);
        assert_eq!(part(&input, 108, sizes.short), &input[80..90]);
    }
}
