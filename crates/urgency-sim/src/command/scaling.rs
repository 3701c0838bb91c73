//! The command `urgency sim scaling`: the queue of a level with many cores, as one and in shards.
//!
//! A row for each number of cores. What an operation on a queue costs is measured first, on two processors of this
//! machine, unless it is given. What sockets cost cannot be measured on a machine with one, and is an assumption.

use super::{Stop, of_option, say, wrong};
use crate::{
    machine::MAX_WORKERS,
    scaling::{LineCosts, MOST_TIME, Scaling, scaling},
};
use clap::{Args, builder::RangedU64ValueParser, value_parser};
use crossbeam_queue::SegQueue;
use std::{hint, sync::Barrier, thread, time::Instant};

/// As in the runtime, which has a bit for each in one word: with more cores a shard has more of them.
const MOST_SHARDS: usize = 64;

/// The queue of a level with many cores.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(super) struct ScalingOptions {
    /// How many cores: a row each, up to 1024.
    #[arg(long, value_delimiter = ',', default_values_t = [8, 16, 32, 64, 128, 256, 512, 1024])]
    cores: Vec<usize>,
    /// How many cores a shard has.
    #[arg(long, default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    group: usize,
    /// How many cores a socket has.
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    socket: usize,
    /// The mean length of a piece of work, in nanoseconds.
    #[arg(long, default_value_t = 1000)]
    piece: u64,
    /// An operation on a queue after one of the same core, in nanoseconds; measured if nothing is said.
    #[arg(long)]
    own: Option<u64>,
    /// The same after one of another core.
    #[arg(long)]
    transfer: Option<u64>,
    /// The same after one of another socket; three times as much if nothing is said.
    #[arg(long)]
    far: Option<u64>,
    /// How many pieces each core runs on average, up to a million.
    #[arg(long, default_value_t = 500, value_parser = value_parser!(u64).range(1..=1_000_000))]
    pieces: u64,
    /// The seed of everything that is random.
    #[arg(long, default_value_t = 1)]
    scaling_seed: u64,
}

impl ScalingOptions {
    pub(super) fn perform(&self) -> Result<(), Stop> {
        if let Some(cores) = self
            .cores
            .iter()
            .find(|cores| !(1..=MAX_WORKERS).contains(*cores))
        {
            let said = format!("{cores} cores were asked for; it can be 1 to {MAX_WORKERS}");
            return Err(of_option("--cores", said));
        }
        let costs = self.costs();
        self.check_length(costs)?;
        say(format_args!(
            "pieces of {} ns; an operation costs {} ns after one of the same core, {} after another's, {} after one of \
             another socket\n",
            self.piece, costs.own, costs.transfer, costs.far
        ))?;
        say(format_args!(
            "{:>6} | {:>12} {:>10} | {:>6} {:>12} {:>10} {:>8} {:>8} {:>9}\n",
            "cores",
            "one: ns",
            "pieces/us",
            "shards",
            "ns",
            "pieces/us",
            "helped",
            "lines",
            "overtaken"
        ))?;
        for &workers in &self.cores {
            let group = self.group.max(workers.div_ceil(MOST_SHARDS));
            let [one, shards] =
                [workers, group].map(|group| scaling(self.of(costs, workers, group)));
            say(format_args!(
                "{workers:>6} | {:>12.0} {:>10.1} | {:>6} {:>12.0} {:>10.1} {:>7.1}% {:>8.2} {:>9}\n",
                one.overhead,
                one.rate,
                shards.shards,
                shards.overhead,
                shards.rate,
                shards.helped * 100.0,
                shards.lines,
                shards.overtaken
            ))?;
        }
        Ok(())
    }

    /// Whether the times of all cores together can be a number of nanoseconds.
    fn check_length(&self, costs: LineCosts) -> Result<(), Stop> {
        let cores = self.cores.iter().copied().max().unwrap_or(0);
        let dearest = costs.own.max(costs.transfer).max(costs.far) as f64;
        let longest = self.of(costs, cores, cores).longest();
        if longest > MOST_TIME {
            return Err(wrong(format!(
                "--pieces {} of --piece {} ns, with operations of up to {dearest} ns (--own, --transfer, --far), take {cores} cores up to {:.0} s \
                 together; it can be {:.0} s",
                self.pieces,
                self.piece,
                1e-9 * longest,
                1e-9 * MOST_TIME
            )));
        }
        Ok(())
    }

    fn of(&self, costs: LineCosts, workers: usize, group: usize) -> Scaling {
        Scaling {
            workers,
            group,
            socket: self.socket,
            work: self.piece,
            entries: 4,
            pieces: self.pieces,
            costs,
            seed: self.scaling_seed,
        }
    }

    fn costs(&self) -> LineCosts {
        let own = self.own.unwrap_or_else(|| operation(1));
        let transfer = self.transfer.unwrap_or_else(|| operation(2).max(own));
        let far = self.far.unwrap_or(transfer.saturating_mul(3));
        LineCosts { own, transfer, far }
    }
}

/// How long an operation on one end of the runtime's queue keeps that end from others, in nanoseconds, while so many
/// threads do nothing else: the median of five runs. Each thread puts and takes in turn.
fn operation(threads: u32) -> u64 {
    const ROUNDS: u32 = 200_000;
    let mut samples: Vec<u64> = (0..5)
        .map(|_| {
            let queue = SegQueue::new();
            let all = Barrier::new(threads as usize + 1);
            let work = || {
                all.wait();
                for number in 0..ROUNDS {
                    queue.push(number);
                    hint::black_box(queue.pop());
                }
            };
            let start = thread::scope(|scope| {
                (0..threads).for_each(|_| drop(scope.spawn(work)));
                all.wait();
                Instant::now()
            });
            // A thread is at one end at a time: alone it is at each for half of the time.
            let at_each = if threads == 1 { 2 } else { 1 };
            start.elapsed().as_nanos() as u64 / u64::from(at_each * threads * ROUNDS)
        })
        .collect();
    samples.sort_unstable();
    samples[samples.len() / 2]
}
