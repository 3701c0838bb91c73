//! The pool of one level under another order than aging: a queue for each worker, and shared ones.
//!
//! The policy code, built in or a user's, says where an entry goes and where a worker looks; here are the
//! queues that it talks about, each with a lock of its own (a shared one may have none: `overflow.rs`). An order over
//! two central queues has two shared ones. Every worker has its own value of the policy, under a lock of its own
//! (`asked.rs`). Simple first: this is for the choice of an order, and for comparisons; the default does not come here.
//!
//! What stands in a worker's queue are *entries*: tasks, resumable stacks, and deques with public forks. A deque gives
//! its oldest fork, and comes back if it has more, so that public forks are always in some queue. (The policies' own
//! question what becomes of the deque, `after_steal`, is for mechanisms whose deques stand where they are.)
//!
//! # Rules
//!
//! 1. *One queue's lock at a time*, and none while a policy is asked: what a policy is told of a queue may have changed
//!    when its answer comes. What is on its way from one queue to another is in no queue. `len` counts what is in one.
//! 2. *An entry that was put down is announced afterwards*, by an inserter as well as by a thief that comes back with
//!    half of a queue: a worker that looks while the entry is on its way finds nothing and may clear the level's bit.
//! 3. *Greedy.* A policy may send a worker to a queue that has nothing, leave small queues alone, or not let
//!    it steal at all (dealing). After [`LOOKS`] looks, or when the policy says that there is nowhere to
//!    look, the worker sweeps: it takes the oldest entry of any queue that has one. So no worker sleeps while the
//!    level has an entry, whatever the policy, and nothing is left behind a long run.
//! 4. *Depth.* Depth-ordered banks need an entry's depth in the DAG. If the entry became ready at a worker, its depth
//!    is one more than the depth of what that worker ran last; from outside it is 0.
//! 5. *Full.* A bounded queue whose spawners wait takes the entry all the same, and the stack of the spawner
//!    gives its turn, once, to what is in the queue (`Job::wait_for_room`). The first entry that a task
//!    makes takes the room that the task itself left, and does not wait: a chain of tasks is one entry after the other.
//!    Nor does a spawner wait for an entry from outside of the runtime, for an entry at another level than its own, or
//!    while as many spawners wait as the queue holds. So the queue may grow beyond its bound, by one entry for each
//!    turn that a spawner has given to all the others. (At first a spawner waited until there was room. With more tasks
//!    under way than the queues held, each of which spawned its successor, all waited for ever for room that only one
//!    of them could have made.)
//! 6. *What a policy makes ready itself* goes where an entry goes of which no policy says anything: the lock that its
//!    own policy has may be the one that is held.

use super::{asked::Asked, entry::Entry, overflow::SharedQueue};
use crate::protocol::occupied::Occupied;
use crate::sched::poll_context;
use crate::sys::{
    clock,
    mutex::{Mutex, MutexGuard},
};
use crossbeam_queue::SegQueue;
use crossbeam_utils::CachePadded;
use std::{
    collections::VecDeque,
    mem,
    sync::atomic::{AtomicIsize, AtomicUsize, Ordering},
};
use urgency_policy::{
    dice::Dice,
    pool::{
        Amount, AnyOrder, Arrival, Chooser, End, Fitted, LOOKS, Layout, Place, PoolPolicy, Queue,
        QueueLayout, Shed, Sight, Source, around, deal,
    },
};

/// The number of the shared queue that is the mugging queue, in a central layout.
const MUGGING: usize = 0;

/// The number of the shared queue that is the regular queue, in a central layout.
const REGULAR: usize = 1;

/// A worker with entries asks every so many takings whether it should give some away.
const SHED_EVERY: u32 = 16;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Queues {
    layout: Layout,
    policies: Box<[CachePadded<Mutex<Fitted<Asked>>>]>,
    locals: Box<[CachePadded<Mutex<Local>>]>,
    shared: Box<[SharedQueue<Waiting>]>,
    /// Which of the shared queues have an entry.
    occupied: Occupied,
    adverts: SegQueue<usize>,
    /// How many entries are in a queue, without the entries that are just being taken or put.
    len: AtomicIsize,
    /// Where the next entry from outside goes.
    next: AtomicUsize,
    /// How many spawners wait.
    spawners: AtomicUsize,
    /// How many spawners may wait for room at once.
    most_waiting: usize,
}

/// An entry that waits.
#[derive(Debug)]
struct Waiting {
    entry: Entry,
    was_abandoned: bool,
    since: u64,
    depth: u32,
}

/// What is a worker's own.
#[derive(Debug, Default)]
struct Local {
    /// The oldest first; in banks by depth.
    queue: VecDeque<Waiting>,
    slot: Option<Waiting>,
    is_bank: bool,
    asked_by: Option<usize>,
    has_advertised: bool,
    takings: u32,
    /// Of what the worker runs.
    depth: u32,
    /// The task that the worker runs has not yet filled the room that it left.
    left_room: bool,
}

impl Local {
    fn put(&mut self, waiting: Waiting) {
        if self.is_bank {
            let place = self.queue.partition_point(|w| w.depth <= waiting.depth);
            self.queue.insert(place, waiting);
        } else {
            self.queue.push_back(waiting);
        }
    }

    fn take(&mut self, end: End) -> Option<Waiting> {
        match end {
            End::Slot => self.slot.take(),
            End::Oldest => self.queue.pop_front(),
            // Banks are sorted: the deepest is the last.
            End::Newest | End::Deepest => self.queue.pop_back(),
        }
    }

    fn take_any(&mut self) -> Option<Waiting> {
        self.queue.pop_front().or_else(|| self.slot.take())
    }

    fn waiting(&self) -> impl Iterator<Item = &Waiting> {
        self.queue.iter().chain(&self.slot)
    }
}

/// The number among the shared queues.
fn number_of(queue: Queue) -> usize {
    match queue {
        Queue::Mugging => MUGGING,
        Queue::Regular => REGULAR,
        Queue::Shared(number) => number,
    }
}

/// What a look of a worker at its own queue gave.
enum Look {
    Found(Waiting, Shed),
    Elsewhere(Source),
}

impl Queues {
    pub(crate) fn new((order, layout): (&AnyOrder, Layout), level: usize, workers: usize) -> Self {
        let dice = Dice::new(level as u64);
        let (shared, queues) = match layout {
            Layout::Central => (2, QueueLayout::default()),
            Layout::Deques => (1, QueueLayout::default()),
            Layout::Queues(queues) => (queues.shared, queues),
        };
        let policy = |me| {
            let asked = Asked::new(order.policy(me, workers, &dice));
            Fitted::new((layout, workers), me, asked)
        };
        let local = || Local {
            is_bank: queues.by_depth,
            ..Local::default()
        };
        Queues {
            layout,
            policies: (0..workers)
                .map(|me| CachePadded::new(Mutex::new(policy(me))))
                .collect(),
            locals: (0..workers)
                .map(|_| CachePadded::new(Mutex::new(local())))
                .collect(),
            shared: (0..shared)
                .map(|_| SharedQueue::new(queues.is_lock_free))
                .collect(),
            occupied: Occupied::new(),
            adverts: SegQueue::new(),
            len: AtomicIsize::new(0),
            next: AtomicUsize::new(0),
            spawners: AtomicUsize::new(0),
            most_waiting: match queues.spawners_wait {
                true => queues.capacity,
                false => 0,
            },
        }
    }

    fn local(&self, worker: usize) -> MutexGuard<'_, Local> {
        self.locals[worker].lock()
    }

    /// Asks a worker's policy. `None`: the calling code is a policy's itself (rule 6).
    fn ask<T>(&self, worker: usize, question: impl FnOnce(&mut Fitted<Asked>) -> T) -> Option<T> {
        (!poll_context::decides()).then(|| question(&mut self.policies[worker].lock()))
    }

    /// An entry became ready at worker `at`, or outside. Whether the queue is full, and its spawner is to wait. The
    /// caller announces the level.
    #[must_use]
    pub(crate) fn push(&self, at: Option<usize>, arrival: Arrival, entry: Entry) -> bool {
        let home =
            at.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed) % self.locals.len());
        let since = match &entry {
            Entry::Task(task) => task.ready_since(),
            _ => clock::now(),
        };
        let is_new = at.is_some() && matches!(arrival, Arrival::Task | Arrival::Root);
        let (own, depth, fills_room) = {
            let mut local = self.local(home);
            let depth = at.map_or(0, |_| local.depth.saturating_add(1));
            let fills_room = is_new && mem::take(&mut local.left_room);
            (local.queue.len(), depth, fills_room)
        };
        let place = self.ask(home, |policy| policy.place(arrival, own));
        let place = place.unwrap_or_else(|| self.layout.usual_place(home));
        let waiting = Waiting {
            entry,
            was_abandoned: arrival == Arrival::Abandoned,
            since,
            depth,
        };
        match place {
            Place::Slot => {
                let mut local = self.local(home);
                if let Some(last) = local.slot.replace(waiting) {
                    local.put(last);
                }
            }
            Place::Worker(worker) => self.local(worker).put(waiting),
            Place::Tail(queue) => {
                let number = number_of(queue);
                self.shared[number].push(waiting.since, waiting, &self.occupied, 1 << number);
            }
            Place::Full | Place::Dropped => self.local(home).put(waiting),
        }
        self.len.fetch_add(1, Ordering::SeqCst);
        place == Place::Full && is_new && !fills_room
    }

    fn take_shared(&self, number: usize) -> Option<Waiting> {
        self.shared[number].pop(&self.occupied, 1 << number)
    }

    /// The next entry for worker `me`, and whether it is a stack that was abandoned. `announce` is called
    /// after an entry came from one queue into another.
    pub(crate) fn pop(&self, me: usize, announce: impl Fn()) -> Option<(Entry, bool)> {
        let mut failed = 0;
        let found = loop {
            if self.is_empty() {
                return None;
            }
            if failed == LOOKS {
                break self.sweep(me);
            }
            let found = match self.look(me, failed) {
                Look::Found(waiting, shed) => {
                    self.shed(me, shed, &announce);
                    Some(waiting)
                }
                Look::Elsewhere(Source::Head(queue)) => self.take_shared(number_of(queue)),
                Look::Elsewhere(Source::Steal {
                    victim,
                    amount,
                    least,
                }) => self.steal(me, victim, amount, least, &announce),
                Look::Elsewhere(Source::Advert { amount }) => {
                    self.adverts.pop().and_then(|victim| {
                        self.local(victim).has_advertised = false;
                        self.steal(me, victim, amount, 1, &announce)
                    })
                }
                Look::Elsewhere(_) => break self.sweep(me),
            };
            if found.is_some() {
                break found;
            }
            failed += 1;
        }?;
        self.len.fetch_sub(1, Ordering::SeqCst);
        if failed > 0 || self.waits() {
            let mut local = self.local(me);
            local.depth = found.depth;
            local.left_room = matches!(found.entry, Entry::Task(_));
        }
        Some((found.entry, found.was_abandoned))
    }

    fn look(&self, me: usize, failed: u32) -> Look {
        let occupied = self.occupied.which();
        let is_central = self.layout == Layout::Central;
        let sight = {
            let mut local = self.local(me);
            Sight {
                mugging: is_central && occupied >> MUGGING & 1 == 1,
                regular: is_central && occupied >> REGULAR & 1 == 1,
                shared: if is_central { 0 } else { occupied },
                adverts: !self.adverts.is_empty(),
                own: local.queue.len(),
                slot: local.slot.is_some(),
                asked_by: local.asked_by.take(),
                failed,
            }
        };
        let source = self.ask(me, |policy| match policy.take_from(sight) {
            Source::OwnDeque => {
                let nth = policy.choose(sight.own, Chooser::Owner);
                (Source::OwnDeque, nth)
            }
            source => (source, 0),
        });
        let (source, nth) = source.unwrap_or((Source::Nowhere, 0));
        let mut local = self.local(me);
        let taken = match source {
            Source::Own(end) => local.take(end),
            Source::OwnDeque => local.queue.remove(nth),
            elsewhere => return Look::Elsewhere(elsewhere),
        };
        let Some(taken) = taken else {
            return Look::Elsewhere(Source::Nowhere);
        };
        local.depth = taken.depth;
        local.takings = local.takings.wrapping_add(1);
        let (own, may_shed) = (local.queue.len(), local.takings.is_multiple_of(SHED_EVERY));
        drop(local);
        let shed = may_shed.then(|| self.ask(me, |policy| policy.shed(own)));
        Look::Found(taken, shed.flatten().unwrap_or(Shed::Keep))
    }

    fn steal(
        &self,
        me: usize,
        victim: usize,
        amount: Amount,
        least: usize,
        announce: impl Fn(),
    ) -> Option<Waiting> {
        let there = self.local(victim).queue.len();
        if there < least.max(1) {
            return None;
        }
        if amount == Amount::One {
            let nth = self.ask(me, |policy| policy.choose(there, Chooser::Thief));
            let nth = nth.unwrap_or(0);
            let mut local = self.local(victim);
            let last = local.queue.len().checked_sub(1)?;
            return local.queue.remove(nth.min(last));
        }
        let mut taken: VecDeque<Waiting> = {
            let mut local = self.local(victim);
            let many = amount.of(local.queue.len());
            local.queue.drain(..many).collect()
        };
        let first = taken.pop_front();
        self.move_to(me, taken, announce);
        first
    }

    /// Puts down what was taken out of another queue.
    fn move_to(&self, worker: usize, taken: VecDeque<Waiting>, announce: impl Fn()) {
        if taken.is_empty() {
            return;
        }
        let many = taken.len() as isize;
        self.len.fetch_sub(many, Ordering::SeqCst);
        {
            let mut local = self.local(worker);
            taken.into_iter().for_each(|waiting| local.put(waiting));
        }
        self.len.fetch_add(many, Ordering::SeqCst);
        announce();
    }

    /// What a busy worker gives away.
    fn shed(&self, me: usize, shed: Shed, announce: impl Fn()) {
        match shed {
            Shed::Keep => {}
            Shed::Ask(other) => self.local(other).asked_by = Some(me),
            Shed::Advertise => {
                if !mem::replace(&mut self.local(me).has_advertised, true) {
                    self.adverts.push(me);
                }
            }
            Shed::Deal(other) => {
                if !self.local(other).queue.is_empty() {
                    return;
                }
                let dealt = {
                    let mut local = self.local(me);
                    let depths: Vec<u32> = local.queue.iter().map(|w| w.depth).collect();
                    local.queue.drain(..deal(&depths)).collect()
                };
                self.move_to(other, dealt, announce);
            }
        }
    }

    /// Rule 3.
    fn sweep(&self, me: usize) -> Option<Waiting> {
        let from_shared = || (0..self.shared.len()).find_map(|number| self.take_shared(number));
        around(me, self.locals.len())
            .find_map(|worker| self.local(worker).take_any())
            .or_else(from_shared)
    }

    /// Whether spawners wait for room.
    fn waits(&self) -> bool {
        self.most_waiting > 0
    }

    /// A spawner waits, while `f` runs, unless so many do already.
    pub(crate) fn as_waiting_spawner(&self, f: impl FnOnce()) {
        if self.spawners.fetch_add(1, Ordering::Relaxed) < self.most_waiting {
            f();
        }
        self.spawners.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::SeqCst) <= 0
    }

    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.len.load(Ordering::SeqCst)).unwrap_or(0)
    }

    /// When the oldest entry became ready, in ticks; never, if there is none.
    pub(crate) fn oldest(&self) -> u64 {
        let own = |local: &CachePadded<Mutex<Local>>| {
            local.lock().waiting().map(|waiting| waiting.since).min()
        };
        let own = self.locals.iter().filter_map(own);
        own.chain(self.shared.iter().map(SharedQueue::oldest))
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Takes all entries out.
    pub(crate) fn drain(&self) -> Vec<Entry> {
        let mut all: Vec<Entry> = Vec::new();
        while let Some(waiting) = self.sweep(0) {
            self.len.fetch_sub(1, Ordering::SeqCst);
            all.push(waiting.entry);
        }
        all
    }
}
