//! A job that lives in the cache beside one that streams through memory: AMCilk's co-scheduling.
//!
//! ```sh
//! cargo run --release -p urgency --example coschedule            # 4 MiB to sort, 9 rounds
//! cargo run --release -p urgency --example coschedule -- 16 25   # 16 MiB, 25 rounds
//! ```
//!
//! One worker, pinned to its processor, sorts; the other workers load, modify and store an array that no cache holds.
//! Each round sorts alone, beside the stream, and beside the stream with walls: a core policy gives the sort the upper
//! ways of the last-level cache, and the stream the lower ones and a tenth of the bandwidth. Walls take a machine with
//! resctrl, mounted and writable. On any other the program says what is missing, and shows what they would cure.

use std::{
    error::Error,
    hint::black_box,
    time::{Duration, Instant},
};
use urgency::{
    jobs::{self, CoreSet, CoreSetBuilder},
    policy::cores::{CorePolicy, Cores, Decision, DecisionError, Event, Shares},
};
use urgency_resctrl::{Partition, mounted};

/// The sort's weight, by which the policy knows it.
const SORTS: u32 = 2;

/// Bytes of the stream, on each of its cores.
const STREAM: usize = 64 << 20;

/// Shares of the cores, and walls between the jobs where the machine can build them.
#[derive(Clone, Default)]
struct Walls(Shares);

impl CorePolicy for Walls {
    fn decide(
        &mut self,
        event: Event,
        cores: &Cores,
        decision: &mut Decision,
    ) -> Result<(), DecisionError> {
        self.0.decide(event, cores, decision)?;
        for job in cores.jobs() {
            let sorts = job.demand().weight == SORTS;
            if let Some(cache) = cores.cache() {
                // The stream uses nothing twice: it gets as few ways as may be.
                let low = (1 << cache.least.max(1)) - 1;
                let all = u64::MAX >> (64 - u32::from(cache.ways));
                decision.set_cache_ways(job.id(), if sorts { all & !low } else { low })?;
            }
            if let Some(bandwidth) = cores.bandwidth() {
                let tenth = 10u8
                    .max(bandwidth.least)
                    .next_multiple_of(bandwidth.step.max(1));
                decision.set_bandwidth(job.id(), if sorts { 100 } else { tenth })?;
            }
        }
        Ok(())
    }
}

/// Times of sorts, and how far the stream came beside them.
#[derive(Default)]
struct Times {
    sorts: Vec<Duration>,
    streamed: f64,
    passed: Duration,
}

impl Times {
    fn print(&mut self, what: &str) {
        self.sorts.sort_unstable();
        let median = self.sorts[self.sorts.len() / 2];
        let last = self.sorts[self.sorts.len() - 1];
        let rate = self.streamed / self.passed.as_secs_f64() / 1e9;
        println!("{what:30}{median:>14.2?}{last:>14.2?}{rate:>16.2}");
    }
}

fn numbers(count: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// Loads, modifies and stores until the job is cancelled.
fn stream(bytes: usize) {
    let mut array = vec![0u64; bytes / 8];
    let (mut done, mut turn) = (0, 0u64);
    while !jobs::is_cancelled() {
        turn += 1;
        for part in array.chunks_mut(1 << 15) {
            part.iter_mut()
                .for_each(|number| *number = number.wrapping_mul(3) ^ turn);
            urgency::scheduling_point();
        }
        done += bytes as u64;
        jobs::report(done, 0);
    }
    black_box(array);
}

/// Sorts `count` numbers `times` times on one core, beside streams on the others if there are to be any.
fn round(
    cores: &CoreSet,
    streams: usize,
    numbers: &[u64],
    into: &mut Times,
) -> Result<(), Box<dyn Error>> {
    let start = |_| cores.job().max_cpus(1).spawn_fn(|| stream(STREAM));
    let streams = (0..streams).map(start).collect::<Result<Vec<_>, _>>()?;
    // Each has filled its array once.
    while streams.iter().any(|job| job.progress().done == 0) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let streamed = || -> u64 { streams.iter().map(|job| job.progress().done).sum() };
    let (before, began) = (streamed(), Instant::now());
    let numbers = numbers.to_vec();
    let sort = cores
        .job()
        .weight(SORTS)
        .min_cpus(1)
        .max_cpus(1)
        .spawn_fn(move || {
            let mut copy = numbers.clone();
            // The first one fills the cache, and the partition comes into force.
            let warm = Instant::now() + Duration::from_millis(50);
            while Instant::now() < warm {
                copy.copy_from_slice(&numbers);
                copy.sort_unstable();
            }
            let began = Instant::now();
            copy.copy_from_slice(&numbers);
            copy.sort_unstable();
            black_box(&copy);
            began.elapsed()
        })?;
    into.sorts.push(sort.get()?);
    into.passed += began.elapsed();
    into.streamed += (streamed() - before) as f64;
    streams.iter().for_each(|job| job.cancel());
    cores.drain();
    Ok(())
}

fn cores(
    partition: impl FnOnce(CoreSetBuilder) -> CoreSetBuilder,
) -> Result<CoreSet, Box<dyn Error>> {
    let builder = CoreSet::builder().pinned().core_policy(Walls::default());
    Ok(partition(builder).build()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut argument = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (mebibytes, rounds) = (argument(4)?.max(1), argument(9)?.max(1));
    let open = cores(|builder| builder)?;
    let streams = std::thread::available_parallelism()?.get() - 1;
    if streams == 0 {
        println!(
            "This process may use one processor: there is none for the stream. Nothing is measured."
        );
        return Ok(());
    }
    let walled = mounted()
        .and_then(|(files, options)| Partition::open(files, options, "coschedule"))
        .map(|partition| cores(|builder| builder.partition(partition)));
    let numbers = numbers((mebibytes << 20) / 8);
    let mut times: [Times; 3] = Default::default();
    for _ in 0..rounds {
        round(&open, 0, &numbers, &mut times[0])?;
        round(&open, streams, &numbers, &mut times[1])?;
        if let Ok(Ok(walled)) = &walled {
            round(walled, streams, &numbers, &mut times[2])?;
        }
    }
    println!(
        "A sort of {mebibytes} MiB on one core, {rounds} rounds{:>10}{:>14}{:>16}",
        "median", "slowest", "stream, GB/s"
    );
    let [alone, beside, with_walls] = &mut times;
    alone.print("alone");
    beside.print("beside the stream");
    match walled {
        Ok(Ok(walled)) => {
            with_walls.print("with walls");
            let report = walled.partition().expect("it was given one");
            walled.release_partition();
            println!("{} plan(s) were in force", report.plans);
            if let Some(refused) = report.refused {
                println!(
                    "The kernel refused the last plan, so the line above has no walls: {refused}"
                );
            }
        }
        Ok(Err(error)) => println!("No walls, so nothing is said of them: {error}"),
        Err(missing) => println!("No walls, so nothing is said of them: {missing}"),
    }
    Ok(())
}
