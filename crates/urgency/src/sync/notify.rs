//! `Notify`: an event without data.
//!
//! # The word
//!
//! Bit 0 is the queue's, bit 1 says that one notification is stored, above them is a count of *calls*: how
//! often all were notified. A notification is never stored while somebody waits.
//!
//! # Protocol
//!
//! 1. A future notes the count when it is made. As soon as it differs, the future is ready: so a condition
//!    that is looked at after the future was made cannot change unseen.
//! 2. *Wait*: take the stored notification, by one compare-and-swap; else, under the lock, claim and enter.
//! 3. *Notify one*: store a notification, by one compare-and-swap, if nobody waits. Otherwise grant `One` to
//!    the waiter whose turn it is.
//! 4. *Notify all*: count one up; if somebody waits, under the lock, and grant `All` to everybody. A stored
//!    notification stays.
//! 5. *Drop of a waiter*: if it was granted `One`, notify one. `All` was for it alone.
//!
//! Notifying is no scheduling point: much of it happens in drops, and a future may be dropped by the scheduler itself.

use super::{
    above,
    lists::{Key, Left, Wakers},
    queue::{QUEUED, WaitQueue},
};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

const STORED: u64 = 2;
const CALL: u64 = 4;

/// What woke a waiter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Woken {
    One,
    All,
}

/// An event that tasks wait for and others announce; see [`mod@crate::sync`] for what holds for all primitives.
///
/// One notification is remembered if nobody waits for it. To wait for a condition: make the future, look at the
/// condition, and await the future if it does not hold yet.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use urgency::sync::Notify;
///
/// static OPEN: AtomicBool = AtomicBool::new(false);
/// static CHANGED: Notify = Notify::new();
///
/// let visitor = urgency::spawn(async {
///     loop {
///         let changed = CHANGED.notified();
///         if OPEN.load(Ordering::Acquire) {
///             break;
///         }
///         changed.await;
///     }
/// });
/// OPEN.store(true, Ordering::Release);
/// CHANGED.notify_all();
/// visitor.get()?;
/// # Ok::<(), urgency::WaitError>(())
/// ```
pub struct Notify {
    queue: WaitQueue<(), Woken>,
}

impl Notify {
    const_fn! {
        /// Nothing was announced yet.
        pub fn new() -> Self {
            Notify {
                queue: WaitQueue::new(0),
            }
        }
    }

    /// Waits for the next notification: the stored one, one that is meant for one waiter, or any
    /// [`notify_all`](Self::notify_all) after this call.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a notification that was meant for one waiter and
    /// had been handed to it goes to the next.
    pub fn notified(&self) -> Notified<'_> {
        Notified {
            notify: self,
            calls: self.calls(),
            key: None,
            over: false,
            remembered: true,
        }
    }

    /// As [`notified`](Self::notified), for an event whose notifications are not stored.
    pub(super) fn notified_unremembered(&self) -> Notified<'_> {
        let mut notified = self.notified();
        notified.remembered = false;
        notified
    }

    /// As [`notified`](Self::notified), for closures and plain threads.
    #[cfg(not(urgency_loom))]
    pub fn wait_blocking(&self) {
        crate::block_on(self.notified());
    }

    /// Wakes the waiter whose turn it is. If nobody waits, the next who does goes on at once; more than one
    /// notification is not stored.
    pub fn notify_one(&self) {
        if self.queue.update(|word| Some(word | STORED)).is_err() {
            self.notify_one_cold(true);
        }
    }

    /// Wakes the waiter whose turn it is, if somebody waits; nothing is stored.
    pub(super) fn notify_one_unremembered(&self) {
        if self.queue.word() & QUEUED != 0 {
            self.notify_one_cold(false);
        }
    }

    #[cold]
    fn notify_one_cold(&self, remembered: bool) {
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            match queue.grant(Woken::One) {
                Some(((), waker)) => wakers.push(waker),
                // The last waiter left since.
                None if remembered => {
                    queue.change(|word| word | STORED);
                }
                None => {}
            }
        }
        wakers.wake();
    }

    /// Wakes all who wait, and every future that was made before. Nothing is stored for later ones.
    pub fn notify_all(&self) {
        let count = |word: u64| word.wrapping_add(CALL);
        if self.queue.update(|word| Some(count(word))).is_ok() {
            return;
        }
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            queue.change(count);
            queue.grant_all(Woken::All, &mut wakers);
        }
        wakers.wake();
    }

    fn calls(&self) -> u64 {
        self.queue.word() / CALL
    }
}

impl Default for Notify {
    fn default() -> Self {
        Notify::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notify")
            .field("stored", &(self.queue.word() & STORED != 0))
            .finish_non_exhaustive()
    }
}

/// The future of [`Notify::notified`].
#[must_use = "futures do nothing unless awaited"]
pub struct Notified<'a> {
    notify: &'a Notify,
    /// The count when it was made.
    calls: u64,
    key: Option<Key>,
    over: bool,
    /// Whether a notification that it passes on is stored if nobody waits.
    remembered: bool,
}

impl Notified<'_> {
    /// Whether it is in the queue.
    pub(super) fn waits(&self) -> bool {
        self.key.is_some()
    }

    /// A poll that says what woke it, to be called until it is ready.
    pub(super) fn poll_woken(&mut self, cx: &Context<'_>) -> Poll<Woken> {
        let (queue, calls) = (&self.notify.queue, self.calls);
        let take = |word: u64| {
            if word / CALL != calls {
                Some(word)
            } else {
                (word & STORED != 0).then_some(word & !STORED)
            }
        };
        let woken_by = |word: u64| {
            Poll::Ready(if word / CALL != calls {
                Woken::All
            } else {
                Woken::One
            })
        };
        if self.key.is_none() {
            std::task::ready!(above::begin(cx));
            match queue.update(take) {
                Ok(word) => return woken_by(word),
                Err(word) if word / CALL != calls => return Poll::Ready(Woken::All),
                Err(_) => {}
            }
        }
        let waker = cx.waker().clone();
        let level = above::level();
        let mut queue = queue.lock();
        if self.key.is_none() {
            match queue.claim(take) {
                Ok(word) => return woken_by(word),
                Err(word) if word / CALL != calls => return Poll::Ready(Woken::All),
                Err(_) => {}
            }
            self.key = Some(queue.enter(level, (), waker));
            return Poll::Pending;
        }
        let (granted, unused) = queue.poll(&mut self.key, waker);
        drop(queue);
        drop(unused);
        granted.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.over {
            std::task::ready!(self.poll_woken(cx));
            self.over = true;
        }
        Poll::Ready(())
    }
}

impl Drop for Notified<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let left = self.notify.queue.lock().leave(key);
            match left {
                Left::Granted(Woken::One) if self.remembered => self.notify.notify_one(),
                Left::Granted(Woken::One) => self.notify.notify_one_unremembered(),
                Left::Granted(Woken::All) => {}
                Left::Waiting(..) => {}
            }
        }
    }
}

impl fmt::Debug for Notified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notified")
            .field("waits", &self.key.is_some())
            .finish_non_exhaustive()
    }
}
