//! By how much an entry is overtaken in a level's queue that is in shards, counted: `protocol/pace.rs` has the rules
//! and the bound.
//!
//! Two queues are tried by random histories. [`model`] has the lists of the pool and the paces of the workers, a ring
//! for each worker, and a time that is the number of the step. [`real`] is a job whose workers are all in the calling
//! thread's hands: what is taken is taken by the scheduler's own code.

use counted::Overtaken;
use urgency_policy::{dice::Dice, pool::FREE};

/// What each worker takes at most before an entry that became ready earlier.
fn bound(shards: usize) -> usize {
    FREE as usize + 3 * shards - 1
}

/// What happens next. Into a ring goes what a worker makes ready; in [`real`] there are none, and it goes into the
/// worker's shard.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put { shard: usize, what: What },
    Ring { worker: usize },
    Take { worker: usize, times: usize },
}

#[derive(Clone, Copy, Debug)]
enum What {
    Brief,
    Computing,
    Long,
    Abandoned,
}

fn step(dice: &mut Dice, shards: usize, workers: usize) -> Step {
    // The first workers do the most.
    let worker = dice.below(workers as u64).min(dice.below(workers as u64)) as usize;
    match dice.below(9) {
        0..4 => Step::Put {
            shard: dice.below(shards as u64) as usize,
            what: match dice.below(32) {
                0 => What::Abandoned,
                1..13 => What::Brief,
                13..20 => What::Computing,
                _ => What::Long,
            },
        },
        4..8 => Step::Ring { worker },
        _ => Step::Take {
            worker,
            times: dice.below(200) as usize,
        },
    }
}

mod counted {
    use std::collections::BTreeMap;

    /// How many younger entries each worker has taken before each that waits.
    pub(super) struct Overtaken {
        waiting: BTreeMap<u64, Waiting>,
        workers: usize,
        pub(super) most: usize,
    }

    struct Waiting {
        /// When it was in.
        put: u64,
        by: Vec<usize>,
    }

    impl Overtaken {
        pub(super) fn new(workers: usize) -> Self {
            Overtaken {
                waiting: BTreeMap::new(),
                workers,
                most: 0,
            }
        }

        /// An entry with this stamp is in since `put`.
        pub(super) fn put(&mut self, stamp: u64, put: u64) {
            let by = vec![0; self.workers];
            self.waiting.insert(stamp, Waiting { put, by });
        }

        /// The worker took the entry with this stamp out of a list or a ring.
        pub(super) fn takes(&mut self, worker: usize, stamp: u64) {
            self.waiting.remove(&stamp);
            for (_, waiting) in self.waiting.range_mut(..stamp) {
                if waiting.put < stamp {
                    waiting.by[worker] += 1;
                    self.most = self.most.max(waiting.by[worker]);
                }
            }
        }
    }
}

mod model {
    use super::*;
    use crate::{
        protocol::pace::Pace,
        sched::order::lists::{List, Lists},
    };
    use std::collections::VecDeque;
    use urgency_policy::pool::{Aged, Queue, comes_first};

    /// A level in shards, as its workers see it.
    struct Level {
        shards: Vec<Shard>,
        rings: Vec<VecDeque<u64>>,
        paces: Vec<Pace>,
        worker: usize,
    }

    struct Shard {
        mugging: VecDeque<u64>,
        lists: Lists<()>,
    }

    impl Level {
        fn new(shards: usize, workers: usize) -> Self {
            let shard = |_| Shard {
                mugging: VecDeque::new(),
                lists: Lists::new(0, false),
            };
            Level {
                shards: (0..shards).map(shard).collect(),
                rings: vec![VecDeque::new(); workers],
                paces: (0..workers).map(|_| Pace::default()).collect(),
                worker: 0,
            }
        }

        fn own(&self) -> &Shard {
            &self.shards[self.worker % self.shards.len()]
        }

        /// `None` stands for abandoned stacks.
        fn filled(&self) -> impl Iterator<Item = ((usize, Option<List>), u64)> {
            let shards = self.shards.iter().enumerate();
            shards.flat_map(|(number, shard)| {
                let abandoned = (!shard.mugging.is_empty()).then_some(((number, None), 0));
                let filled = shard.lists.filled();
                let filled = filled.map(move |(list, given)| ((number, Some(list)), given));
                abandoned.into_iter().chain(filled)
            })
        }

        fn takes(&self, stamp: u64) -> u64 {
            self.paces[self.worker].takes(stamp);
            stamp
        }

        fn take_of(&mut self, (number, list): (usize, Option<List>)) -> Option<u64> {
            let shard = &mut self.shards[number];
            match list {
                None => shard.mugging.pop_front(),
                Some(list) => {
                    let (stamp, ()) = shard.lists.pop_of(list)?;
                    Some(self.takes(stamp))
                }
            }
        }
    }

    impl Aged for Level {
        type Entry = u64;
        type Work = u64;

        fn much_older_elsewhere(&mut self) -> Option<u64> {
            if !self.paces[self.worker].must_look() {
                return None;
            }
            if let Some(abandoned) = self.pop(Queue::Mugging) {
                return Some(abandoned);
            }
            let (list, _) = self.paces[self.worker].look(self.filled())?;
            self.take_of(list)
        }

        fn pop(&mut self, queue: Queue) -> Option<u64> {
            let number = self.worker % self.shards.len();
            match queue {
                Queue::Mugging => self.shards[number].mugging.pop_front(),
                _ => {
                    let (stamp, ()) = self.own().lists.pop()?;
                    Some(self.takes(stamp))
                }
            }
        }

        fn claim(&mut self, stamp: u64, _: Queue) -> Option<u64> {
            Some(stamp)
        }

        fn own_goes_first(&mut self) -> bool {
            let since = self.rings[self.worker].front();
            let (since, own) = (since.copied().unwrap_or(u64::MAX), self.own());
            comes_first(
                since,
                || own.mugging.is_empty(),
                || own.lists.brief_given(),
                || own.lists.is_brief_empty(),
            ) && own.lists.are_others_younger_than(since)
        }

        fn pop_own(&mut self) -> Option<u64> {
            let stamp = self.rings[self.worker].pop_front()?;
            Some(self.takes(stamp))
        }

        fn oldest_elsewhere(&mut self) -> Option<u64> {
            let (list, _) = self.filled().min_by_key(|&(_, given)| given)?;
            self.take_of(list)
        }
    }

    /// Runs the steps; returns how many entries younger than another one of a shard a worker took before it, at most.
    fn most_overtaken(shards: usize, workers: usize, steps: &[Step]) -> usize {
        let mut level = Level::new(shards, workers);
        let mut overtaken = Overtaken::new(workers);
        let mut abandoned = Vec::new();
        let mut now = 0;
        for step in steps {
            now += 1;
            match *step {
                Step::Put { shard, what } => {
                    let shard = &mut level.shards[shard];
                    let list = match what {
                        What::Abandoned => {
                            shard.mugging.push_back(now);
                            abandoned.push(now);
                            continue;
                        }
                        What::Brief => List::Brief,
                        What::Computing => List::Computing,
                        What::Long => List::Long,
                    };
                    shard.lists.push(list, now, ());
                    overtaken.put(now, now);
                }
                Step::Ring { worker } => level.rings[worker].push_back(now),
                Step::Take { worker, times } => {
                    level.worker = worker;
                    for _ in 0..times {
                        let Some(stamp) = level.next() else { break };
                        if !abandoned.contains(&stamp) {
                            overtaken.takes(worker, stamp);
                        }
                        // Works in endless supply: what ran is ready again.
                        now += 1;
                        level.rings[worker].push_back(now);
                    }
                }
            }
        }
        overtaken.most
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn no_worker_overtakes_an_entry_by_more_than_its_free_takings_and_one_of_each_other_list() {
        let mut most = 0;
        for seed in 0..500 {
            let mut dice = Dice::new(seed);
            let shards = 2 + dice.below(4) as usize;
            let steps: Vec<_> = (0..dice.below(200))
                .map(|_| step(&mut dice, shards, 8))
                .collect();
            let overtaken = most_overtaken(shards, 8, &steps);
            assert!(overtaken <= bound(shards), "seed {seed}: {overtaken}");
            most = most.max(overtaken);
        }
        let least = FREE as usize / 2;
        assert!(most > least, "{most}: the programs overtake nothing");
    }

    fn put(shard: usize, times: usize) -> impl Iterator<Item = Step> {
        let what = What::Brief;
        std::iter::repeat_n(Step::Put { shard, what }, times)
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn a_worker_with_endless_work_of_its_own_overtakes_a_backlog_elsewhere_by_no_more_however_long_it_is()
     {
        let (worker, times) = (0, 2_000);
        let takes = [Step::Ring { worker }, Step::Take { worker, times }];
        let steps: Vec<_> = put(1, 1_000).chain(takes).collect();
        let most = most_overtaken(2, 2, &steps);
        assert!((1..=FREE as usize).contains(&most), "{most}");
    }

    /// A look takes something very young from a list that has given nothing yet. From then on a list that is ahead of
    /// the worker's own shard lags as well.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn a_worker_that_is_ahead_does_not_leave_a_backlog_of_its_own_shard_for_one_that_is_younger() {
        let (worker, times) = (0, 2_000);
        let steps: Vec<_> = put(0, 100)
            .chain(put(1, 1_000))
            .chain(put(2, 1))
            .chain([Step::Take { worker, times }])
            .collect();
        let most = most_overtaken(3, 3, &steps);
        assert!((1..=bound(3)).contains(&most), "{most}");
    }
}

mod real {
    use super::*;
    use crate::{
        sched::{
            Work,
            job::Job,
            order::{aged::LevelView, entry::Entry},
            stack::Me,
            tests::{stack_of, steps::with_all_claimed},
            worker::Worker,
        },
        sys::clock,
        tasks::{self, TaskRef},
    };
    use std::sync::Arc;
    use urgency_policy::pool::{Aged, Arrival};

    const LEVEL: u8 = 1;

    /// Puts a task into a shard, as `Job::put` does. Returns when it became ready, and a time after it was in.
    fn put(job: &Arc<Job>, shard: usize, what: What) -> (u64, u64) {
        let task = match what {
            What::Long => tasks::new_fn(|| (), job.arc(), LEVEL).0,
            _ => tasks::new(async {}, job.arc(), LEVEL).0,
        };
        task.set_computes(matches!(what, What::Computing));
        let stamp = clock::now();
        task.set_ready_since(stamp);
        let pool = job.pools.at(LEVEL);
        let arrival = Arrival::Task;
        pool.shard(shard).push(arrival, Entry::Task(task));
        job.pools.announce_group(shard, LEVEL, || true);
        (stamp, clock::now())
    }

    /// What the calling thread did with a job's workers.
    struct History<'a> {
        job: &'a Arc<Job>,
        claimed: &'a [&'a Worker],
        me: Me<'a>,
        overtaken: Overtaken,
        taken: Vec<TaskRef>,
    }

    impl History<'_> {
        fn put(&mut self, shard: usize, what: What) {
            let (stamp, put) = put(self.job, shard, what);
            self.overtaken.put(stamp, put);
        }

        /// What a worker made ready: it comes to the shard of its group.
        fn put_near(&mut self, worker: usize, what: What) {
            self.put(self.job.pools.shard_of(self.claimed[worker]), what);
        }

        fn take(&mut self, worker: usize) -> bool {
            let worker = self.claimed[worker];
            let work = LevelView::new(self.job, self.me, worker, LEVEL, false).next();
            let Some(Work::Task(task)) = work else {
                return false;
            };
            self.overtaken.takes(worker.id, task.ready_since());
            self.taken.push(task);
            true
        }

        fn random(&mut self, seed: u64) {
            let (workers, shards) = (self.claimed.len(), self.job.pools.at(0).shards());
            let mut dice = Dice::new(seed);
            for _ in 0..40 * shards {
                match step(&mut dice, shards, workers) {
                    Step::Put { shard, what } => self.put(shard, what),
                    Step::Ring { worker } => self.put_near(worker, What::Brief),
                    Step::Take { worker, times } => {
                        for _ in 0..times {
                            if !self.take(worker) {
                                break;
                            }
                            // Works in endless supply: what ran is ready again.
                            let is_long = dice.below(2) == 0;
                            let what = if is_long { What::Long } else { What::Brief };
                            self.put_near(worker, what);
                        }
                    }
                }
            }
        }
    }

    /// Runs a history on a job with so many workers; returns what was overtaken.
    fn most_overtaken(workers: usize, run: impl FnOnce(&mut History<'_>)) -> usize {
        with_all_claimed(workers, LEVEL, |job, claimed| {
            let (binding, _stack) = stack_of(job);
            let mut history = History {
                job,
                claimed,
                me: binding.me(),
                overtaken: Overtaken::new(workers),
                taken: Vec::new(),
            };
            run(&mut history);
            while history.take(0) {}
            history.taken.into_iter().for_each(TaskRef::put_back);
            history.overtaken.most
        })
    }

    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn workers_of_a_runtime_overtake_by_no_more_than_is_promised_with_8_and_64_shards() {
        for (shards, seeds) in [(2, 4), (8, 4), (64, 1)] {
            let each =
                (0..seeds).map(|seed| most_overtaken(8 * shards, |history| history.random(seed)));
            let most = each.max().expect("there are seeds");
            println!("{shards} shards: {most}");
            assert!(
                (FREE as usize / 2..=bound(shards)).contains(&most),
                "{most}"
            );
        }
    }

    /// As in the model.
    #[test]
    #[cfg_attr(urgency_chaos, ignore = "chaos changes the order")]
    fn a_worker_of_a_runtime_that_is_ahead_does_not_leave_its_own_shard_for_a_younger_one() {
        let most = most_overtaken(24, |history| {
            for (shard, entries) in [(0, 100), (1, 1_000), (2, 1)] {
                (0..entries).for_each(|_| history.put(shard, What::Brief));
            }
        });
        assert!((1..=bound(3)).contains(&most), "{most}");
    }
}
