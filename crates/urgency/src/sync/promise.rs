//! A value that is filled in once and that any number of contexts wait for (Dissertation, 4.4.5).
//!
//! The value is in a `OnceLock`; the event is a [`Notify`] that notifies all waiters. A filler that is dropped without
//! filling breaks the promise, so that no waiter waits for ever.

use super::{hooks, notify::Notify};
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

struct Inner<T> {
    value: OnceLock<Result<T, BrokenPromise>>,
    changed: Notify,
}

/// An empty promise, and the right to fill it.
///
/// ```
/// use urgency::sync::promise;
///
/// let (filler, price) = promise::promise();
/// let buyers: Vec<_> = (1..4)
///     .map(|n| {
///         let price = price.clone();
///         urgency::spawn(async move { n * price.wait().await.unwrap() })
///     })
///     .collect();
/// filler.fill(10);
/// let sum: i32 = buyers.into_iter().map(|buyer| buyer.get().unwrap()).sum();
/// assert_eq!(sum, 60);
/// assert_eq!(price.get().unwrap(), &10);
/// ```
pub fn promise<T>() -> (Filler<T>, Promise<T>) {
    let inner = Arc::new(Inner {
        value: OnceLock::new(),
        changed: Notify::new(),
    });
    let filler = Filler {
        inner: inner.clone(),
    };
    (filler, Promise { inner })
}

/// The right to fill a [`Promise`], once. Dropping it without filling breaks the promise.
#[must_use = "dropping it breaks the promise"]
pub struct Filler<T> {
    inner: Arc<Inner<T>>,
}

impl<T> Filler<T> {
    /// Fills the promise, and wakes all its waiters.
    pub fn fill(self, value: T) {
        // The call consumes the one filler.
        let _ = self.inner.value.set(Ok(value));
    }
}

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        // An error: it was filled.
        let _ = self.inner.value.set(Err(BrokenPromise));
        self.inner.changed.notify_waiters();
    }
}

debug_struct!([T] Filler<T>);

/// A value that other code will fill in; made by [`promise`].
///
/// Clones are the same promise. Waiters get a reference: nothing is copied.
pub struct Promise<T> {
    inner: Arc<Inner<T>>,
}

impl<T> Promise<T> {
    /// The value if it was filled in, without waiting. `None`: not yet.
    ///
    /// # Errors
    ///
    /// If it never will be.
    pub fn try_get(&self) -> Option<Result<&T, BrokenPromise>> {
        let filled = self.inner.value.get()?.as_ref();
        Some(filled.map_err(|broken| *broken))
    }

    /// Waits for the value.
    ///
    /// # Errors
    ///
    /// If the filler was dropped without filling it in.
    pub async fn wait(&self) -> Result<&T, BrokenPromise> {
        hooks::begun().await;
        self.inner.changed.until(|| self.try_get()).await
    }

    /// As [`wait`](Self::wait), for closures and plain threads.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn get(&self) -> Result<&T, BrokenPromise> {
        hooks::check();
        match self.try_get() {
            Some(result) => result,
            None => crate::block_on(self.wait()),
        }
    }
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Promise {
            inner: self.inner.clone(),
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Promise").field(&self.try_get()).finish()
    }
}

/// The filler of the promise was dropped, and has not filled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenPromise;

error_text!(
    BrokenPromise,
    "the promise is broken: its filler was dropped without filling it"
);
