//! Work stealing inside one job whose workers come and go, node by node.
//!
//! The job is a *round*, a balanced fork-join tree with a serial end, again and again. Its active workers steal from
//! each other at random (continuations, oldest first, as Cilk does). A worker that is taken away stops at the end of
//! its node and leaves its deque. That is the *leftover*; [`Leftovers`] says how it is finished.
//!
//! Two things are measured here: how long a round takes on x workers, from which [`run`](super::run) knows how fast a
//! job is ([`Speed`]), and how often thieves look at a victim ([`Stolen`]), for the bound of the AMCilk paper: x
//! looks for each unit of span, whatever number of workers sleep ([`crate::bounds::steals_of_active`]).
//!
//! Where nothing can be taken, thieves look in vain until a worker with a node goes on. Their looks until then are
//! counted, and their lots drawn, all at once: the result is the same, and a round does not take longer to simulate the
//! less a look costs. (Look by look, the feedback pair on 64 cores took 12 million events in its low loop alone.)

use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use urgency_policy::dice::Dice;

/// A fork-join tree of `2^depth` leaves with a serial end. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The depth of the tree, at most 20.
    pub depth: u32,
    /// The work of a leaf.
    pub leaf: u64,
    /// The work of an inner node, after its children.
    pub inner: u64,
    /// The work after the tree.
    pub serial: u64,
}

impl Round {
    /// A round of the AMCilk paper's jobs: 31 nodes of 10 µs in a tree, 10 µs serial; 320 µs of work.
    pub const BING: Round = Round {
        depth: 5,
        leaf: 1,
        inner: 10_000,
        serial: 10_000,
    };

    /// A loop of 1,024 leaves of 10 µs.
    pub const LOOP: Round = Round {
        depth: 10,
        leaf: 10_000,
        inner: 100,
        serial: 100,
    };

    /// The work of all nodes.
    pub fn work(self) -> u64 {
        let leaves = 1u64 << self.depth;
        leaves * self.leaf + (leaves - 1) * self.inner + self.serial
    }

    /// The longest path.
    pub fn span(self) -> u64 {
        self.leaf + u64::from(self.depth) * self.inner + self.serial
    }

    /// How long a worker runs between two scheduling points, at most.
    pub fn frame(self) -> u64 {
        self.leaf.max(self.inner).max(self.serial).max(1)
    }
}

/// What thieves do, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StealCosts {
    /// A look at a victim that has nothing (at least 1).
    pub attempt: u64,
    /// A steal.
    pub steal: u64,
    /// Continuing a whole leftover deque.
    pub mug: u64,
}

/// How the work is finished that a worker left when it was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// A thief continues the whole deque before it steals from anybody (the AMCilk paper, section III-E).
    MuggedFirst,
    /// Thieves steal from it as from any other worker, and look at sleepers that left nothing as well.
    AmongAll,
}

/// What happened while so many rounds were run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stolen {
    /// How long it took, in nanoseconds.
    pub time: u64,
    /// Looks at a victim, with or without success.
    pub attempts: u64,
    /// Those with success.
    pub steals: u64,
    /// Leftovers that were continued.
    pub mugs: u64,
    /// The longest path of all rounds together.
    pub span: u64,
}

/// A way to run a tree: so many workers active of all, and how often one is exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Crew {
    /// How many workers are active at any time.
    pub active: usize,
    /// How many workers there are; the others sleep.
    pub all: usize,
    /// Each so many nanoseconds an active worker is taken away and a sleeping one put into its place; never if 0.
    pub exchange: u64,
    /// How the work that it left is finished.
    pub leftovers: Leftovers,
}

impl Crew {
    /// So many workers for good.
    pub fn steady(active: usize) -> Self {
        Crew {
            active,
            all: active,
            exchange: 0,
            leftovers: Leftovers::MuggedFirst,
        }
    }
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Run the node's own work, the children being done.
    Node(u32),
    /// Begin the subtree.
    Subtree(u32),
    Serial,
    Steal,
}

#[derive(Debug)]
struct Worker {
    active: bool,
    next: Next,
    /// Nodes whose second child is open, the oldest first.
    deque: VecDeque<u32>,
}

struct Engine {
    round: Round,
    costs: StealCosts,
    crew: Crew,
    workers: Vec<Worker>,
    /// Active ones, for thieves.
    active: Vec<usize>,
    /// Sleeping workers that left something.
    left: VecDeque<usize>,
    /// How many entries all deques have together.
    entries: usize,
    /// When the next worker is exchanged.
    exchange_at: u64,
    joined: Vec<u8>,
    rounds: u32,
    dice: Dice,
    stolen: Stolen,
    events: BinaryHeap<Reverse<(u64, u64, usize)>>,
    number: u64,
    now: u64,
}

/// Runs so many rounds one after the other.
///
/// # Panics
///
/// If no worker is active, more are active than there are, or the tree is deeper than 20.
pub fn steal(round: Round, rounds: u32, crew: Crew, costs: StealCosts, seed: u64) -> Stolen {
    assert!(
        (1..=crew.all).contains(&crew.active),
        "1 to {} can be active",
        crew.all
    );
    assert!(
        round.depth <= 20,
        "a tree of depth {}; it can be 20",
        round.depth
    );
    let worker = |me| Worker {
        active: me < crew.active,
        next: if me == 0 {
            Next::Subtree(1)
        } else {
            Next::Steal
        },
        deque: VecDeque::new(),
    };
    let mut engine = Engine {
        round,
        costs,
        crew,
        workers: (0..crew.all).map(worker).collect(),
        active: (0..crew.active).collect(),
        left: VecDeque::new(),
        entries: 0,
        exchange_at: match crew.exchange {
            0 => u64::MAX,
            exchange if crew.all > crew.active => exchange,
            _ => u64::MAX,
        },
        joined: vec![0; 2 << round.depth],
        rounds,
        dice: Dice::new(seed),
        stolen: Stolen {
            span: u64::from(rounds) * round.span(),
            ..Stolen::default()
        },
        events: BinaryHeap::new(),
        number: 0,
        now: 0,
    };
    engine.run();
    engine.stolen
}

impl Engine {
    fn run(&mut self) {
        for me in 0..self.crew.active {
            self.at(0, me);
        }
        while self.rounds > 0 {
            let Reverse((now, _, me)) = self.events.pop().expect("a worker of the job is active");
            self.now = now;
            if now >= self.exchange_at {
                self.exchange_at += self.crew.exchange;
                self.exchange(me);
                continue;
            }
            self.step(me);
        }
        self.stolen.time = self.now;
    }

    fn at(&mut self, time: u64, me: usize) {
        self.number += 1;
        self.events.push(Reverse((time, self.number, me)));
    }

    /// The worker is at a scheduling point: it leaves, and another one comes.
    fn exchange(&mut self, me: usize) {
        let sleeping = (0..self.crew.all).filter(|&w| !self.workers[w].active);
        let sleeping: Vec<usize> = sleeping.collect();
        let comes = sleeping[self.dice.below(sleeping.len() as u64) as usize];
        self.workers[me].active = false;
        if self.has_left(me) {
            self.left.push_back(me);
        }
        let place = self.active.iter().position(|&w| w == me);
        self.active[place.expect("a worker at a point is active")] = comes;
        // What it left itself it goes on with.
        self.left.retain(|&w| w != comes);
        self.workers[comes].active = true;
        self.at(self.now, comes);
    }

    fn has_left(&self, me: usize) -> bool {
        let worker = &self.workers[me];
        worker.next != Next::Steal || !worker.deque.is_empty()
    }

    /// The worker goes on.
    fn step(&mut self, me: usize) {
        match self.workers[me].next {
            Next::Subtree(node) => self.begin(me, node),
            Next::Node(node) => self.complete(me, node),
            Next::Serial => {
                self.rounds -= 1;
                self.joined.fill(0);
                self.begin(me, 1);
            }
            Next::Steal => self.look(me),
        }
    }

    /// Down the first children to a leaf, and runs that.
    fn begin(&mut self, me: usize, mut node: u32) {
        let first_leaf = 1u32 << self.round.depth;
        while node < first_leaf {
            self.workers[me].deque.push_back(node);
            self.entries += 1;
            node *= 2;
        }
        self.workers[me].next = Next::Node(node);
        self.at(self.now + self.round.leaf, me);
    }

    /// All of the node's subtree has run.
    fn complete(&mut self, me: usize, node: u32) {
        if node == 1 {
            self.workers[me].next = Next::Serial;
            return self.at(self.now + self.round.serial, me);
        }
        let parent = node / 2;
        self.joined[parent as usize] += 1;
        if self.workers[me].deque.back() == Some(&parent) {
            self.workers[me].deque.pop_back();
            self.entries -= 1;
            return self.begin(me, 2 * parent + 1);
        }
        if self.joined[parent as usize] == 2 {
            self.workers[me].next = Next::Node(parent);
            return self.at(self.now + self.round.inner, me);
        }
        self.workers[me].next = Next::Steal;
        self.look(me);
    }

    /// A thief looks at somebody.
    fn look(&mut self, me: usize) {
        if self.crew.leftovers == Leftovers::MuggedFirst
            && let Some(victim) = self.left.pop_front()
        {
            self.stolen.mugs += 1;
            let next = std::mem::replace(&mut self.workers[victim].next, Next::Steal);
            let deque = std::mem::take(&mut self.workers[victim].deque);
            self.workers[me].next = next;
            self.workers[me].deque = deque;
            return self.at(self.now + self.costs.mug, me);
        }
        self.stolen.attempts += 1;
        let victim = match self.crew.leftovers {
            Leftovers::MuggedFirst => {
                let lot = self.lot(self.active.len());
                self.active[lot]
            }
            Leftovers::AmongAll => self.lot(self.crew.all),
        };
        let entry = if victim == me {
            None
        } else {
            self.take_oldest(victim)
        };
        match entry {
            Some(next) => {
                self.stolen.steals += 1;
                self.workers[me].next = next;
                self.at(self.now + self.costs.steal, me);
            }
            None => {
                self.at(self.now + self.look_time(), me);
                if !self.is_anything_left() {
                    self.look_in_vain();
                }
            }
        }
    }

    /// How long a look takes that finds nothing.
    fn look_time(&self) -> u64 {
        self.costs.attempt.max(1)
    }

    /// Whether a thief could take something now.
    fn is_anything_left(&self) -> bool {
        let is_left = |worker: &Worker| !worker.active && worker.next != Next::Steal;
        self.entries > 0
            || match self.crew.leftovers {
                Leftovers::MuggedFirst => !self.left.is_empty(),
                Leftovers::AmongAll => self.workers.iter().any(is_left),
            }
    }

    /// All thieves look in vain until a worker with a node goes on, or one is exchanged.
    fn look_in_vain(&mut self) {
        let all = std::mem::take(&mut self.events).into_iter();
        let (mut thieves, others): (Vec<_>, Vec<_>) =
            all.partition(|Reverse((.., worker))| self.workers[*worker].next == Next::Steal);
        let node = others.iter().map(|Reverse((time, ..))| *time).min();
        let until = node.unwrap_or(self.now).min(self.exchange_at);
        // Of two that would look at the same moment, the one that is further behind has looked before.
        thieves.sort_unstable_by_key(|&Reverse((time, number, _))| (Reverse(time), number));
        self.events = others.into();
        for Reverse((time, number, worker)) in thieves {
            let looks = until.saturating_sub(time).div_ceil(self.look_time());
            if looks == 0 {
                self.events.push(Reverse((time, number, worker)));
                continue;
            }
            self.stolen.attempts += looks;
            self.dice.skip(looks);
            self.at(time + looks * self.look_time(), worker);
        }
    }

    /// The oldest entry of a victim; if a sleeper left no entry, what the sleeper would do next.
    fn take_oldest(&mut self, victim: usize) -> Option<Next> {
        let victim = &mut self.workers[victim];
        if let Some(node) = victim.deque.pop_front() {
            self.entries -= 1;
            return Some(Next::Subtree(2 * node + 1));
        }
        let is_left = !victim.active && victim.next != Next::Steal;
        is_left.then(|| std::mem::replace(&mut victim.next, Next::Steal))
    }

    fn lot(&mut self, bound: usize) -> usize {
        self.dice.below(bound as u64) as usize
    }
}

/// The most workers that are measured; more are as fast as so many.
const MOST: usize = 64;

/// How fast a round is on each number of workers.
#[derive(Clone, Debug)]
pub struct Speed {
    round: Round,
    /// By workers less one: nanoseconds for a round.
    times: Vec<f64>,
}

impl Speed {
    /// Measures rounds on 1 to `most` workers.
    pub fn measure(round: Round, most: usize, costs: StealCosts, seed: u64) -> Self {
        let rounds = (8_000 >> round.depth).clamp(1, 60);
        let time = |workers| {
            let stolen = steal(round, rounds, Crew::steady(workers), costs, seed);
            stolen.time as f64 / f64::from(rounds)
        };
        let mut times: Vec<f64> = (1..=most.clamp(1, MOST)).map(time).collect();
        // One more worker never makes a job slower than its span; noise of the lots does not make it slower either.
        for index in 1..times.len() {
            times[index] = times[index].min(times[index - 1]);
        }
        Speed { round, times }
    }

    /// The round.
    pub fn round(&self) -> Round {
        self.round
    }

    /// How long a round takes on so many workers, in nanoseconds; for ever on none.
    pub fn time(&self, workers: usize) -> f64 {
        match workers {
            0 => f64::INFINITY,
            workers => self.times[workers.min(self.times.len()) - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: StealCosts = crate::jobs::JobCosts::ZERO.steal;

    #[test]
    fn a_round_takes_its_work_alone_and_its_span_with_many() {
        let alone = Speed::measure(Round::BING, 64, FREE, 1);
        assert_eq!(alone.time(1), Round::BING.work() as f64);
        let ratio = alone.time(64) / Round::BING.span() as f64;
        assert!((1.0..1.2).contains(&ratio), "{ratio}");
        assert!(alone.time(1000) == alone.time(64) && alone.time(0).is_infinite());
        assert_eq!((Round::BING.work(), Round::BING.span()), (320_032, 60_001));
    }

    #[test]
    fn every_round_is_finished_though_workers_are_exchanged_all_the_time() {
        for leftovers in [Leftovers::MuggedFirst, Leftovers::AmongAll] {
            let crew = Crew {
                active: 3,
                all: 20,
                exchange: 5_000,
                leftovers,
            };
            let stolen = steal(Round::BING, 50, crew, FREE, 3);
            let least = 50 * Round::BING.work() / 3;
            assert!(
                stolen.time >= least && stolen.time < 2 * least + stolen.span,
                "{stolen:?}"
            );
        }
    }
}
