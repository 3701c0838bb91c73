//! By how much work an entry may be overtaken in a level's queue that is in shards.
//!
//! One FIFO queue for each level makes aging exact, and is a few cache lines that all cores write. So where there are
//! many cores the queue is in *shards*, one FIFO queue for each group of cores (`sched/order/pool.rs`). A worker takes
//! from the shard of its own group, and from the ring of its stack. Here is what keeps the groups in step.
//!
//! # Rules
//!
//! An entry carries a *stamp*: the time at which it became ready, read from the clock before it is put in.
//!
//! 1. A shard keeps the youngest stamp that it has *given* ([`Given`]). The word only grows.
//! 2. A worker keeps, for each level, the youngest stamp that it has taken, from shards and rings alike, and how many
//!    entries it may still take without a look ([`Pace`]): [`FREE`] at most.
//! 3. When these are used up the worker *looks* at all other shards that have an entry. If each of them has given
//!    something as young as what the worker has taken, it may take `FREE` more. Otherwise a shard *lags*: the worker
//!    takes an entry of the shard that has given the oldest, and looks again before it takes anything else.
//! 4. A shard with an abandoned stack counts as one that has given nothing, and the worker takes that stack. An
//!    abandoned stack of the own shard goes before a look.
//!
//! # Bound
//!
//! *Before an entry is taken, each worker takes at most `FREE` + S entries that became ready after it was put in*,
//! where S is the number of shards. Abandoned stacks are not counted: they go before all others by the policy. Nor is
//! brief work that has a turn (`sched/rescue/turns.rs`). A pool's shard is two lists, each with a word of what it has
//! given, and shows the word of the list that goes next: so a shard in this argument is one of these lists, and S is
//! twice the number of groups.
//!
//! Let entry e be put into shard A, and T the time after that. As long as e is in A, A has given nothing younger than
//! T: what is taken from a FIFO queue before e was put in before e, and stamped before that. Let worker w take an entry
//! f that is younger than T.
//!
//! - w is not of A's group, and f was free. From now on w has taken something younger than T, so each of its looks
//!   finds that A lags, as long as e is there. So w takes nothing free after its next look: f and what follows are at
//!   most `FREE` entries.
//! - w took f in a look, from the shard B that had given the oldest, so nothing younger than T, for A was there to
//!   choose. w writes down what B has given before it looks again. So w does this once for each B, and B is not A: S -
//!   1 entries at most.
//! - w is of A's group. It takes from A in order, and from its ring only what is older than what A has given. From the
//!   other list of that group it takes one entry, and then A has given the older. What is left are looks. Together
//!   these are S - 1 entries.
//!
//! The number of older entries, and how long they take, does not matter: a worker that is ahead works off what is
//! older, wherever it is. Nor does a worker wait for another one. An entry in a *ring* is its stack's to take, as
//! before.
//!
//! The bound needs that a look sees an entry that was put in before something was stamped that the worker took. The
//! inserter shows the shard in the level's word (`groups.rs`) behind a barrier, before its insertion returns. Clocks of
//! two processors that differ by d make "after" mean "later by d".
//!
//! # Cost
//!
//! A free taking costs what it costs with one queue, and a load and two stores on a line that only this worker writes.
//! A look reads a line or two of each other shard that has something: at most S lines for `FREE` entries, so long as no
//! shard lags. S is at most `FREE`.

use crate::sys::primitives::atomic::{AtomicU32, AtomicU64, Ordering};
use urgency_policy::pool::lagging;

#[cfg(not(urgency_loom))]
use urgency_policy::pool::FREE;
#[cfg(urgency_loom)]
const FREE: u32 = 1;

/// The youngest stamp that a shard has given.
#[derive(Debug)]
pub(crate) struct Given {
    stamp: AtomicU64,
    /// There are other shards. If not, the word may go back for a moment, and costs no locked instruction.
    is_exact: bool,
}

impl Given {
    pub(crate) fn new(stamp: u64, is_exact: bool) -> Self {
        let stamp = AtomicU64::new(stamp);
        Given { stamp, is_exact }
    }

    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    /// The shard gave an entry with this stamp.
    #[inline]
    pub(crate) fn note(&self, stamp: u64) {
        if !self.is_exact {
            self.stamp.store(stamp, Ordering::Relaxed);
        } else if self.stamp() < stamp {
            self.stamp.fetch_max(stamp, Ordering::Relaxed);
        }
    }
}

/// What a worker has taken at one level. Only its holder comes here.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    youngest: AtomicU64,
    free: AtomicU32,
}

impl Pace {
    /// Whether the worker must look before it takes anything.
    #[inline]
    pub(crate) fn must_look(&self) -> bool {
        self.free.load(Ordering::Relaxed) == 0
    }

    /// The worker took an entry with this stamp.
    #[inline]
    pub(crate) fn takes(&self, stamp: u64) {
        if self.youngest.load(Ordering::Relaxed) < stamp {
            self.youngest.store(stamp, Ordering::Relaxed);
        }
        let free = self.free.load(Ordering::Relaxed);
        self.free.store(free.saturating_sub(1), Ordering::Relaxed);
    }

    /// Looks at the other shards that have an entry: which, and the youngest stamp that it has given. Returns the shard
    /// to take from, if one lags, with that stamp.
    pub(crate) fn look(&self, others: impl Iterator<Item = (usize, u64)>) -> Option<(usize, u64)> {
        let lags = lagging(self.youngest.load(Ordering::Relaxed), others);
        if lags.is_none() {
            self.free.store(FREE, Ordering::Relaxed);
        }
        lags
    }
}

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use urgency_policy::{
        dice::Dice,
        pool::{Aged, Queue, comes_first},
    };

    /// A level in shards, as its workers see it. Time is the number of the step.
    struct Level {
        shards: Vec<Shard>,
        rings: Vec<VecDeque<u64>>,
        paces: Vec<Pace>,
        worker: usize,
    }

    struct Shard {
        mugging: VecDeque<u64>,
        regular: VecDeque<u64>,
        given: Given,
    }

    impl Level {
        fn new(shards: usize, workers: usize) -> Self {
            let shard = |_| Shard {
                mugging: VecDeque::new(),
                regular: VecDeque::new(),
                given: Given::new(0, true),
            };
            Level {
                shards: (0..shards).map(shard).collect(),
                rings: vec![VecDeque::new(); workers],
                paces: (0..workers).map(|_| Pace::default()).collect(),
                worker: 0,
            }
        }

        fn home(&self) -> usize {
            self.worker % self.shards.len()
        }

        fn others(&self) -> impl Iterator<Item = (usize, u64)> {
            let home = self.home();
            let others = self.shards.iter().enumerate();
            others.filter_map(move |(number, shard)| {
                let given = match (shard.mugging.is_empty(), shard.regular.is_empty()) {
                    (false, _) => 0,
                    (true, false) => shard.given.stamp(),
                    (true, true) => return None,
                };
                (number != home).then_some((number, given))
            })
        }

        fn pop_in(&mut self, number: usize, queue: Queue) -> Option<u64> {
            let shard = &mut self.shards[number];
            let stamp = match queue {
                Queue::Mugging => return shard.mugging.pop_front(),
                _ => shard.regular.pop_front()?,
            };
            shard.given.note(stamp);
            self.paces[self.worker].takes(stamp);
            Some(stamp)
        }

        fn help(&mut self, (number, given): (usize, u64)) -> Option<u64> {
            let is_abandoned = given == 0 && !self.shards[number].mugging.is_empty();
            self.pop_in(
                number,
                if is_abandoned {
                    Queue::Mugging
                } else {
                    Queue::Regular
                },
            )
        }
    }

    impl Aged for Level {
        type Entry = u64;
        type Work = u64;

        fn much_older_elsewhere(&mut self) -> Option<u64> {
            let own = &self.shards[self.home()];
            if !self.paces[self.worker].must_look() || !own.mugging.is_empty() {
                return None;
            }
            let lags = self.paces[self.worker].look(self.others())?;
            self.help(lags)
        }

        fn pop(&mut self, queue: Queue) -> Option<u64> {
            self.pop_in(self.home(), queue)
        }

        fn claim(&mut self, stamp: u64, _: Queue) -> Option<u64> {
            Some(stamp)
        }

        fn own_goes_first(&mut self) -> bool {
            let shard = &self.shards[self.home()];
            comes_first(
                self.rings[self.worker].front().copied().unwrap_or(u64::MAX),
                || shard.mugging.is_empty(),
                || shard.given.stamp(),
                || shard.regular.is_empty(),
            )
        }

        fn pop_own(&mut self) -> Option<u64> {
            let stamp = self.rings[self.worker].pop_front()?;
            self.paces[self.worker].takes(stamp);
            Some(stamp)
        }

        fn oldest_elsewhere(&mut self) -> Option<u64> {
            let oldest = self.others().min_by_key(|&(_, given)| given)?;
            self.help(oldest)
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Put { shard: usize, is_abandoned: bool },
        Ring { worker: usize },
        Take { worker: usize, times: usize },
    }

    fn step(dice: &mut Dice, shards: usize, workers: usize) -> Step {
        // One half of the workers does everything, and of that the first ones most.
        let worker = dice.below(workers as u64 / 2) as usize;
        match dice.below(9) {
            0..4 => Step::Put {
                shard: dice.below(shards as u64) as usize,
                is_abandoned: dice.below(32) == 0,
            },
            4..8 => Step::Ring { worker },
            _ => Step::Take {
                worker,
                times: dice.below(200) as usize,
            },
        }
    }

    /// Runs the steps; returns how many entries younger than another one of a shard a worker took before it, at most.
    fn most_overtaken(shards: usize, workers: usize, steps: &[Step]) -> usize {
        let mut level = Level::new(shards, workers);
        let mut put = Vec::new();
        // By entry that waits in a shard: how much younger each worker has taken.
        let mut overtaken: Vec<(u64, Vec<usize>)> = Vec::new();
        let (mut most, mut now) = (0, 0);
        for step in steps {
            match *step {
                Step::Put {
                    shard,
                    is_abandoned,
                } => {
                    now += 1;
                    let shard = &mut level.shards[shard];
                    if is_abandoned {
                        shard.mugging.push_back(now);
                    } else {
                        shard.regular.push_back(now);
                        overtaken.push((now, vec![0; workers]));
                    }
                    put.push((now, is_abandoned));
                }
                Step::Ring { worker } => {
                    now += 1;
                    level.rings[worker].push_back(now);
                }
                Step::Take { worker, times } => {
                    level.worker = worker;
                    for _ in 0..times {
                        let Some(stamp) = level.next() else { break };
                        overtaken.retain(|(waits, _)| *waits != stamp);
                        if put.contains(&(stamp, true)) {
                            continue;
                        }
                        for (waits, by) in &mut overtaken {
                            if *waits < stamp {
                                by[worker] += 1;
                                most = most.max(by[worker]);
                            }
                        }
                        // Works in endless supply: what ran is ready again.
                        now += 1;
                        level.rings[worker].push_back(now);
                    }
                }
            }
        }
        most
    }

    #[test]
    fn no_worker_overtakes_an_entry_by_more_than_its_free_takings_and_one_of_each_shard() {
        let mut most = 0;
        for seed in 0..500 {
            let mut dice = Dice::new(seed);
            let shards = 2 + dice.below(4) as usize;
            let steps: Vec<_> = (0..dice.below(200))
                .map(|_| step(&mut dice, shards, 8))
                .collect();
            let overtaken = most_overtaken(shards, 8, &steps);
            assert!(
                overtaken <= FREE as usize + shards,
                "seed {seed}: {overtaken}"
            );
            most = most.max(overtaken);
        }
        assert!(
            most > FREE as usize / 2,
            "{most}: the programs overtake nothing"
        );
    }

    #[test]
    fn a_worker_with_endless_work_of_its_own_overtakes_a_backlog_elsewhere_by_no_more_however_long_it_is()
     {
        let put = Step::Put {
            shard: 1,
            is_abandoned: false,
        };
        let steps: Vec<_> = std::iter::repeat_n(put, 1_000)
            .chain([
                Step::Ring { worker: 0 },
                Step::Take {
                    worker: 0,
                    times: 2_000,
                },
            ])
            .collect();
        let most = most_overtaken(2, 2, &steps);
        assert!((1..=FREE as usize).contains(&most), "{most}");
    }
}

#[cfg(all(test, urgency_loom))]
#[path = "pace_loom.rs"]
mod loom_models;
