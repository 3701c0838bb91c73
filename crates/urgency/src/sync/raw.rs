//! The lock of a `Mutex`, without the data.
//!
//! # The word
//!
//! Bit 0 is the queue's, `LOCKED` says locked, `KNOWN` that the holder is known to [`Inheritance`], `PASSED` that the lock was granted to a
//! waiter that did not come for it yet, above them is the *name* of the task that holds the lock; 0 if it is no task. It is there so that a waiter finds out for whom it waits, at no cost for those who do not.
//!
//! # Protocol
//!
//! 1. *Lock*: one compare-and-swap, if it is free. It is never free while somebody waits.
//! 2. If nobody waits and the holder may be running, look again for a moment: a short critical section is over before a place in the queue is
//!    taken. Who does that has no place yet, and as soon as somebody has, no newcomer gets the lock before him; so the order
//!    of arrival holds among those who queue. Otherwise enter the queue, and let the holder inherit (inherit.rs).
//! 3. *Unlock*: one compare-and-swap, if nobody waits and the holder is not known. Otherwise the lock is granted to the waiter
//!    whose turn it is, and stays locked all the time; then the old holder gives back what it inherited.
//! 4. *Drop of a waiter*: if the lock was granted to it, unlock.
//!
//! # Futures that hold a place and are not polled
//!
//! A lock may be granted to a future that its task does not poll any more (it is kept in a variable while a `select!` goes on
//! with another branch), while the same task waits for the same lock: a deadlock of a task with itself. The grant of a future that did not
//! come for it can be taken back. So:
//!
//! 5. *Overtake*: a future that would wait, and finds that the lock was granted to another future of its own task, takes the lock; the other one
//!    goes back to the head of the queue. To the program it is as if the two had come in the other order.
//!
//! If such a future has a guard already, that is out of reach; it is counted as *suspected*, with the place of the call. It need not be a
//! deadlock: with `join_all` the other branch goes on. Both counts are in [`futures_locks`](super::futures_locks()).

use super::{
    above,
    inherit::{Inheritance, as_lock},
    lists::{Key, Left, Wakers},
    overtaken,
    queue::{Locked, QUEUED, WaitQueue},
};
use crate::task::{Lock, TaskRef};
use std::{
    hint,
    panic::Location,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};

const LOCKED: u64 = 2;
const KNOWN: u64 = 4;
const PASSED: u64 = 8;
const SHIFT: u32 = 4;

/// How often a newcomer looks again before it queues: a few hundred nanoseconds, which is what queueing costs.
const LOOKS: u32 = 16;

/// See the module's text.
pub(super) struct RawMutex {
    queue: WaitQueue<Waiter, u64>,
    inheritance: OnceLock<Arc<Inheritance>>,
}

/// Who waits.
pub(super) struct Waiter {
    name: u64,
    /// Only where there are several levels.
    task: Option<TaskRef>,
}

type Queue<'a> = Locked<'a, Waiter, u64>;

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

    fn take(word: u64, name: u64) -> Option<u64> {
        (word & LOCKED == 0).then_some(word | LOCKED | name << SHIFT)
    }

    /// Step 1.
    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        let name = above::own_name();
        self.queue.update(|word| Self::take(word, name)).is_ok()
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
            std::task::ready!(above::begin(cx));
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
        if !above::others_run() {
            return false;
        }
        for _ in 0..LOOKS {
            let word = self.queue.word();
            if word & (QUEUED | PASSED) != 0 {
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
        let (name, task) = (above::own_name(), above::own_task());
        // The note comes before the look at the level, and that before the queue.
        let inheritance = task.as_ref().map(|task| {
            let inheritance = self.inheritance.get_or_init(Arc::default);
            task.begin_lock_wait(as_lock(inheritance));
            inheritance
        });
        let level = above::level();
        let own = task.clone();
        let waiter = Waiter { name, task };
        let mut queue = self.queue.lock();
        let Err(word) = queue.claim(|word| Self::take(word, name)) else {
            drop(queue);
            self.waited(own.as_ref());
            return Poll::Ready(());
        };
        if let Some(place) = Self::unclaimed(&queue, word, name) {
            queue.revoke(place, waiter, waker);
            queue.change(|word| word & !PASSED);
            self.note_contention(&queue);
            drop(queue);
            self.waited(own.as_ref());
            overtaken::averted(caller);
            return Poll::Ready(());
        }
        *key = Some(queue.enter(level, waiter, waker));
        let heir = inheritance.and_then(|inheritance| {
            let (heir, known) = inheritance.enter(word >> SHIFT, level);
            if known {
                queue.change(|word| word | KNOWN);
            }
            heir
        });
        drop(queue);
        if let Some(heir) = heir {
            heir.inherited(level);
        }
        if let (Some(own), Some(inheritance)) = (own, inheritance)
            && own.level() < level
            && let Some(heir) = inheritance.waiter_raised(own.level())
        {
            heir.inherited(own.level());
        }
        if name != 0 && word >> SHIFT == name {
            overtaken::suspected(caller);
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
        let waker = cx.waker().clone();
        let name = above::own_name();
        let mut queue = self.queue.lock();
        let (granted, unused) = queue.poll(key, waker);
        let mut overtook = false;
        if granted.is_none()
            && let Some(place) = Self::unclaimed(&queue, queue.word(), name)
        {
            let own = key.take().expect("not granted, so it waits");
            if let Left::Waiting(waiter, waker) = queue.leave(own) {
                queue.revoke(place, waiter, waker);
            }
            overtook = true;
        }
        if granted.is_some() || overtook {
            queue.change(|word| word & !PASSED);
        }
        drop(queue);
        drop(unused);
        if granted.is_none() && !overtook {
            return Poll::Pending;
        }
        self.waited(above::own_task().as_ref());
        if overtook {
            overtaken::averted(caller);
        }
        Poll::Ready(())
    }

    /// Step 5: the slot of another future of the task `name`, if the lock was granted to it and it did not come for it yet.
    fn unclaimed(queue: &Queue<'_>, word: u64, name: u64) -> Option<u32> {
        if name == 0 || word >> SHIFT != name {
            return None;
        }
        queue.granted(|to| *to == name)
    }

    /// The calling code no longer waits.
    fn waited(&self, task: Option<&TaskRef>) {
        if let (Some(task), Some(inheritance)) = (task, self.inheritance.get()) {
            task.end_lock_wait(&as_lock(inheritance));
        }
    }

    fn note_contention(&self, queue: &Queue<'_>) {
        if let Some(inheritance) = self.inheritance.get() {
            inheritance.set_contended(!queue.is_empty());
        }
    }

    /// Step 3, by whoever holds the lock.
    #[inline]
    pub(super) fn unlock(&self) {
        let free = |word: u64| (word & KNOWN == 0).then_some(0);
        if self.queue.update(free).is_err() {
            self.unlock_cold();
        }
    }

    #[cold]
    fn unlock_cold(&self) {
        let mut wakers = Wakers::default();
        let inheritance = self.inheritance.get();
        let mut queue = self.queue.lock();
        if inheritance.is_some_and(|inheritance| inheritance.take_raised()) {
            queue.sort(|waiter| waiter.task.as_ref().map(TaskRef::level));
        }
        let (mut word, mut next) = (0, None);
        if let Some(waiter) = queue.first() {
            let name = waiter.name;
            let (waiter, waker) = queue.grant(name).expect("it is the first");
            wakers.push(waker);
            word = LOCKED | PASSED | name << SHIFT;
            next = waiter.task;
        }
        let others = queue.first_level();
        let known = if next.is_some() { KNOWN } else { 0 };
        let before = inheritance.and_then(|inheritance| inheritance.pass_on(next, others));
        queue.change(|now| now & QUEUED | word | known);
        drop(queue);
        wakers.wake();
        if let (Some(inheritance), Some(before)) = (inheritance, before) {
            inheritance.give_back(&before);
        }
    }

    /// Step 4.
    #[cold]
    pub(super) fn leave(&self, key: Key) {
        let mut queue = self.queue.lock();
        let left = queue.leave(key);
        self.note_contention(&queue);
        drop(queue);
        match left {
            Left::Granted(_) => self.unlock(),
            Left::Waiting(waiter, _) => self.waited(waiter.task.as_ref()),
        }
    }
}
