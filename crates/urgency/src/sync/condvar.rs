//! `Condvar`: waiting for a change of what a mutex guards.
//!
//! A waiter enters the queue of an event before it releases the mutex, so no notification after that release is missed.
//! A notified waiter locks again, behind the waiters of the mutex. Until it has the lock, it cannot act on the change.
//! If it is dropped before, the notification is *owed* to the next waiter.

use super::{
    mutex::MutexGuard,
    notify::{Notify, Woken},
};
use std::{future::poll_fn, mem, pin::pin};

/// An event that concerns the data of a [`Mutex`](super::Mutex); see [`mod@crate::sync`] for what holds for
/// all primitives.
///
/// ```
/// use urgency::sync::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// let consumer = urgency::spawn(async {
///     let queue = QUEUE.lock().await;
///     let mut queue = FILLED.wait_while(queue, |queue| queue.is_empty()).await;
///     queue.pop()
/// });
/// QUEUE.blocking_lock().push(7);
/// FILLED.notify_one();
/// assert_eq!(consumer.get()?, Some(7));
/// # Ok::<(), urgency::JoinError>(())
/// ```
#[derive(Default)]
pub struct Condvar {
    event: Notify,
}

impl Condvar {
    const_fn! {
        /// Nobody waits.
        pub fn new() -> Self {
            Condvar {
                event: Notify::new(),
            }
        }
    }

    /// Releases the lock, waits for a notification, and locks again. Nothing is remembered: a notification
    /// that nobody waits for is lost.
    ///
    /// # Cancellation
    ///
    /// Dropping the future releases the lock, or gives up the place in the queue for it. A notification that
    /// was meant for one waiter and had been handed to it goes to the next.
    pub async fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = MutexGuard::mutex(&guard);
        let mut notified = pin!(self.event.notified_unremembered());
        let mut guard = Some(guard);
        let woken = poll_fn(|cx| {
            let polled = notified.poll_woken(cx);
            // In the queue by now.
            if notified.waits() {
                guard = None;
            }
            polled
        })
        .await;
        drop(guard);
        let owed = (!matches!(woken, Woken::All)).then_some(Owed(self));
        let guard = mutex.lock().await;
        mem::forget(owed);
        guard
    }

    /// As [`wait`](Self::wait), again and again while `condition` holds of the data.
    ///
    /// # Cancellation
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard).await;
        }
        guard
    }

    /// As [`wait`](Self::wait), for closures and plain threads.
    pub fn blocking_wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        crate::block_on(self.wait(guard))
    }

    /// As [`wait_while`](Self::wait_while), for closures and plain threads.
    pub fn blocking_wait_while<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        crate::block_on(self.wait_while(guard, condition))
    }

    /// Wakes the waiter whose turn it is, if there is one.
    pub fn notify_one(&self) {
        self.event.notify_one_unremembered();
    }

    /// Wakes all waiters.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use urgency::sync::{Condvar, Mutex};
    ///
    /// let pair = Arc::new((Mutex::new(false), Condvar::new()));
    /// let theirs = pair.clone();
    /// let waits = urgency::spawn(async move {
    ///     let mut open = theirs.0.lock().await;
    ///     while !*open {
    ///         open = theirs.1.wait(open).await;
    ///     }
    /// });
    /// *pair.0.blocking_lock() = true;
    /// pair.1.notify_all();
    /// waits.get().unwrap();
    /// ```
    pub fn notify_all(&self) {
        self.event.notify_waiters();
    }
}

/// A notification of one waiter, which goes to the next if it is dropped.
struct Owed<'a>(&'a Condvar);

impl Drop for Owed<'_> {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

debug_struct!(Condvar);
