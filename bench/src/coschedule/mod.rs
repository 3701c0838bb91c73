//! Sorts beside a job that streams through memory, on cores of their own (the AMCilk paper, sections IV-B and V-D).
//!
//! - `coschedule-isolation`: four sorts at once, of 50 million random numbers each, under *shares*. Of the paper's 40
//!   cores each sort has four and the stream 24; here each side has the same part of the processors, and at least one.
//!   A sample has three runs after one to warm up, so `--rounds 334` has the paper's 1,000. `mean_ns` and `sd_ns` are
//!   of the single sorts.
//! - `coschedule-flow-LOAD`: sorts arrive as a Poisson process, 95 % of them of 500,000 numbers and 5 % of 50 million,
//!   under *DREP*. In the paper they have 22 of 40 cores and the stream 16; here the stream has two fifths of the
//!   processors, and the sorts the others. A flow time counts from the intended arrival until the numbers are sorted.
//!   The load is a share of what the sorts' cores can do if each sorts as fast as one of them alone, which is timed at
//!   the beginning of each sample: `short_alone_ns`, `long_alone_ns`. There are 200 sorts for each of their cores, and
//!   4,000 at most.
//!
//! The stream loads, modifies and stores an array on each of its cores that is larger than a cache of 64 MiB. (The
//! paper does not say how large its own is, nor its loads, nor how many sorts arrive.) `units_per_s` is how many
//! numbers it modifies, a floating-point operation each.
//!
//! - `alone`: the stream's cores have nothing to do. The ratios of the table are over it, as in the paper.
//! - `beside`: the stream runs, and nothing is partitioned.
//! - `cache`: the stream fills as few ways of the last-level cache as the machine permits; the sorts fill all.
//! - `bandwidth`: the stream has a tenth of the memory bandwidth.
//! - `both`: the two together.
//!
//! The last three take resctrl, mounted and writable (`walls.rs`). They exist where the machine has it. Where it does
//! not, `--list` and the result say what is not partitioned and why, and nothing is said about the effect.

mod flow;
mod isolation;
mod stream;
mod walls;

use crate::{engines, sort::forks};
use urgency::par;
use urgency_measure::{Experiment, Scale};
use urgency_resctrl::Entitlement;
use walls::Walls;

/// What runs beside the sorts: nothing, or the stream.
type Beside = Option<Walls>;

/// The contenders.
const CONTENDERS: [(&str, Beside); 5] = [
    ("alone", None),
    ("beside", Some(Walls::new(false, false))),
    ("cache", Some(Walls::new(true, false))),
    ("bandwidth", Some(Walls::new(false, true))),
    ("both", Some(Walls::new(true, true))),
];

/// How much is sorted and streamed.
#[derive(Clone, Copy)]
struct Sizes {
    /// Numbers of a short sort.
    short: usize,
    /// Numbers of a long one.
    long: usize,
    /// Numbers of the stream, on each of its cores.
    stream: usize,
}

/// The processors of this process, by the kernel's numbers.
struct Places {
    sorts: Vec<usize>,
    stream: Vec<usize>,
}

impl Places {
    /// The last ones are the stream's, so many of 40.
    fn with_stream(of_40: usize) -> Places {
        let entitlement = Entitlement::read().expect("the kernel says which processors there are");
        let all: Vec<usize> = entitlement.cpus().iter().collect();
        let (sorts, stream) = all.split_at(all.len() - streams(all.len(), of_40));
        Places {
            sorts: sorts.into(),
            stream: stream.into(),
        }
    }
}

/// How many of the processors are the stream's if it has so many of 40: each side has one at least.
fn streams(processors: usize, of_40: usize) -> usize {
    assert!(
        processors > 1,
        "the sorts and the stream need a processor each, and this process may use {processors}"
    );
    (processors * of_40 / 40).clamp(1, processors - 1)
}

/// Numbers in a random order.
fn random(count: usize, seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.u64(..)).collect()
}

/// A sorted copy, made in parallel.
fn sorted(numbers: &[u64]) -> Vec<u64> {
    let mut sorted = par::map(numbers, |&number| number);
    let mut buffer = vec![0; sorted.len()];
    forks::sort(engines::ours::Join, &mut sorted, &mut buffer, false);
    sorted
}

/// Panics unless it is one.
fn verify(numbers: &[u64], sorted: &[u64]) {
    let sum = |numbers| par::reduce(numbers, |&number: &u64| number, u64::wrapping_add);
    let follows = |at| sorted[at - 1] <= sorted[at];
    let ascends = par::reduce(1..sorted.len(), follows, |a, b| a && b);
    assert!(
        ascends != Some(false) && sum(numbers) == sum(sorted),
        "not sorted, or not the same numbers"
    );
}

/// The experiments.
pub fn experiments(scale: Scale) -> Vec<Experiment> {
    let sizes = Sizes {
        short: scale.pick(500_000, 5_000),
        long: scale.pick(50_000_000, 500_000),
        stream: scale.pick(8 << 20, 1 << 20),
    };
    let (possible, said) = walls::possible();
    let experiment = |name: String, about: &str, columns: &[&'static str]| {
        Experiment::new(name, format!("{about} beside a stream; {said}")).table("alone", columns)
    };
    let contenders = || {
        let are_possible =
            move |(_, beside): &(_, Beside)| beside.is_none_or(|walls| possible.has(walls));
        CONTENDERS.into_iter().filter(are_possible)
    };
    let runs = scale.pick(3, 1);
    let isolation = experiment(
        "coschedule-isolation".into(),
        "four sorts at once",
        &[
            "mean_ns",
            "sd_ns",
            "max_ns",
            "units_per_s",
            "peak_rss_bytes",
        ],
    );
    let isolation = contenders().fold(isolation, |all, (name, beside)| {
        all.contender(name, move || isolation::run(sizes, runs, beside))
    });
    let flow = [60, 75, 90].map(|percent| {
        let load = flow::Load {
            share: f64::from(percent) / 100.0,
            each: scale.pick(200, 20),
            most: 4_000,
        };
        let flow = experiment(
            format!("coschedule-flow-{percent}"),
            &format!("flow times of sorts under DREP, Poisson, at {percent} % of their cores,"),
            &[
                "mean_ns",
                "p50_ns",
                "p95_ns",
                "p99_ns",
                "units_per_s",
                "unanswered",
            ],
        );
        contenders().fold(flow, |all, (name, beside)| {
            all.contender(name, move || flow::run(sizes, load, beside))
        })
    });
    [isolation].into_iter().chain(flow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_has_the_papers_part_of_the_processors_and_leaves_one() {
        assert_eq!([16, 24].map(|of_40| streams(40, of_40)), [16, 24]);
        assert_eq!([16, 24].map(|of_40| streams(2, of_40)), [1, 1]);
        assert_eq!([16, 24].map(|of_40| streams(3, of_40)), [1, 1]);
    }

    #[test]
    #[should_panic(expected = "not sorted, or not the same numbers")]
    fn numbers_that_do_not_ascend_are_found() {
        let mut numbers = random(10_000, 3);
        let sorted = sorted(&numbers);
        verify(&numbers, &sorted);
        numbers.sort_unstable();
        numbers.swap(7_000, 7_001);
        verify(&sorted, &numbers);
    }

    #[test]
    #[should_panic(expected = "not sorted, or not the same numbers")]
    fn a_number_that_is_lost_is_found() {
        let numbers = random(10_000, 3);
        verify(&numbers, &sorted(&numbers[1..]));
    }
}
