//! Streams of requests.
//!
//! Arrivals are Poisson: exponential gaps. The sizes are from the papers' sources as far as they are known; what is a
//! stand-in says so.

use super::{built, tree, tree_vertices};
use crate::{
    dag::{Builder, Dag},
    machine::MAX_WORKERS,
};
use urgency_policy::dice::Dice;

const SECOND: f64 = 1e9;

/// The most arrivals a second, one each nanosecond: above, the gaps would be nothing, and a stream without
/// end.
pub(crate) const MOST_RATE: f64 = 1e9;

/// The largest load of jobs; below [`MOST_RATE`] on every machine.
pub(crate) const MOST_LOAD: f64 = 10_000.0;

/// The leaves of a job of each kind of the job server, by level.
const JOB_LEAVES: [u64; 4] = [200, 400, 600, 800];

/// How often the cache server's background work comes, in nanoseconds, and how many leaves it has.
const BACKGROUND_GAP: u64 = 50_000_000;
const BACKGROUND_LEAVES: u64 = 50;

/// The depth of the tree of a Bing job's round.
const ROUND_DEPTH: u32 = 5;

/// The nominal size of a round, in nanoseconds.
const ROUND_SIZE: u64 = 64_000;

/// A stream, by the numbers that say how many vertices it has: all of them are made before any is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stream {
    /// [`job_server`]: arrivals a second of each kind.
    JobServer(f64),
    /// [`memcached_like`]: requests a second.
    Memcached(f64),
    /// [`bing`] and [`finance_like`]: sizes, workers, the load.
    Jobs(Sizes, usize, f64),
}

impl Stream {
    /// How many vertices are expected within `time` ns.
    pub(crate) fn vertices(self, time: u64) -> f64 {
        let seconds = time as f64 / SECOND;
        match self {
            Stream::JobServer(rate) => {
                let each = JOB_LEAVES.map(tree_vertices).iter().sum::<u64>();
                rate * seconds * each as f64
            }
            Stream::Memcached(rate) => {
                let background = time.max(1).div_ceil(BACKGROUND_GAP);
                rate * seconds + background as f64 * tree_vertices(BACKGROUND_LEAVES) as f64
            }
            Stream::Jobs(sizes, workers, load) => {
                let each = sizes.mean_rounds() * (round_vertices(ROUND_DEPTH) + 1) as f64;
                jobs_a_second(sizes, workers, load) * seconds * each
            }
        }
    }
}

/// An exponential gap in nanoseconds for so many arrivals a second.
fn gap(dice: &mut Dice, rate: f64) -> u64 {
    (-(1.0 - dice.unit()).ln() / rate * SECOND) as u64
}

/// Calls `arrive` for each arrival of a Poisson stream within `time` ns; with a rate of 0 there is none.
fn poisson(dice: &mut Dice, rate: f64, time: u64, mut arrive: impl FnMut(&mut Dice, u64)) {
    assert!(
        (0.0..=MOST_RATE).contains(&rate),
        "a rate of {rate} arrivals a second was asked for; it can be 0 to {MOST_RATE}"
    );
    if rate == 0.0 {
        return;
    }
    let mut at = gap(dice, rate);
    while at < time {
        arrive(dice, at);
        at = at.saturating_add(gap(dice, rate));
    }
}

/// The job server of the Prompt I-Cilk paper: four kinds of parallel jobs, the shorter ones more urgent, each
/// kind with `rate` arrivals a second for `time` ns.
///
/// The works are stand-ins with the source's proportions of mean latencies (mm, fib, sort, sw: 41, 88, 124,
/// 383 ms at 3/s on 20 workers): 0.4, 0.8, 1.2 and 1.6 s, in leaves of 2 ms.
///
/// # Panics
///
/// If `rate` is not 0 to 1e9.
pub fn job_server(rate: f64, time: u64, seed: u64) -> Dag {
    const LEAF: u64 = 2_000_000;
    let dice = Dice::new(seed);
    let mut dag = Builder::new();
    for (level, leaves) in JOB_LEAVES.into_iter().enumerate() {
        let mut dice = dice.split(level as u64);
        poisson(&mut dice, rate, time, |_, at| {
            let job = dag.root(level as u8, at);
            tree(&mut dag, job, leaves, LEAF, 100);
        });
    }
    if dag.is_empty() {
        let job = dag.root(0, 0);
        dag.step(job, 1);
    }
    built(dag)
}

/// A cache server: `rate` requests a second over `connections` connections, each request with 5 to 15 µs of work; the
/// requests of one connection run in order. Beside them, at level 1, a piece of background work of 5 ms each 50 ms. For
/// `time` ns. (The paper's data set and request mix are not known.)
///
/// # Panics
///
/// If `rate` is not 0 to 1e9.
pub fn memcached_like(connections: u32, rate: f64, time: u64, seed: u64) -> Dag {
    let mut dice = Dice::new(seed);
    let mut dag = Builder::new();
    let mut last = vec![None; connections.max(1) as usize];
    poisson(&mut dice, rate, time, |dice, at| {
        let request = dag.root(0, at);
        let vertex = dag.step(request, 5_000 + dice.below(10_000));
        let connection = dice.below(last.len() as u64) as usize;
        if let Some(before) = last[connection].replace(vertex) {
            dag.edge(before, vertex, 0);
        }
    });
    for at in (0..time.max(1)).step_by(BACKGROUND_GAP as usize) {
        let job = dag.root(1, at);
        tree(&mut dag, job, BACKGROUND_LEAVES, 100_000, 100);
    }
    built(dag)
}

/// Job sizes as a table: cumulative probability per mille, and the size in multiples of a base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The size that the multiples are of, in nanoseconds.
    pub base: u64,
}

/// The table of the AMCilk paper's request generator: cumulative per mille, hundredths of the base.
const BINS: [(u64, u64); 20] = [
    (367, 50),
    (551, 100),
    (631, 150),
    (691, 200),
    (734, 250),
    (767, 300),
    (794, 350),
    (817, 400),
    (837, 450),
    (854, 500),
    (867, 550),
    (877, 600),
    (891, 675),
    (901, 775),
    (927, 1000),
    (949, 1400),
    (959, 1750),
    (969, 1900),
    (984, 1950),
    (1000, 2000),
];

impl Sizes {
    /// Bing: 5 to 200 ms, 30.2 ms in the mean.
    pub const BING: Sizes = Sizes { base: 10_000_000 };
    /// "Finance-like": the same table with three times the base; the real one is not public.
    pub const FINANCE_LIKE: Sizes = Sizes { base: 30_000_000 };

    /// A size in nanoseconds.
    pub fn draw(self, dice: &mut Dice) -> u64 {
        let lot = dice.below(1000);
        let bin = BINS.iter().find(|(below, _)| lot < *below);
        let (_, hundredths) = bin.expect("the last bin ends at 1000");
        (self.base / 100).saturating_mul(*hundredths)
    }

    /// The mean size in nanoseconds.
    pub fn mean(self) -> f64 {
        let mut past = 0;
        let parts = BINS.iter().map(|&(below, hundredths)| {
            let part = (below - past) * hundredths;
            past = below;
            part
        });
        parts.sum::<u64>() as f64 / 1e5 * self.base as f64
    }

    /// How many rounds a job of this size has.
    fn rounds(size: u64) -> u64 {
        (size / ROUND_SIZE).max(1)
    }

    /// The mean number of rounds.
    fn mean_rounds(self) -> f64 {
        let mut past = 0;
        let parts = BINS.iter().map(|&(below, hundredths)| {
            let part = (below - past) * Self::rounds((self.base / 100).saturating_mul(hundredths));
            past = below;
            part
        });
        parts.sum::<u64>() as f64 / 1e3
    }
}

/// The Bing workload of the AMCilk paper: jobs of serial rounds, each round a fork-join tree of 320 µs work
/// and about 60 µs span; so many rounds as the size says (a round counts 64 µs). All at level 0, at a load of
/// 0 to 1 of `workers` (above that jobs pile up), for `time` ns.
///
/// # Panics
///
/// If there are more than 1,024 workers, or `load` is not 0 to 10,000.
pub fn bing(workers: usize, load: f64, time: u64, seed: u64) -> Dag {
    jobs(Sizes::BING, workers, load, time, seed)
}

/// As [`bing`] with sizes three times as large; a stand-in, since the finance distribution is not public.
///
/// # Panics
///
/// As `bing`.
pub fn finance_like(workers: usize, load: f64, time: u64, seed: u64) -> Dag {
    jobs(Sizes::FINANCE_LIKE, workers, load, time, seed)
}

/// How many jobs make this load of so many workers.
fn jobs_a_second(sizes: Sizes, workers: usize, load: f64) -> f64 {
    /// The work of a round.
    const WORK: f64 = 320_000.0;
    let work = sizes.mean() / ROUND_SIZE as f64 * WORK;
    load * workers as f64 / (work / SECOND)
}

fn jobs(sizes: Sizes, workers: usize, load: f64, time: u64, seed: u64) -> Dag {
    assert!(
        (0.0..=MOST_LOAD).contains(&load),
        "a load of {load} was asked for; it can be 0 to {MOST_LOAD}"
    );
    assert!(
        workers <= MAX_WORKERS,
        "{workers} workers were named; there can be {MAX_WORKERS}"
    );
    let mut dice = Dice::new(seed);
    let mut dag = Builder::new();
    let rate = jobs_a_second(sizes, workers, load);
    poisson(&mut dice, rate, time, |dice, at| {
        let job = dag.root(0, at);
        for _ in 0..Sizes::rounds(sizes.draw(dice)) {
            // 31 inner nodes of 10 µs, after the recursion, and 10 µs serial.
            round(&mut dag, job, ROUND_DEPTH);
            dag.step(job, 10_000);
        }
    });
    if dag.is_empty() {
        let job = dag.root(0, 0);
        dag.step(job, 1);
    }
    built(dag)
}

/// How many vertices [`round`] makes.
fn round_vertices(depth: u32) -> u64 {
    (2 << depth) - 2
}

/// A tree of `2^depth` leaves without work, whose inner nodes have 10 µs after their children.
fn round(dag: &mut Builder, thread: u32, depth: u32) {
    let fork = dag.step(thread, 1);
    if depth > 1 {
        let child = dag.spawn(fork, 0);
        round(dag, child, depth - 1);
        round(dag, thread, depth - 1);
        dag.sync(thread, child, 10_000);
    } else {
        dag.step(thread, 10_000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bing_sizes_have_the_mean_of_their_source() {
        let mean = Sizes::BING.mean();
        assert!((mean - 30_245_000.0).abs() < 1000.0, "{mean}");
        let mut dice = Dice::new(3);
        let drawn = (0..50_000)
            .map(|_| Sizes::BING.draw(&mut dice))
            .sum::<u64>() as f64;
        assert!((drawn / 50_000.0 / mean - 1.0).abs() < 0.03);
    }

    #[test]
    fn a_stream_has_the_load_that_was_asked_for() {
        let time = 4_000_000_000;
        let dag = bing(2, 0.5, time, 8);
        let load = dag.total_work() as f64 / (2.0 * time as f64);
        assert!((0.2..0.9).contains(&load), "{load}");
        let dag = memcached_like(100, 20_000.0, time / 4, 8);
        let requests = dag
            .threads()
            .iter()
            .filter(|t| t.level == 0 && t.release.is_some());
        let requests = requests.count();
        assert!((19_000..21_000).contains(&requests), "{requests}");
    }

    #[test]
    fn a_stream_has_about_as_many_vertices_as_are_expected() {
        const TIME: u64 = 8_000_000_000;
        let ratio = |stream: Stream, dag: Dag| dag.len() as f64 / stream.vertices(TIME);
        let background = Stream::Memcached(0.0);
        assert_eq!(ratio(background, memcached_like(9, 0.0, TIME, 2)), 1.0);
        let requests = Stream::Memcached(5_000.0);
        for ratio in [
            ratio(requests, memcached_like(9, 5_000.0, TIME, 2)),
            ratio(Stream::JobServer(4.0), job_server(4.0, TIME, 2)),
            ratio(Stream::Jobs(Sizes::BING, 2, 0.8), bing(2, 0.8, TIME, 2)),
        ] {
            assert!((0.75..1.33).contains(&ratio), "{ratio}");
        }
        for sizes in [Sizes::BING, Sizes::FINANCE_LIKE] {
            let mut dice = Dice::new(3);
            let drawn = (0..50_000).map(|_| Sizes::rounds(sizes.draw(&mut dice)));
            let ratio = drawn.sum::<u64>() as f64 / 50_000.0 / sizes.mean_rounds();
            assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
        }
    }

    #[test]
    fn a_stream_without_arrivals_is_still_a_computation() {
        for rate in [1e-9, 0.0] {
            assert_eq!(job_server(rate, 1, 1).len(), 1);
            assert_eq!(bing(2, rate, 1, 1).len(), 1);
        }
    }
}
