//! The latest of a sequence of values: one place that is written again and again, and readers that wait for a change.
//!
//! The place holds an `Arc`, so a reader takes a snapshot and holds no lock while it looks at it: a less
//! urgent reader that is abandoned in the middle cannot keep an urgent writer waiting, and a reader may keep
//! its snapshot across an `.await`. Each value has a version, and a receiver remembers the one that it saw.
//!
//! Rejected: a reader-writer lock around the value, as Tokio has it. It saves an allocation for each value,
//! and lets readers hold up the writer.

use super::{
    above,
    error::{RecvError, SendError},
    notify::Notify,
};
use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

/// In the version: there will be no other value.
const ENDED: u64 = 1;
const NEXT: u64 = 2;

struct Place<T> {
    value: Mutex<Arc<T>>,
    /// Changed under the lock of `value`, but for `ENDED`, after which nobody is left who could change anything.
    version: AtomicU64,
    senders: AtomicUsize,
    receivers: AtomicUsize,
    changed: Notify,
    /// The last receiver went.
    abandoned: Notify,
}

impl<T> Place<T> {
    fn lock(&self) -> MutexGuard<'_, Arc<T>> {
        // Nothing panics under this lock.
        self.value
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn latest(&self) -> (Arc<T>, u64) {
        let value = self.lock();
        (value.clone(), self.version.load(Ordering::Acquire))
    }

    fn replace(&self, new: Arc<T>) -> Arc<T> {
        let mut value = self.lock();
        let old = std::mem::replace(&mut *value, new);
        self.version.fetch_add(NEXT, Ordering::AcqRel);
        drop(value);
        self.changed.notify_all();
        old
    }
}

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
/// # Ok::<(), urgency::WaitError>(())
/// ```
pub fn channel<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let place = Arc::new(Place {
        value: Mutex::new(Arc::new(value)),
        version: AtomicU64::new(0),
        senders: AtomicUsize::new(1),
        receivers: AtomicUsize::new(1),
        changed: Notify::new(),
        abandoned: Notify::new(),
    });
    let sender = Sender {
        place: place.clone(),
    };
    (sender, Receiver { place, seen: 0 })
}

/// The writing side; clones write to the same place.
pub struct Sender<T> {
    place: Arc<Place<T>>,
}

impl<T> Sender<T> {
    /// Writes a value. Readers that did not look meanwhile never see the ones before.
    ///
    /// # Errors
    ///
    /// With the value, if there is no receiver.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.receiver_count() == 0 {
            return Err(SendError(value));
        }
        self.place.replace(Arc::new(value));
        Ok(())
    }

    /// Writes a value whether or not anybody reads it, and returns the one before.
    pub fn send_replace(&self, value: T) -> Arc<T> {
        self.place.replace(Arc::new(value))
    }

    /// Changes the value: `change` gets a copy, which is then written. If another value is written meanwhile,
    /// it is called again with that one.
    ///
    /// ```
    /// let (sender, receiver) = urgency::sync::watch::channel(vec![1]);
    /// sender.send_modify(|list| list.push(2));
    /// assert_eq!(*receiver.latest(), [1, 2]);
    /// ```
    pub fn send_modify(&self, mut change: impl FnMut(&mut T))
    where
        T: Clone,
    {
        loop {
            let (before, version) = self.place.latest();
            let mut value = T::clone(&before);
            change(&mut value);
            let new = Arc::new(value);
            let mut place = self.place.lock();
            if self.place.version.load(Ordering::Acquire) & !ENDED == version & !ENDED {
                let old = std::mem::replace(&mut *place, new);
                self.place.version.fetch_add(NEXT, Ordering::AcqRel);
                drop(place);
                self.place.changed.notify_all();
                drop(old);
                return;
            }
        }
    }

    /// The value that was written last.
    pub fn latest(&self) -> Arc<T> {
        self.place.latest().0
    }

    /// How many receivers there are.
    pub fn receiver_count(&self) -> usize {
        self.place.receivers.load(Ordering::Acquire)
    }

    /// A new receiver, which has seen the current value.
    pub fn subscribe(&self) -> Receiver<T> {
        self.place.receivers.fetch_add(1, Ordering::AcqRel);
        Receiver {
            place: self.place.clone(),
            seen: self.place.latest().1,
        }
    }

    /// Waits until there is no receiver.
    pub async fn closed(&self) {
        poll_fn(|cx| above::begin(cx)).await;
        loop {
            let abandoned = self.place.abandoned.notified();
            if self.receiver_count() == 0 {
                return;
            }
            abandoned.await;
        }
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
            self.place.changed.notify_all();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sender").field(&self.latest()).finish()
    }
}

/// The reading side; each clone remembers by itself what it has seen.
pub struct Receiver<T> {
    place: Arc<Place<T>>,
    /// The version that it saw, without `ENDED`.
    seen: u64,
}

impl<T> Receiver<T> {
    /// The value that was written last. It does not count as seen.
    pub fn latest(&self) -> Arc<T> {
        self.place.latest().0
    }

    /// The value that was written last, which counts as seen from now on.
    pub fn latest_seen(&mut self) -> Arc<T> {
        let (value, version) = self.place.latest();
        self.seen = version & !ENDED;
        value
    }

    /// Whether there is a value that it has not seen.
    ///
    /// # Errors
    ///
    /// If there is none, and all senders are gone.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        let version = self.place.version.load(Ordering::Acquire);
        if version & !ENDED != self.seen {
            return Ok(true);
        }
        if version & ENDED != 0 {
            return Err(RecvError);
        }
        Ok(false)
    }

    /// Waits for a value that it has not seen, which counts as seen then.
    ///
    /// # Errors
    ///
    /// If all senders are gone, and the last value was seen.
    ///
    /// # Cancellation
    ///
    /// A value counts as seen only if the future was ready.
    pub async fn changed(&mut self) -> Result<Arc<T>, RecvError> {
        poll_fn(|cx| above::begin(cx)).await;
        loop {
            let changed = self.place.changed.notified();
            if self.has_changed()? {
                break;
            }
            changed.await;
        }
        Ok(self.latest_seen())
    }

    /// Waits for a value, the current one included, of which `condition` holds.
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
    ) -> Result<Arc<T>, RecvError> {
        poll_fn(|cx| above::begin(cx)).await;
        let mut value = self.latest_seen();
        while !condition(&value) {
            value = self.changed().await?;
        }
        Ok(value)
    }

    /// As [`changed`](Self::changed), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`changed`](Self::changed).
    pub fn changed_blocking(&mut self) -> Result<Arc<T>, RecvError> {
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
            self.place.abandoned.notify_all();
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.latest()).finish()
    }
}
