//! The lock of a `Mutex`, without the data.
//!
//! # The word
//!
//! | bits | name | what it says |
//! |---|---|---|
//! | 0 | `QUEUED` | the queue's: somebody waits (queue.rs) |
//! | 1 | `LOCKED` | the lock is held |
//! | 2 | `KNOWN` | [`Inheritance`] knows the holder, so the release must come to the queue's lock |
//! | 3 | `PASSED` | the lock was granted to a waiter that did not come for it yet |
//! | 4 | `OFFERED` | a waiter was woken without a grant: it has the first claim to a free lock |
//! | 5 | `DUE` | the next release must be a grant |
//! | 6 to 11 | `LEVEL` | with `OFFERED`: the level by which that waiter stands in the queue |
//! | from 12 | the *name* | the task that holds the lock; 0 if the holder is no task |
//!
//! By the name a waiter finds the holder, at no cost for code that does not wait.
//!
//! The usual life: free, `LOCKED`, free. With a waiter: `LOCKED | QUEUED`; at the release `OFFERED | QUEUED`; when the
//! waiter has come, `LOCKED`. With a waiter that is overtaken once: `LOCKED | OFFERED | QUEUED` while the overtaker has
//! it, `LOCKED | DUE | QUEUED` when the waiter has come, and at the release `LOCKED | PASSED`.
//!
//! # Protocol
//!
//! 1. *Lock*: one compare-and-swap, if the lock is free and the queue is empty.
//! 2. Otherwise, if the holder may be running and no other waiter has a claim, look again for a moment: a short
//!    critical section is over before a place in the queue is taken. Otherwise enter the queue, and let the holder
//!    inherit (inherit.rs).
//! 3. *Unlock*: one compare-and-swap, if the queue is empty or the lock is offered already, and the holder is not
//!    known. Otherwise the lock is *offered* to the waiter whose turn it is: the waiter is woken and keeps its place,
//!    and the lock is free. If the lock is `DUE`, it is granted to that waiter instead, and stays locked. In either
//!    case the old holder then gives back what it inherited. A stack that was granted the lock is resumed before what
//!    has not begun at its level: while it waited for its turn nothing would have the lock's use, and what began
//!    meanwhile could end in the queue, piece after piece.
//! 4. While the lock is offered, running code that is as urgent as that waiter may lock and unlock it by step 1
//!    (*overtake*), so a lock held for nanoseconds does not stand still until a task has come to a worker. The offer
//!    ends when the waiter comes: it takes the lock if the lock is free, and otherwise makes it `DUE`. So a waiter is
//!    overtaken only until it has come to a worker, and then waits for one release. The waiter's urgency here is the
//!    level by which it stands in the queue, even if it has another level now. By that level the waiter itself may take
//!    the lock that it was offered; otherwise nothing would take it.
//! 5. A waiter that enters the queue while the lock is held, or leaves the queue, ends an offer: the next release
//!    decides anew. So a more urgent waiter is considered, and an offer is not lost with its waiter. A waiter whose
//!    offer was ended has been woken nevertheless, and makes the lock `DUE` when it comes. A newcomer that finds the
//!    lock free, and offered to a more urgent waiter, leaves the offer in place: that waiter will come.
//! 6. *Drop of a waiter*: if the lock was granted to the waiter, unlock.
//!
//! A future that waits on behalf of a task has a note in that task (tasks/boost.rs, step 6). The note is taken out of
//! the same task, even if another task polls or drops the future in the end.
//!
//! Without the offers, all tasks that share a busy lock soon stood in its queue, and each turn cost a suspension: 340
//! ns for a critical section of 10 ns (docs/decisions/sync.md).
//!
//! # Named races
//!
//! - *Overtaken while a newcomer looks for the holder*: `LOCKED` and the name come and go by step 1 while the
//!   lock is offered. So `KNOWN` is set in the same step in which the name is read: with it only step 3
//!   unlocks, under the queue's lock, so the name stands still.
//!
//! # Futures that hold a place and are not polled
//!
//! A lock may be granted to a future that its task does not poll any more: the future is kept in a variable while a
//! `select!` goes on with another branch. If the same task then waits for the same lock, it is in a deadlock with
//! itself. A grant that its future did not come for can be taken back. So:
//!
//! 7. *Take over*: a future that would wait, and finds that the lock was granted to another future of its own
//!    task, takes the lock; the other one goes back to the head of the queue. To the program it is as if the
//!    two had come in the other order.
//!
//! If such a future has a guard already, the guard is out of reach. The case is counted as *suspected*, with the place
//! of the call. It need not be a deadlock: with `join_all` the other branch goes on. Both counts are in
//! [`self_deadlocks`](super::self_deadlocks()).

use super::{
    hooks,
    inherit::{Heir, Inheritance, Passed, as_lock},
    lists::{Key, Left, Wakers},
    queue::{Locked, QUEUED, WaitQueue},
    self_deadlock,
};
use crate::tasks::{Lock, TaskRef, contained};
use std::{
    hint,
    panic::Location,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
};

const LOCKED: u64 = 2;
const KNOWN: u64 = 4;
const PASSED: u64 = 8;
const OFFERED: u64 = 16;
const DUE: u64 = 32;
/// Six bits: the level of the waiter to which the lock is offered.
const LEVEL_SHIFT: u32 = 6;
const LEVEL: u64 = 63 << LEVEL_SHIFT;
const SHIFT: u32 = 12;

/// How often a newcomer looks again before it queues: a few hundred nanoseconds, which is what queueing costs.
const LOOKS: u32 = 16;

/// See the module's text.
pub(super) struct RawMutex {
    /// A grant is the waiter that it was made to.
    queue: WaitQueue<Waiter, Waiter>,
    inheritance: OnceLock<Arc<Inheritance>>,
}

/// A waiter: the task whose code waits.
#[derive(Clone)]
pub(super) struct Waiter {
    name: u64,
    /// Only where there are several levels.
    task: Option<TaskRef>,
    /// When it came to the queue.
    since: u64,
}

type Queue<'a> = Locked<'a, Waiter, Waiter>;

impl RawMutex {
    const_fn! {
        /// Not locked.
        pub(super) fn new() -> Self {
            RawMutex {
                queue: WaitQueue::new(0),
                inheritance: OnceLock::new(),
            }
        }
    }

    pub(super) fn is_locked(&self) -> bool {
        self.queue.word() & LOCKED != 0
    }

    /// Whether code of this level may take the lock: the lock is free, and either the queue is empty or the lock is
    /// offered to a waiter that is not more urgent.
    fn is_free_for(word: u64, level: impl FnOnce() -> u8) -> bool {
        if word & LOCKED != 0 {
            return false;
        }
        word & QUEUED == 0
            || word & OFFERED != 0 && u64::from(level()) <= (word & LEVEL) >> LEVEL_SHIFT
    }

    /// Steps 1 and 4. A waiter that comes itself ends the offer.
    fn take(word: u64, name: u64, level: impl FnOnce() -> u8) -> Option<u64> {
        Self::is_free_for(word, level).then_some(word | LOCKED | name << SHIFT)
    }

    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        let name = hooks::own_name();
        let take = |word| Self::take(word, name, hooks::level);
        self.queue.change_any(take).is_ok()
    }

    /// A poll of a future that locks. Without a key it did not wait yet.
    #[inline]
    pub(super) fn poll_lock(
        &self,
        key: &mut Option<Key>,
        cx: &Context<'_>,
        caller: &'static Location<'static>,
    ) -> Poll<()> {
        if key.is_none() {
            std::task::ready!(hooks::begin(cx));
            if self.try_lock() || self.try_for_a_moment() {
                return Poll::Ready(());
            }
            return self.enter(key, cx, caller);
        }
        self.poll_waiting(key, cx, caller)
    }

    /// Step 2, before the queue.
    #[cold]
    fn try_for_a_moment(&self) -> bool {
        if !hooks::others_run() {
            return false;
        }
        for _ in 0..LOOKS {
            let word = self.queue.word();
            if word & PASSED != 0 || word & (QUEUED | OFFERED) == QUEUED {
                return false;
            }
            if word & LOCKED == 0 && self.try_lock() {
                return true;
            }
            hint::spin_loop();
        }
        false
    }

    /// Step 2.
    #[cold]
    fn enter(
        &self,
        key: &mut Option<Key>,
        cx: &Context<'_>,
        caller: &'static Location<'static>,
    ) -> Poll<()> {
        let waker = cx.waker().clone();
        let (name, task) = (hooks::own_name(), hooks::own_task());
        let inheritance = hooks::is_leveled().then(|| self.inheritance.get_or_init(Arc::default));
        // The note comes before the look at the level, and that before the queue.
        if let (Some(task), Some(inheritance)) = (&task, inheritance) {
            task.begin_lock_wait(as_lock(inheritance));
        }
        let level = hooks::level();
        let own = task.clone();
        let since = hooks::ready_stamp();
        let waiter = Waiter { name, task, since };
        let mut queue = self.queue.lock();
        // Lock, or set the bit that says that the queue has a waiter, and end the offer.
        let enter = |word: u64| match Self::take(word, name, || level) {
            Some(taken) => taken,
            None if word & LOCKED != 0 => (word | QUEUED) & !(OFFERED | LEVEL),
            None => word,
        };
        let before = queue.change(enter);
        if Self::is_free_for(before, || level) {
            drop(queue);
            self.waited(&waiter);
            return Poll::Ready(());
        }
        let word = enter(before);
        if let Some(place) = Self::unclaimed(&queue, word, name) {
            let granted = queue.revoke(place, waiter, waker);
            queue.change(|word| word & !PASSED);
            self.note_contention(&queue);
            drop(queue);
            self.waited(&granted);
            self_deadlock::averted(caller);
            return Poll::Ready(());
        }
        *key = Some(queue.enter(level, waiter, waker));
        let heir = inheritance.and_then(|_| self.inherit_to_holder(&mut queue, level));
        drop(queue);
        heir.into_iter().for_each(Heir::announce);
        if let (Some(own), Some(inheritance)) = (own, inheritance) {
            let now = own.level();
            if now < level
                && let Some(heir) = inheritance.waiter_raised(&own, now)
            {
                heir.inherited(now);
            }
        }
        if name != 0 && word >> SHIFT == name {
            self_deadlock::suspected(caller);
        }
        Poll::Pending
    }

    /// A later poll.
    #[cold]
    fn poll_waiting(
        &self,
        key: &mut Option<Key>,
        cx: &Context<'_>,
        caller: &'static Location<'static>,
    ) -> Poll<()> {
        let is_overtaken = |word| word & (LOCKED | OFFERED) == LOCKED | OFFERED;
        if is_overtaken(self.queue.word()) && hooks::others_run() {
            // As in step 2.
            for _ in 0..LOOKS {
                if !is_overtaken(self.queue.word()) {
                    break;
                }
                hint::spin_loop();
            }
        }
        let waker = cx.waker().clone();
        let (name, level) = (hooks::own_name(), hooks::level());
        let place = key.as_ref().expect("it waits");
        // All dropped or called without the lock.
        let (mut unused_too, mut heir, mut passed) = (None, None, None);
        let mut queue = self.queue.lock();
        let (turn, woken) = (level.min(queue.level_of(place)), queue.is_woken(place));
        let (granted, unused) = queue.poll(key, waker);
        let mut overtook = false;
        let waited = if granted.is_some() {
            queue.change(|word| word & !PASSED);
            granted
        } else if Self::come(&mut queue, name, turn, woken) {
            let (waiter, waker) = Self::leave_waiting(&mut queue, key);
            unused_too = Some(waker);
            passed = self.inherit_from_others(&mut queue);
            Some(waiter)
        } else if let Some(place) = Self::unclaimed(&queue, queue.word(), name) {
            overtook = true;
            let (waiter, waker) = Self::leave_waiting(&mut queue, key);
            let granted = queue.revoke(place, waiter, waker);
            queue.change(|word| word & !PASSED);
            Some(granted)
        } else {
            if hooks::is_leveled() {
                heir = self.inherit_to_holder(&mut queue, level);
            }
            None
        };
        drop(queue);
        // Contained: this future may have the lock by now, and no guard of it yet.
        contained(|| drop((unused, unused_too)));
        heir.into_iter().for_each(Heir::announce);
        if let (Some(inheritance), Some(passed)) = (self.inheritance.get(), passed) {
            inheritance.passed(passed, || ());
        }
        let Some(waiter) = waited else {
            return Poll::Pending;
        };
        self.waited(&waiter);
        hooks::lock_waited(waiter.since);
        if overtook {
            self_deadlock::averted(caller);
        }
        Poll::Ready(())
    }

    /// Called by a waiter that was not granted the lock, and took it.
    fn leave_waiting(queue: &mut Queue<'_>, key: &mut Option<Key>) -> (Waiter, Waker) {
        match key.take().map(|key| queue.leave(key)) {
            Some(Left::Waiting(waiter, waker)) => (waiter, waker),
            _ => unreachable!("not granted, so it waits"),
        }
    }

    /// Step 4, by a waiter that was not granted the lock: whether it took it.
    fn come(queue: &mut Queue<'_>, name: u64, turn: u8, woken: bool) -> bool {
        let ended = |word: u64| word & !(OFFERED | LEVEL);
        let before = queue.change(|word| match Self::take(word, name, || turn) {
            Some(taken) => ended(taken),
            None if word & LOCKED != 0 && (woken || word & OFFERED != 0) => ended(word) | DUE,
            None => word,
        });
        Self::is_free_for(before, || turn)
    }

    /// A waiter of this level waits for the holder, or for the waiter to which the lock is offered. Returns the task
    /// that inherits, to be announced.
    fn inherit_to_holder(&self, queue: &mut Queue<'_>, level: u8) -> Option<Heir> {
        let inheritance = self.inheritance.get()?;
        let is_locked = |word: u64| word & LOCKED != 0;
        let word = queue.change(|word| if is_locked(word) { word | KNOWN } else { word });
        let name = is_locked(word).then_some(word >> SHIFT);
        let (heir, known) = inheritance.enter(name, level);
        if name.is_some() && !known {
            queue.change(|word| word & !KNOWN);
        }
        heir
    }

    /// The calling code has the lock and has left the queue: from now on it is at least as urgent as the remaining
    /// waiters.
    fn inherit_from_others(&self, queue: &mut Queue<'_>) -> Option<Passed> {
        let inheritance = self.inheritance.get()?;
        if inheritance.take_raised() {
            Self::sort(queue);
        }
        let holder = hooks::own_task();
        let known = if holder.is_some() { KNOWN } else { 0 };
        let passed = inheritance.pass_on(holder, None, queue.first_level());
        queue.change(|word| word | known);
        Some(passed)
    }

    fn sort(queue: &mut Queue<'_>) {
        queue.sort(|waiter| waiter.task.as_ref().map(TaskRef::level));
    }

    /// Step 7: the slot of another future of the task `name`, if the lock was granted to that future and the future did
    /// not come for it yet.
    fn unclaimed(queue: &Queue<'_>, word: u64, name: u64) -> Option<u32> {
        if name == 0 || word >> SHIFT != name {
            return None;
        }
        queue.granted(|to| to.name == name)
    }

    /// A future no longer waits.
    fn waited(&self, waiter: &Waiter) {
        if let (Some(task), Some(inheritance)) = (&waiter.task, self.inheritance.get()) {
            task.end_lock_wait(&as_lock(inheritance));
        }
    }

    fn note_contention(&self, queue: &Queue<'_>) {
        if let Some(inheritance) = self.inheritance.get() {
            inheritance.set_contended(!queue.is_empty());
        }
    }

    /// Step 3, by the holder of the lock.
    #[inline]
    pub(super) fn unlock(&self) {
        let free = |word: u64| {
            let unwanted = word & QUEUED == 0 || word & OFFERED != 0;
            (unwanted && word & KNOWN == 0).then_some(word & (QUEUED | OFFERED | LEVEL))
        };
        if self.queue.change_any(free).is_err() {
            self.unlock_cold();
        }
    }

    #[cold]
    fn unlock_cold(&self) {
        let mut wakers = Wakers::default();
        let inheritance = self.inheritance.get();
        // The first waiter entered while its task was more urgent: others may have the turn before it by now.
        let is_out_of_place = |queue: &Queue<'_>| {
            let first = queue.first().and_then(|first| first.task.as_ref());
            first.is_some_and(|task| Some(task.level()) != queue.first_level())
        };
        let mut queue = self.queue.lock();
        if inheritance.is_some_and(|inheritance| inheritance.take_raised())
            || is_out_of_place(&queue)
        {
            Self::sort(&mut queue);
        }
        let (mut word, mut others) = (0, None);
        let (mut next, mut offered) = (None, None);
        if let Some(first) = queue.first() {
            if queue.word() & DUE != 0 {
                let granted = first.clone();
                let (waiter, waker) = queue.grant(granted).expect("it is the first");
                wakers.push(waker);
                word = LOCKED | PASSED | waiter.name << SHIFT;
                others = queue.first_level();
                next = waiter.task;
            } else {
                offered = first.task.clone();
                let (waker, level) = queue.wake_first().expect("it is the first");
                wakers.push(waker);
                word = OFFERED | u64::from(level) << LEVEL_SHIFT;
                others = queue.next_level();
            }
        }
        let known = if next.is_some() { KNOWN } else { 0 };
        let passed = inheritance.map(|inheritance| inheritance.pass_on(next, offered, others));
        queue.change(|now| now & QUEUED | word | known);
        drop(queue);
        let is_granted = word & PASSED != 0;
        let wake = || {
            if is_granted {
                hooks::granting(|| wakers.wake());
            } else {
                wakers.wake();
            }
        };
        match (inheritance, passed) {
            (Some(inheritance), Some(passed)) => inheritance.passed(passed, wake),
            _ => wake(),
        }
    }

    /// Step 6, and 5.
    #[cold]
    pub(super) fn leave(&self, key: Key) {
        let mut queue = self.queue.lock();
        let left = queue.leave(key);
        self.note_contention(&queue);
        // If the lock is free and offered, this takes it and unlocks again, so that it is offered to the next waiter.
        let end = |word: u64| word & !(OFFERED | LEVEL) | LOCKED;
        let before = queue.change(|word| if word & OFFERED != 0 { end(word) } else { word });
        let owed = before & (OFFERED | LOCKED) == OFFERED;
        drop(queue);
        let is_granted = matches!(left, Left::Granted(_));
        if owed || is_granted {
            self.unlock();
        }
        let (Left::Waiting(waiter, _) | Left::Granted(waiter)) = &left;
        self.waited(waiter);
        hooks::lock_waited(waiter.since);
        if let (Some(task), Some(inheritance)) = (&waiter.task, self.inheritance.get())
            && !is_granted
        {
            inheritance.left(task);
        }
    }
}
