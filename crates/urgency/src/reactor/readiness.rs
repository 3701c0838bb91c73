//! The readiness of one descriptor in one direction, and the queue of its waiters.
//!
//! # Words
//!
//! - **edge**: the kernel says that the descriptor became ready (or hung up, or failed).
//! - **attempt**: the non-blocking system call itself. It alone knows the truth.
//! - **waiter**: a future that waits, known by its *ticket*; tickets order the queue (FIFO).
//! - **watcher**: a task that used a `poll_*` form. It has no identity that could be removed, so
//!   all watchers are woken by every edge and then forgotten.
//! - **wake obligation**: the duty of a woken waiter to use the readiness or to pass it on.
//!
//! # State
//!
//! One word: `READY` (the last thing known is that an attempt may succeed), `EXCEPTIONAL` (a hang-up,
//! error or urgent data was reported: short reads prove nothing any more), `SHUT` (the driver is gone: do
//! not wait), and above them a count of edges. `READY` is set at first: an attempt costs less than a wait.
//!
//! Beside it a flag says whether the queue has a waiter. It is written under the lock.
//!
//! # Protocol
//!
//! 1. [`look`](Readiness::look) (one load). If `READY`, attempt. If the attempt succeeds, that is
//!    all: no lock, no write.
//! 2. If the attempt would block, [`retract`](Readiness::retract) `READY`. The retraction fails if an edge came since
//!    the look; then go to 1. A short read or write of a stream is a hint that the next attempt would block:
//!    [`retract_if_trusted`](Readiness::retract_if_trusted) saves that attempt.
//! 3. [`wait`](Readiness::wait) enters the queue under the lock unless `READY` or `SHUT` is set by then.
//! 4. An [`edge`](Readiness::edge) first sets `READY` and counts, then takes the lock, all watchers and
//!    the first waiter, which thereby has a wake obligation.
//! 5. A future that waited calls [`leave`](Readiness::leave) when it got its result or is dropped. If it is no longer
//!    in the queue, it had a wake obligation: while `READY` is set the next waiter gets that. If the flag says that the
//!    queue is empty there is no next waiter, and no lock is taken.
//! 6. A waiter with a wake obligation whose attempt would block waits again, at its old place in the queue.
//!
//! Invariant: while `READY` is set and the queue is not empty, a waiter has a wake obligation.
//!
//! # Named races
//!
//! - *Edge between attempt and retraction*: the count differs, so the retraction fails (2).
//! - *Edge between retraction and wait*: seen under the lock (3), since the edge sets the state before
//!   it takes the lock (4).
//! - *Woken and dropped*: 5. A future that is leaked, or never polled again, after it was woken keeps its
//!   wake obligation; the next edge makes another one.
//! - *Leave against wait*: the future that leaves does not see the flag of a waiter that has just entered. That one
//!   found `READY` clear, so an edge is to come, which takes the first waiter with it (4).
//! - *Barging*: an attempt that finds `READY` does not look at the queue. The overtaken waiter goes
//!   back to its place (6).
//!
//! Wakers are never woken or dropped under the lock: dropping a waker can drop a task, and with it a future that waits
//! right here. A waker may be the program's code, and wake obligations and bytes are passed on in a `Drop`. So a panic
//! of a waker is caught ([`wake`]).
//!
//! # Rejected
//!
//! Waking all waiters on each edge (eight acceptors would run for one connection); one slot per
//! direction (two tasks that share a socket would wake each other in turns for ever).

use super::watchers::Watchers;
use crate::{
    sys::{
        mutex::Mutex,
        primitives::atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    tasks::{caught, discard_payload},
};
use std::{collections::VecDeque, task::Waker};

const READY: usize = 1;
const EXCEPTIONAL: usize = 2;
const SHUT: usize = 4;
const EDGE: usize = 8;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Readiness {
    state: AtomicUsize,
    /// Whether `queue` has a waiter.
    queued: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    next: u64,
    queue: VecDeque<(Ticket, Waker)>,
    watchers: Watchers,
}

/// The identity and the place of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// What was known at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look(usize);

impl Look {
    /// An attempt may succeed.
    #[inline]
    pub(crate) fn is_ready(self) -> bool {
        self.0 & READY != 0
    }

    /// Waiting is useless.
    pub(crate) fn is_shut(self) -> bool {
        self.0 & SHUT != 0
    }
}

impl Readiness {
    pub(crate) fn new() -> Self {
        Readiness {
            state: AtomicUsize::new(READY),
            queued: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                next: 0,
                queue: VecDeque::new(),
                watchers: Watchers::new(),
            }),
        }
    }

    /// Step 1.
    #[inline]
    pub(crate) fn look(&self) -> Look {
        // Acquire: an attempt after this look sees what the edges in it reported.
        Look(self.state.load(Ordering::Acquire))
    }

    /// Step 2. `false`: something happened since `look`; look again.
    #[inline]
    pub(crate) fn retract(&self, look: Look) -> bool {
        self.state
            .compare_exchange(look.0, look.0 & !READY, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Step 2, after a short read or write that began after `look`.
    #[inline]
    pub(crate) fn retract_if_trusted(&self, look: Look) {
        if look.0 & EXCEPTIONAL == 0 {
            self.retract(look);
        }
    }

    /// Step 3, for a future. `false`: look again.
    pub(crate) fn wait(&self, ticket: &mut Option<Ticket>, waker: &Waker) -> bool {
        let waker = waker.clone();
        // Declared before the guard, so that a replaced waker is dropped after it.
        let _replaced;
        let mut waiting = self.waiting.lock();
        if self.state.load(Ordering::Relaxed) & (READY | SHUT) != 0 {
            return false;
        }
        let ticket = *ticket.get_or_insert_with(|| {
            waiting.next += 1;
            Ticket(waiting.next)
        });
        match waiting.position(ticket) {
            Ok(place) => _replaced = std::mem::replace(&mut waiting.queue[place].1, waker),
            Err(place) => {
                waiting.queue.insert(place, (ticket, waker));
                self.queued.store(true, Ordering::Release);
            }
        }
        true
    }

    /// Step 3, for a `poll_*` form. `false`: look again.
    pub(crate) fn watch(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let ousted = {
            let mut waiting = self.waiting.lock();
            if self.state.load(Ordering::Relaxed) & (READY | SHUT) != 0 {
                return false;
            }
            if waiting.watchers.has(&waker) {
                return true;
            }
            waiting.watchers.add(waker)
        };
        ousted.into_iter().for_each(wake);
        true
    }

    /// Step 4. Adds the wakers that are to be woken, the oldest first.
    pub(crate) fn edge(&self, exceptional: bool, ready: &mut Vec<Waker>) {
        let sticky = if exceptional { EXCEPTIONAL } else { 0 };
        let edge = |old: usize| Some(old.wrapping_add(EDGE) | READY | sticky);
        let _ = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, edge);
        let mut waiting = self.waiting.lock();
        ready.extend(self.take_first(&mut waiting));
        ready.extend(waiting.watchers.take());
    }

    fn take_first(&self, waiting: &mut Waiting) -> Option<Waker> {
        let (_, waker) = waiting.queue.pop_front()?;
        self.queued
            .store(!waiting.queue.is_empty(), Ordering::Release);
        Some(waker)
    }

    /// Step 5, by a future that has a ticket.
    pub(crate) fn leave(&self, ticket: Ticket) {
        // Acquire: the edge that took this waiter out wrote before it woke it.
        if !self.queued.load(Ordering::Acquire) {
            return;
        }
        let _own;
        let mut waiting = self.waiting.lock();
        let next = match waiting.position(ticket) {
            Ok(place) => {
                _own = waiting.queue.remove(place);
                self.queued
                    .store(!waiting.queue.is_empty(), Ordering::Release);
                None
            }
            Err(_) if self.state.load(Ordering::Relaxed) & READY != 0 => {
                self.take_first(&mut waiting)
            }
            Err(_) => None,
        };
        drop(waiting);
        if let Some(waker) = next {
            wake(waker);
        }
    }

    /// Ends all waiting here, for ever. Adds all wakers.
    pub(crate) fn shut(&self, ready: &mut Vec<Waker>) {
        self.state.fetch_or(SHUT, Ordering::AcqRel);
        let mut waiting = self.waiting.lock();
        ready.extend(waiting.queue.drain(..).map(|(_, waker)| waker));
        self.queued.store(false, Ordering::Release);
        ready.extend(waiting.watchers.take());
    }
}

/// Wakes, and goes on whatever that does: a panic is reported by the panic hook.
pub(crate) fn wake(waker: Waker) {
    if let Some(panic) = caught(|| waker.wake()) {
        discard_payload(panic);
    }
}

/// Wakes all, whatever the wakers do.
pub(crate) fn wake_all(ready: &mut Vec<Waker>) {
    ready.drain(..).for_each(wake);
}

impl Waiting {
    /// Where `ticket` is, or where it belongs.
    fn position(&self, ticket: Ticket) -> Result<usize, usize> {
        self.queue.binary_search_by_key(&ticket, |entry| entry.0)
    }
}

#[cfg(all(test, urgency_loom))]
#[path = "readiness_loom.rs"]
mod loom_models;

#[cfg(all(test, not(urgency_loom)))]
mod tests {
    use super::*;
    use std::{
        sync::{Arc, Mutex as StdMutex},
        task::Wake,
    };

    /// A waker that writes its name into a log.
    struct Named(&'static str, Arc<StdMutex<Vec<&'static str>>>);

    impl Wake for Named {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    struct Log(Arc<StdMutex<Vec<&'static str>>>);

    impl Log {
        fn new() -> Self {
            Log(Arc::default())
        }
        fn waker(&self, name: &'static str) -> Waker {
            Arc::new(Named(name, self.0.clone())).into()
        }
        fn take(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    fn edge(readiness: &Readiness) {
        let mut ready = Vec::new();
        readiness.edge(false, &mut ready);
        ready.into_iter().for_each(Waker::wake);
    }

    fn drained() -> Readiness {
        let readiness = Readiness::new();
        assert!(readiness.retract(readiness.look()));
        readiness
    }

    #[test]
    fn an_edge_wakes_the_waiter_that_came_first() {
        let (readiness, log) = (drained(), Log::new());
        let (mut a, mut b) = (None, None);
        assert!(readiness.wait(&mut a, &log.waker("a")));
        assert!(readiness.wait(&mut b, &log.waker("b")));
        edge(&readiness);
        assert_eq!(log.take(), ["a"]);
        readiness.leave(a.unwrap());
        assert_eq!(log.take(), ["b"], "the readiness may suffice for both");
    }

    #[test]
    fn a_woken_waiter_that_finds_nothing_keeps_its_place() {
        let (readiness, log) = (drained(), Log::new());
        let (mut a, mut b) = (None, None);
        readiness.wait(&mut a, &log.waker("a"));
        readiness.wait(&mut b, &log.waker("b"));
        edge(&readiness);
        assert!(readiness.retract(readiness.look()));
        assert!(readiness.wait(&mut a, &log.waker("a again")));
        log.take();
        edge(&readiness);
        assert_eq!(log.take(), ["a again"]);
    }

    #[test]
    fn a_waiter_dropped_in_the_queue_is_forgotten() {
        let (readiness, log) = (drained(), Log::new());
        let (mut a, mut b) = (None, None);
        readiness.wait(&mut a, &log.waker("a"));
        readiness.wait(&mut b, &log.waker("b"));
        readiness.leave(a.unwrap());
        assert_eq!(log.take(), [""; 0]);
        edge(&readiness);
        assert_eq!(log.take(), ["b"]);
    }

    #[test]
    fn an_edge_after_the_look_makes_the_retraction_fail() {
        let readiness = Readiness::new();
        let look = readiness.look();
        edge(&readiness);
        assert!(!readiness.retract(look));
        assert!(readiness.look().is_ready());
    }

    #[test]
    fn after_a_hang_up_short_reads_are_not_trusted() {
        let readiness = Readiness::new();
        readiness.retract_if_trusted(readiness.look());
        assert!(!readiness.look().is_ready());
        readiness.edge(true, &mut Vec::new());
        readiness.retract_if_trusted(readiness.look());
        assert!(readiness.look().is_ready());
        assert!(readiness.retract(readiness.look()), "a real attempt is");
    }

    #[test]
    fn all_watchers_are_woken_by_each_edge_and_no_watcher_twice() {
        let (readiness, log) = (drained(), Log::new());
        let (a, b) = (log.waker("a"), log.waker("b"));
        for waker in [&a, &b, &a] {
            assert!(readiness.watch(waker));
        }
        edge(&readiness);
        assert_eq!(log.take(), ["a", "b"]);
        assert!(!readiness.watch(&a), "ready: attempt instead");
    }

    #[test]
    fn watchers_that_never_come_back_are_woken_to_make_room() {
        let (readiness, log) = (drained(), Log::new());
        for _ in 0..37 {
            assert!(readiness.watch(&log.waker("w")));
        }
        assert_eq!(log.take().len(), 32);
        edge(&readiness);
        assert_eq!(log.take().len(), 5);
    }

    #[test]
    fn a_shut_readiness_wakes_everybody_and_lets_nobody_wait() {
        let (readiness, log) = (drained(), Log::new());
        let mut a = None;
        readiness.wait(&mut a, &log.waker("a"));
        readiness.watch(&log.waker("w"));
        let mut ready = Vec::new();
        readiness.shut(&mut ready);
        assert_eq!(ready.len(), 2);
        assert!(readiness.look().is_shut());
        assert!(!readiness.wait(&mut None, &log.waker("b")));
        assert!(!readiness.watch(&log.waker("b")));
    }
}
