//! The latest of a sequence of values: one place that is written again and again, and readers that wait for a change.
//!
//! The place holds an `Arc`, so a reader takes a snapshot and holds no lock while it looks at it: a less
//! urgent reader that is abandoned in the middle cannot keep [`send`](Sender::send) waiting. Each value has a
//! version, and a receiver remembers the one that it saw.
//!
//! How a value is changed in its place: `watch/place.rs`.
//!
//! Rejected: a reader-writer lock around the value, as Tokio has it. It saves an allocation for each value, and lets
//! readers hold up every writer.

mod look;
mod place;

pub use super::error::watch as error;
pub use look::Ref;

use super::hooks;
use error::{RecvError, SendError};
use place::{ENDED, NEXT, Place};
use std::{
    fmt,
    sync::{Arc, atomic::Ordering},
};

/// A place that holds `value` until another is sent.
///
/// ```
/// use urgency::sync::watch;
///
/// let (sender, mut limit) = watch::channel(10);
/// let task = urgency::spawn(async move {
///     limit.wait_for(|limit| *limit > 10).await.map(|limit| *limit)
/// });
/// sender.send(5).expect("the receiver is there");
/// sender.send(20).expect("the receiver is there");
/// assert_eq!(task.get()?, Ok(20));
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(value);
    let receiver = sender.subscribe();
    (sender, receiver)
}

/// The writing side; clones write to the same place.
pub struct Sender<T> {
    place: Arc<Place<T>>,
}

impl<T> Sender<T> {
    /// A place that holds `value`, without a receiver.
    pub fn new(value: T) -> Self {
        Sender {
            place: Arc::new(Place::new(value)),
        }
    }

    /// Writes a value, without waiting for any reader. Readers that did not look meanwhile never see the ones before.
    /// The call waits while a closure changes the value in its place, as closures wait
    /// ([`send_modify`](Self::send_modify)).
    ///
    /// # Errors
    ///
    /// With the value, if there is no receiver.
    #[track_caller]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.is_closed() {
            return Err(SendError(value));
        }
        self.place.replace(Arc::new(value));
        Ok(())
    }

    /// Writes a value, even if there is no receiver, and returns the value before. For that the call waits until no
    /// [`Ref`] of the value before is left; meanwhile the calling stack is suspended.
    ///
    /// ```
    /// use urgency::sync::watch;
    ///
    /// let (sender, _) = watch::channel(1);
    /// assert_eq!(sender.send_replace(2), 1);
    /// assert_eq!(*sender.borrow(), 2);
    /// ```
    #[track_caller]
    pub fn send_replace(&self, value: T) -> T {
        let old = self.place.replace(Arc::new(value));
        self.place.unwrap(old)
    }

    /// Changes the value in its place, even if there is no receiver. The call waits until no [`Ref`] of the value is
    /// left, as closures wait: the calling stack is suspended. Code that has such a [`Ref`] itself waits for ever.
    ///
    /// Until `change` has returned, all that reads or writes the value waits in the same way, and `change` is raised to
    /// the most urgent level of that. So it should be short, and an async reader does not get on with its poll
    /// meanwhile. If `change` itself reads or writes the place it waits for ever, and the lock is named
    /// ([`self_deadlocks`](crate::sync::self_deadlocks)).
    ///
    /// # Panics
    ///
    /// If `change` does. The value is then as it was left, and no reader is told.
    ///
    /// ```
    /// let (sender, receiver) = urgency::sync::watch::channel(vec![1]);
    /// sender.send_modify(|list| list.push(2));
    /// assert_eq!(*receiver.borrow(), [1, 2]);
    /// ```
    pub fn send_modify(&self, change: impl FnOnce(&mut T)) {
        self.place.modify(|value| {
            change(value);
            true
        });
    }

    /// As [`send_modify`](Self::send_modify), but readers are told only if `change` says so. Returns what it said.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn send_if_modified(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        self.place.modify(change)
    }

    /// A snapshot of the value that was written last.
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        let mut latest = self.place.look(0);
        latest.changed = false;
        latest
    }

    /// Whether there is no receiver.
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.place.receivers.load(Ordering::Acquire)
    }

    /// How many senders there are.
    pub fn sender_count(&self) -> usize {
        self.place.senders.load(Ordering::Acquire)
    }

    /// Whether both write to the same place.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.place, &other.place)
    }

    /// A new receiver, which has seen the current value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.place.receivers.fetch_add(1, Ordering::AcqRel);
        Receiver {
            place: self.place.clone(),
            seen: self.place.version.load(Ordering::Acquire) & !ENDED,
        }
    }

    /// Waits until there is no receiver. Dropping the future changes nothing.
    pub async fn closed(&self) {
        hooks::begun().await;
        let is_abandoned = || self.is_closed().then_some(());
        self.place.abandoned.until(is_abandoned).await;
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Sender::new(T::default())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.place.senders.fetch_add(1, Ordering::AcqRel);
        Sender {
            place: self.place.clone(),
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.place.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.place.version.fetch_or(ENDED, Ordering::AcqRel);
            self.place.changed.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&*self.borrow()).finish()
    }
}

/// The reading side; each clone remembers by itself what it has seen.
pub struct Receiver<T> {
    place: Arc<Place<T>>,
    /// The version that it saw, without `ENDED`.
    seen: u64,
}

impl<T> Receiver<T> {
    /// A snapshot of the value that was written last. It does not count as seen.
    #[track_caller]
    pub fn borrow(&self) -> Ref<'_, T> {
        self.place.look(self.seen)
    }

    /// A snapshot of the value that was written last, which counts as seen from now on.
    #[track_caller]
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let latest = self.place.look(self.seen);
        self.seen = latest.version;
        latest
    }

    /// Whether there is a value that it has not seen.
    ///
    /// # Errors
    ///
    /// If all senders are gone.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let version = self.place.version.load(Ordering::Acquire);
        if version & ENDED != 0 {
            return Err(RecvError(()));
        }
        Ok(version != self.seen)
    }

    /// From now on the current value counts as not seen.
    ///
    /// ```
    /// use urgency::sync::watch;
    ///
    /// let (_sender, mut receiver) = watch::channel(1);
    /// assert!(!receiver.has_changed().unwrap());
    /// receiver.mark_changed();
    /// assert!(receiver.has_changed().unwrap());
    /// receiver.mark_unchanged();
    /// assert!(!receiver.has_changed().unwrap());
    /// ```
    pub fn mark_changed(&mut self) {
        self.seen = self.seen.wrapping_sub(NEXT);
    }

    /// From now on the current value counts as seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = self.place.version.load(Ordering::Acquire) & !ENDED;
    }

    /// Waits for a value that it has not seen, which counts as seen then.
    ///
    /// ```
    /// use urgency::sync::watch;
    ///
    /// let (sender, mut receiver) = watch::channel("dark");
    /// urgency::block_on(async {
    ///     sender.send("light").unwrap();
    ///     receiver.changed().await?;
    ///     assert_eq!(*receiver.borrow_and_update(), "light");
    ///     drop(sender);
    ///     assert!(receiver.changed().await.is_err(), "nothing will come");
    ///     Ok::<_, watch::error::RecvError>(())
    /// })?;
    /// # Ok::<_, urgency::sync::watch::error::RecvError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If all senders are gone, and the last value was seen.
    ///
    /// # Cancellation
    ///
    /// A value counts as seen only if the future was ready.
    pub async fn changed(&mut self) -> Result<(), RecvError> {
        hooks::begun().await;
        self.next().await
    }

    async fn next(&mut self) -> Result<(), RecvError> {
        let Receiver { place, seen } = self;
        let newer = || {
            let version = place.version.load(Ordering::Acquire);
            if version & !ENDED != *seen {
                *seen = version & !ENDED;
                return Some(Ok(()));
            }
            (version & ENDED != 0).then_some(Err(RecvError(())))
        };
        place.changed.until(newer).await
    }

    /// Waits for a value, the current one included, of which `condition` holds, and gives a snapshot of it.
    ///
    /// # Errors
    ///
    /// If all senders are gone, and it does not hold of the last value.
    ///
    /// # Cancellation
    ///
    /// Values that were looked at count as seen.
    pub async fn wait_for(
        &mut self,
        mut condition: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        hooks::begun().await;
        let (value, version, changed) = loop {
            {
                let mut latest = self.place.look(self.seen);
                self.seen = latest.version;
                if condition(&latest) {
                    break (latest.value.take(), latest.version, latest.changed);
                }
            }
            self.next().await?;
        };
        Ok(Ref {
            value,
            version,
            changed,
            place: &self.place,
        })
    }

    /// Whether all senders are gone.
    pub fn is_closed(&self) -> bool {
        self.place.version.load(Ordering::Acquire) & ENDED != 0
    }

    /// Whether both read the same place.
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.place, &other.place)
    }

    /// As [`changed`](Self::changed), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`changed`](Self::changed).
    pub fn blocking_changed(&mut self) -> Result<(), RecvError> {
        crate::block_on(self.changed())
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.place.receivers.fetch_add(1, Ordering::AcqRel);
        Receiver {
            place: self.place.clone(),
            seen: self.seen,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if self.place.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.place.abandoned.notify_waiters();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&*self.borrow()).finish()
    }
}
