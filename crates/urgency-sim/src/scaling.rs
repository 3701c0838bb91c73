//! What the queue of a level costs with many cores: one queue for all, and one for each group of cores.
//!
//! A closed system: each worker runs a piece of work, puts one entry into the pool, and takes one; there are always
//! some entries for each worker. No rings, so this is the worst case: the usual task comes to no pool. As in the
//! runtime a queue is two lists, and each second entry goes to the other one. The rule by which a worker takes from
//! another shard is the runtime's own ([`urgency_policy::pool::lagging`]).
//!
//! # Contention
//!
//! A list has two ends, and an end is a cache line that one core has at a time. An operation waits until those before
//! it are done with the line; then it takes [`LineCosts::own`] if the last one was the same worker's,
//! [`LineCosts::transfer`] if it was another's of the same socket, and [`LineCosts::far`] from another socket. A look
//! reads one line of each list of another shard that has something, one after the other; the lines' owners do not wait
//! for it. Which of its own two lists goes next costs a worker nothing here.
//!
//! What two processors can tell are the first two costs. That operations on one line queue up, and cost no more the
//! more of them wait, is an assumption in favour of the one queue: its compare-and-swap fails more often the more cores
//! try.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use urgency_policy::{
    dice::Dice,
    pool::{FREE, lagging},
};

/// What an operation on one end of a queue costs, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCosts {
    /// The same worker came last.
    pub own: u64,
    /// Another worker of the same socket came last.
    pub transfer: u64,
    /// A worker of another socket came last.
    pub far: u64,
}

/// The machine, and what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// How many workers, each with a core.
    pub workers: usize,
    /// How many of them share a queue: all, for one queue.
    pub group: usize,
    /// How many share a socket.
    pub socket: usize,
    /// The mean length of a piece of work in nanoseconds.
    pub work: u64,
    /// How many entries there are for each worker.
    pub entries: usize,
    /// How many pieces of work are run, for each worker.
    pub pieces: u64,
    /// What things cost.
    pub costs: LineCosts,
    /// All randomness comes from it.
    pub seed: u64,
}

/// The times of all workers can be so many nanoseconds together.
pub(crate) const MOST_TIME: f64 = i64::MAX as f64;

impl Scaling {
    /// How long all workers take together at most, in nanoseconds.
    pub(crate) fn longest(&self) -> f64 {
        // No draw is more than 37 times the mean. A piece takes far fewer operations, but for a look at each shard.
        const LONGEST_DRAW: f64 = 37.0;
        const OPERATIONS: f64 = 1000.0;
        let costs = &self.costs;
        let dearest = costs.own.max(costs.transfer).max(costs.far) as f64;
        let looks = 2.0 * self.workers.div_ceil(self.group) as f64;
        let piece = LONGEST_DRAW * self.work as f64 + OPERATIONS.max(looks) * dearest;
        let workers = self.workers as f64;
        workers * workers * self.pieces as f64 * piece
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaled {
    /// How many queues there were.
    pub shards: usize,
    /// What a piece of work paid for a put and a taking, in nanoseconds.
    pub overhead: f64,
    /// Pieces of work in a microsecond.
    pub rate: f64,
    /// Which share of the takings was of another shard.
    pub helped: f64,
    /// Lines of other shards that were read, for each taking.
    pub lines: f64,
    /// How many entries that became ready later a worker took at most before an entry that waited (a sample of them).
    pub overtaken: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    stamp: u64,
    /// Which of the watched, if it is one.
    watched: Option<usize>,
}

#[derive(Default)]
struct End {
    free_at: u64,
    last: Option<usize>,
}

/// As in the runtime, a shard is two lists: of brief work, and of what begins a long piece.
#[derive(Default)]
struct Shard {
    lists: [List; 2],
}

#[derive(Default)]
struct List {
    entries: VecDeque<Entry>,
    given: u64,
    head: End,
    tail: End,
}

impl Shard {
    fn is_empty(&self) -> bool {
        self.lists.iter().all(|list| list.entries.is_empty())
    }

    /// The list that goes next: of the lists with something, the one that has given the older stamp.
    fn next(&self) -> usize {
        let [brief, long] = &self.lists;
        let is_long =
            brief.entries.is_empty() || !long.entries.is_empty() && long.given < brief.given;
        usize::from(is_long)
    }

    /// A list that stands empty beside a full one has given nothing for long.
    fn push(&mut self, list: usize, entry: Entry) {
        let is_beside_full = !self.lists[1 - list].entries.is_empty();
        let list = &mut self.lists[list];
        if is_beside_full && list.entries.is_empty() {
            list.given = list.given.max(entry.stamp);
        }
        list.entries.push_back(entry);
    }
}

#[derive(Clone, Default)]
struct Worker {
    youngest: u64,
    free: u32,
    turn: usize,
}

/// An entry whose overtaking is counted, by worker.
struct Watched {
    put: u64,
    by: Vec<u32>,
}

/// One entry in so many is watched.
const WATCH_EVERY: u64 = 101;

/// How many entries there are at most.
const MOST_ENTRIES: usize = 100_000_000;

/// A worker that finds nothing looks again after so long, in nanoseconds.
const PAUSE: u64 = 100;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Take(usize),
    Done(usize),
}

struct Run {
    machine: Scaling,
    shards: Vec<Shard>,
    workers: Vec<Worker>,
    watched: Vec<Option<Watched>>,
    puts: u64,
    helped: u64,
    lines: u64,
    overtaken: u32,
}

/// Runs the system until each worker has run so many pieces on average.
///
/// # Panics
///
/// If there is no worker, a group or a socket has none, or there are no entries or pieces of work; if all of it takes
/// more nanoseconds than can be counted, or has more entries.
pub fn scaling(machine: Scaling) -> Scaled {
    for (is_any, what) in [
        (machine.workers > 0, "workers"),
        (machine.group > 0, "workers in a group"),
        (machine.socket > 0, "workers in a socket"),
        (machine.entries > 0, "entries"),
        (machine.pieces > 0, "pieces of work"),
    ] {
        assert!(
            is_any,
            "a system with 0 {what} was asked for; it has at least 1"
        );
    }
    let longest = machine.longest();
    assert!(
        longest <= MOST_TIME,
        "{} workers with {} pieces of {} ns each, and {:?}, may take {:.0} s together; it can be {:.0} s",
        machine.workers,
        machine.pieces,
        machine.work,
        machine.costs,
        1e-9 * longest,
        1e-9 * MOST_TIME
    );
    let entries = machine.workers.saturating_mul(machine.entries);
    assert!(
        entries <= MOST_ENTRIES,
        "{} entries for each of {} workers were asked for, all of them in memory; it can be {MOST_ENTRIES} together",
        machine.entries,
        machine.workers
    );
    let shards = machine.workers.div_ceil(machine.group);
    let mut run = Run {
        machine,
        shards: (0..shards).map(|_| Shard::default()).collect(),
        workers: vec![Worker::default(); machine.workers],
        watched: Vec::new(),
        puts: 0,
        helped: 0,
        lines: 0,
        overtaken: 0,
    };
    let mut dice = Dice::new(machine.seed);
    for (number, worker) in run.workers.iter_mut().enumerate() {
        worker.turn = number;
    }
    for number in 0..entries {
        let list = number / shards % 2;
        let entry = Entry {
            stamp: 0,
            watched: None,
        };
        run.shards[number % shards].push(list, entry);
    }
    let mut events: BinaryHeap<_> = (0..machine.workers)
        .map(|worker| Reverse((dice.below(machine.work.max(1)), Event::Take(worker))))
        .collect();
    let (mut done, mut worked, mut now) = (0, 0, 0);
    let all = machine.pieces * machine.workers as u64;
    while done < all {
        let Reverse((time, event)) = events.pop().expect("each worker has an event");
        now = time;
        match event {
            Event::Done(worker) => {
                done += 1;
                let end = run.put(worker, now);
                events.push(Reverse((end, Event::Take(worker))));
            }
            Event::Take(worker) => match run.take(worker, now) {
                Some(end) => {
                    let length = (-(1.0 - dice.unit()).ln() * machine.work as f64) as u64;
                    worked += length;
                    events.push(Reverse((end + length, Event::Done(worker))));
                }
                None => events.push(Reverse((now + PAUSE, Event::Take(worker)))),
            },
        }
    }
    let time = now * machine.workers as u64;
    Scaled {
        shards,
        overhead: time.saturating_sub(worked) as f64 / done as f64,
        rate: done as f64 * 1e3 / now.max(1) as f64,
        helped: run.helped as f64 / done as f64,
        lines: run.lines as f64 / done as f64,
        overtaken: run.overtaken,
    }
}

impl Run {
    /// When an operation of a worker on an end is over.
    fn operate(machine: &Scaling, end: &mut End, worker: usize, now: u64) -> u64 {
        let costs = &machine.costs;
        let cost = match end.last.replace(worker) {
            Some(last) if last == worker => costs.own,
            Some(last) if last / machine.socket != worker / machine.socket => costs.far,
            _ => costs.transfer,
        };
        end.free_at = now.max(end.free_at) + cost;
        end.free_at
    }

    fn put(&mut self, worker: usize, now: u64) -> u64 {
        let shards = self.shards.len();
        let turn = &mut self.workers[worker].turn;
        *turn += 1;
        let (shard, list) = (&mut self.shards[*turn % shards], *turn / shards % 2);
        let tail = &mut shard.lists[list].tail;
        let end = Self::operate(&self.machine, tail, worker, now);
        self.puts += 1;
        let watched = self.puts.is_multiple_of(WATCH_EVERY).then(|| {
            self.watched.push(Some(Watched {
                put: end,
                by: vec![0; self.machine.workers],
            }));
            self.watched.len() - 1
        });
        let entry = Entry {
            stamp: now,
            watched,
        };
        shard.push(list, entry);
        end
    }

    /// The lists that have something, and the youngest stamp that each has given.
    fn filled(&self) -> impl Iterator<Item = ((usize, usize), u64)> {
        let lists = |(at, shard): (usize, &Shard)| {
            let filled = [0, 1].map(|list| {
                let (it, is_filled) = (&shard.lists[list], !shard.lists[list].entries.is_empty());
                is_filled.then_some(((at, list), it.given))
            });
            filled.into_iter().flatten()
        };
        self.shards.iter().enumerate().flat_map(lists)
    }

    /// When the worker has something; `None` if there is nothing.
    fn take(&mut self, worker: usize, now: u64) -> Option<u64> {
        let own = worker / self.machine.group;
        let must_look = self.workers[worker].free == 0;
        let mut began = now;
        let mut from = (own, self.shards[own].next());
        if self.shards.len() > 1 && (must_look || self.shards[own].is_empty()) {
            let others = || self.filled().filter(|((at, _), _)| *at != own);
            let read = others().count() as u64;
            let socket = self.machine.socket;
            let is_near = |at: usize| at * self.machine.group / socket == worker / socket;
            let near = others().filter(|&((at, _), _)| is_near(at)).count() as u64;
            let costs = &self.machine.costs;
            began += near * costs.transfer + (read - near) * costs.far;
            let lags = lagging(self.workers[worker].youngest, self.filled());
            let oldest = self.filled().min_by_key(|&(_, given)| given);
            self.lines += read;
            match (lags, self.shards[own].is_empty()) {
                (Some((list, _)), _) => from = list,
                (None, false) => self.workers[worker].free = FREE,
                (None, true) => from = oldest?.0,
            }
        }
        let list = &mut self.shards[from.0].lists[from.1];
        let entry = list.entries.pop_front()?;
        let end = Self::operate(&self.machine, &mut list.head, worker, began);
        list.given = list.given.max(entry.stamp);
        self.helped += u64::from(from.0 != own);
        let taker = &mut self.workers[worker];
        taker.youngest = taker.youngest.max(entry.stamp);
        taker.free = taker.free.saturating_sub(1);
        self.count(worker, entry);
        Some(end)
    }

    fn count(&mut self, worker: usize, entry: Entry) {
        if let Some(at) = entry.watched {
            self.watched[at] = None;
        }
        while self.watched.last().is_some_and(Option::is_none) {
            self.watched.pop();
        }
        for watched in self.watched.iter_mut().flatten() {
            if watched.put < entry.stamp {
                watched.by[worker] += 1;
                self.overtaken = self.overtaken.max(watched.by[worker]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    fn machine(workers: usize, group: usize) -> Scaling {
        Scaling {
            workers,
            group,
            socket: 64,
            work: 1000,
            entries: 4,
            pieces: 200,
            costs: LineCosts {
                own: 10,
                transfer: 60,
                far: 180,
            },
            seed: 1,
        }
    }

    #[test]
    fn one_queue_costs_in_proportion_to_the_cores_beyond_what_its_line_bears_and_shards_do_not() {
        let overhead = |workers, group| scaling(machine(workers, group)).overhead;
        assert!(overhead(8, 8) < 500.0);
        let (one, shards) = (overhead(256, 256), overhead(256, 8));
        assert!(one > 10.0 * shards, "{one} {shards}");
        let doubled = overhead(512, 512) / one;
        assert!((1.7..2.5).contains(&doubled), "{doubled}");
    }

    #[test]
    fn one_queue_of_two_lists_overtakes_by_one_and_shards_by_what_is_promised() {
        assert!(scaling(machine(64, 64)).overtaken <= 1);
        for workers in [16, 128, 512] {
            let scaled = scaling(machine(workers, 8));
            let most = FREE + 2 * scaled.shards as u32 - 1;
            assert!((1..=most).contains(&scaled.overtaken), "{scaled:?}");
        }
    }

    /// Why a system that was changed so is refused.
    fn refused(change: fn(&mut Scaling)) -> String {
        let mut machine = machine(8, 8);
        change(&mut machine);
        let refused = catch_unwind(|| scaling(machine)).unwrap_err();
        refused.downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn a_system_without_anything_to_do_is_refused() {
        assert!(refused(|it| it.entries = 0).contains("0 entries"));
        assert!(refused(|it| it.pieces = 0).contains("0 pieces of work"));
        assert!(refused(|it| it.group = 0).contains("0 workers in a group"));
    }

    #[test]
    fn a_system_that_takes_longer_or_is_larger_than_can_be_counted_is_refused_with_its_numbers() {
        for text in [
            refused(|it| it.pieces = u64::MAX),
            refused(|it| it.work = u64::MAX),
            refused(|it| it.costs.own = u64::MAX),
            refused(|it| it.costs.far = u64::MAX),
        ] {
            assert!(text.contains("18446744073709551615"), "{text}");
            assert!(text.contains("it can be 9223372037 s"), "{text}");
        }
        let text = refused(|it| it.entries = usize::MAX);
        assert!(text.contains("it can be 100000000 together"), "{text}");
        let text = refused(|it| it.workers = usize::MAX);
        assert!(text.contains("18446744073709551615 workers"), "{text}");
    }

    #[test]
    fn the_same_seed_gives_the_same_result() {
        assert_eq!(scaling(machine(64, 8)), scaling(machine(64, 8)));
    }
}
