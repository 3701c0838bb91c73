//! The lock of a `Mutex`, without the data.
//!
//! # The word
//!
//! Bit 0 is the queue's, bit 1 says locked.
//!
//! # Protocol
//!
//! 1. *Lock*: one compare-and-swap, if it is free. It is never free while somebody waits.
//! 2. Otherwise enter the queue.
//! 3. *Unlock*: one compare-and-swap, if nobody waits. Otherwise the lock is granted to the waiter whose turn it is,
//!    and stays locked all the time.
//! 4. *Drop of a waiter*: if the lock was granted to it, unlock.

use super::{
    above,
    lists::{Key, Left, Wakers},
    queue::WaitQueue,
};
use std::task::{Context, Poll};

const LOCKED: u64 = 2;

/// See the module's text.
#[derive(Debug)]
pub(super) struct RawMutex {
    queue: WaitQueue<(), ()>,
}

impl RawMutex {
    const_fn! {
        /// Not locked.
        pub(super) fn new() -> Self {
            RawMutex {
                queue: WaitQueue::new(0),
            }
        }
    }

    pub(super) fn is_locked(&self) -> bool {
        self.queue.word() & LOCKED != 0
    }

    fn take(word: u64) -> Option<u64> {
        (word & LOCKED == 0).then_some(word | LOCKED)
    }

    /// Step 1.
    #[inline]
    pub(super) fn try_lock(&self) -> bool {
        self.queue.update(Self::take).is_ok()
    }

    /// A poll of a future that locks. Without a key it did not wait yet.
    #[inline]
    pub(super) fn poll_lock(&self, key: &mut Option<Key>, cx: &Context<'_>) -> Poll<()> {
        if key.is_none() {
            std::task::ready!(above::begin(cx));
            if self.try_lock() {
                return Poll::Ready(());
            }
        }
        self.poll_lock_cold(key, cx)
    }

    /// Step 2.
    #[cold]
    fn poll_lock_cold(&self, key: &mut Option<Key>, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let level = above::level();
        let mut queue = self.queue.lock();
        if key.is_none() {
            if queue.claim(Self::take).is_ok() {
                return Poll::Ready(());
            }
            *key = Some(queue.enter(level, (), waker));
            return Poll::Pending;
        }
        let (granted, unused) = queue.poll(key, waker);
        drop(queue);
        drop(unused);
        granted.map_or(Poll::Pending, Poll::Ready)
    }

    /// Step 3, by whoever holds the lock.
    #[inline]
    pub(super) fn unlock(&self) {
        if self.queue.update(|word| Some(word & !LOCKED)).is_err() {
            self.unlock_cold();
        }
    }

    #[cold]
    fn unlock_cold(&self) {
        let mut queue = self.queue.lock();
        let next = queue.grant(());
        if next.is_none() {
            // The last waiter left since.
            queue.change(|word| word & !LOCKED);
        }
        drop(queue);
        if let Some(((), waker)) = next {
            let mut wakers = Wakers::default();
            wakers.push(waker);
            wakers.wake();
        }
    }

    /// Step 4.
    #[cold]
    pub(super) fn leave(&self, key: Key) {
        let left = self.queue.lock().leave(key);
        match left {
            Left::Granted(()) => self.unlock(),
            Left::Waiting(waker) => drop(waker),
        }
    }
}
