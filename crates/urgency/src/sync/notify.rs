//! `Notify`: an event without data.
//!
//! # The word
//!
//! Bit 0 is the queue's. Bit 1 says that one notification is stored. Above them is a count of *calls*: how often all
//! waiters were notified. A notification is never stored while the queue has a waiter.
//!
//! # Protocol
//!
//! 1. A future notes the count when it is made. As soon as the count differs, the future is ready: so a condition that
//!    is looked at after the future was made cannot change unseen.
//! 2. *Wait*: take the stored notification, by one compare-and-swap; else, under the lock, claim and enter.
//! 3. *Notify one*: store a notification, by one compare-and-swap, if the queue is empty. Otherwise grant `One` to the
//!    waiter whose turn it is (or, if so asked, `Last` to the waiter of its level that came last).
//! 4. *Notify all*: count one up. If the queue has waiters, do so under the lock, and grant `All` to every waiter. A
//!    stored notification stays.
//! 5. *Drop of a waiter*: if it was granted `One` or `Last`, notify one in the same way. `All` was for it alone.
//!
//! Notifying is no scheduling point: much of it happens in drops, and a future may be dropped by the scheduler itself.

use super::{
    hooks,
    lists::{Key, Left, Wakers},
    queue::{QUEUED, WaitQueue},
};
use std::{
    future::Future,
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

const STORED: u64 = 2;
const CALL: u64 = 4;

/// What woke a waiter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Woken {
    One,
    Last,
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
/// CHANGED.notify_waiters();
/// visitor.get()?;
/// # Ok::<(), urgency::JoinError>(())
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

    const_fn! {
        /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
        pub fn const_new() -> Self {
            Self::new()
        }
    }

    /// Waits for the next notification: the stored one, one that is meant for one waiter, or any
    /// [`notify_waiters`](Self::notify_waiters) after this call.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue; a notification that was meant for one waiter and
    /// had been handed to it goes to the next.
    pub fn notified(&self) -> Notified<'_> {
        NotifiedBy::new(self)
    }

    /// As [`notified`](Self::notified), with a future that keeps the event alive instead of borrowing it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::Notify;
    ///
    /// let event = Arc::new(Notify::new());
    /// let waiter = urgency::spawn(event.clone().notified_owned());
    /// event.notify_one();
    /// # waiter.get()?;
    /// # Ok::<(), urgency::JoinError>(())
    /// ```
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        NotifiedBy::new(self)
    }

    /// Looks for a result, and looks again after each notification. The future is made before the look (step 1): what
    /// changes after the look is not missed.
    pub(crate) async fn until<R>(&self, mut look: impl FnMut() -> Option<R>) -> R {
        loop {
            let notified = self.notified();
            if let Some(result) = look() {
                return result;
            }
            notified.await;
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
    pub fn blocking_wait(&self) {
        crate::block_on(self.notified());
    }

    /// Wakes the waiter whose turn it is. If nothing waits, the next waiter goes on at once; more than one notification
    /// is not stored.
    pub fn notify_one(&self) {
        self.notify(Woken::One);
    }

    /// As [`notify_one`](Self::notify_one), but wakes the waiter that came last, of the level whose turn it is.
    pub fn notify_last(&self) {
        self.notify(Woken::Last);
    }

    fn notify(&self, whom: Woken) {
        if self.queue.update(|word| Some(word | STORED)).is_err() {
            self.notify_cold(whom, true);
        }
    }

    /// Wakes the waiter whose turn it is, if somebody waits; nothing is stored.
    pub(super) fn notify_one_unremembered(&self) {
        if self.queue.word() & QUEUED != 0 {
            self.notify_cold(Woken::One, false);
        }
    }

    #[cold]
    fn notify_cold(&self, whom: Woken, remembered: bool) {
        let mut wakers = Wakers::default();
        {
            let mut queue = self.queue.lock();
            let granted = match whom {
                Woken::Last => queue.grant_last(whom),
                _ => queue.grant(whom),
            };
            match granted {
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

    /// Wakes all waiters, and every future that was made before. Nothing is stored for later ones.
    pub fn notify_waiters(&self) {
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

debug_struct!(Notify, |it| stored: (it.queue.word() & STORED != 0));

/// The future of [`Notify::notified`].
pub type Notified<'a> = NotifiedBy<&'a Notify>;
/// The future of [`Notify::notified_owned`].
pub type OwnedNotified = NotifiedBy<Arc<Notify>>;

/// The future of [`Notify::notified`] and its owning form. `N` is how it knows the event.
///
/// ```
/// use std::sync::Arc;
/// use urgency::sync::{Notified, Notify, OwnedNotified};
///
/// let notify = Arc::new(Notify::new());
/// let borrowed: Notified<'_> = notify.notified();
/// let owned: OwnedNotified = notify.clone().notified_owned();
/// notify.notify_waiters();
/// urgency::block_on(async { (borrowed.await, owned.await) });
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct NotifiedBy<N: Deref<Target = Notify>> {
    notify: N,
    /// The count when it was made.
    calls: u64,
    key: Option<Key>,
    over: bool,
    /// Whether a notification that it passes on is stored if nobody waits.
    remembered: bool,
}

impl<N: Deref<Target = Notify>> Unpin for NotifiedBy<N> {}

impl<N: Deref<Target = Notify>> NotifiedBy<N> {
    fn new(notify: N) -> Self {
        NotifiedBy {
            calls: notify.calls(),
            notify,
            key: None,
            over: false,
            remembered: true,
        }
    }

    /// Takes a place in the queue now, as the first poll would. True if it was notified already.
    ///
    /// ```
    /// use std::pin::pin;
    /// use urgency::sync::Notify;
    ///
    /// let event = Notify::new();
    /// let mut first = pin!(event.notified());
    /// assert!(!first.as_mut().enable());
    /// event.notify_one(); // for `first`, which nobody polled yet
    /// assert!(first.enable());
    /// ```
    pub fn enable(mut self: Pin<&mut Self>) -> bool {
        // The waker of an earlier poll stays.
        if !self.over && !self.waits_by(|_| true) {
            let unwoken = Context::from_waker(Waker::noop());
            self.over = self.poll_woken_now(&unwoken).is_ready();
        }
        self.over
    }

    /// Whether it is in the queue.
    pub(super) fn waits(&self) -> bool {
        self.key.is_some()
    }

    /// Whether it is in the queue, was told nothing yet, and has a waker that need not be replaced.
    fn waits_by(&self, is_right: impl FnOnce(&Waker) -> bool) -> bool {
        let waker_of = |key| self.notify.queue.lock().waker(key).is_some_and(is_right);
        self.key.as_ref().is_some_and(waker_of)
    }

    /// A poll that says what woke it, to be called until it is ready.
    pub(super) fn poll_woken(&mut self, cx: &Context<'_>) -> Poll<Woken> {
        if self.key.is_none() {
            std::task::ready!(hooks::begin(cx));
        }
        self.poll_woken_now(cx)
    }

    /// As [`poll_woken`](Self::poll_woken), without a scheduling point.
    fn poll_woken_now(&mut self, cx: &Context<'_>) -> Poll<Woken> {
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
            match queue.update(take) {
                Ok(word) => return woken_by(word),
                Err(word) if word / CALL != calls => return Poll::Ready(Woken::All),
                Err(_) => {}
            }
        } else if self.waits_by(|own| own.will_wake(cx.waker())) {
            // As when one of several futures of a task is polled again for the sake of another.
            return Poll::Pending;
        }
        let waker = cx.waker().clone();
        let level = hooks::level();
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

impl<N: Deref<Target = Notify>> Future for NotifiedBy<N> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.over {
            std::task::ready!(self.poll_woken(cx));
            self.over = true;
        }
        Poll::Ready(())
    }
}

impl<N: Deref<Target = Notify>> Drop for NotifiedBy<N> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let left = self.notify.queue.lock().leave(key);
            match left {
                Left::Granted(whom @ (Woken::One | Woken::Last)) if self.remembered => {
                    self.notify.notify(whom);
                }
                Left::Granted(Woken::One | Woken::Last) => self.notify.notify_one_unremembered(),
                Left::Granted(Woken::All) => {}
                Left::Waiting(..) => {}
            }
        }
    }
}

debug_struct!([N: Deref<Target = Notify>] NotifiedBy<N>, |it| waits: it.key.is_some());
