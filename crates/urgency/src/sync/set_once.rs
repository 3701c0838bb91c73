//! `SetOnce`: data that is set once, and waited for.
//!
//! Its waiters wait for a permit of a semaphore that never has one. Setting the data closes the semaphore, which wakes
//! them all.

use super::semaphore::Semaphore;
use std::{error::Error, fmt, sync::OnceLock};

/// A place for data that one context sets and any number wait for; see [`mod@crate::sync`] for what holds for all
/// primitives.
///
/// ```
/// use urgency::sync::SetOnce;
///
/// static ADDRESS: SetOnce<u16> = SetOnce::new();
///
/// let client = urgency::spawn(async { *ADDRESS.wait().await });
/// ADDRESS.set(80).expect("nobody else sets it");
/// assert_eq!(client.get()?, 80);
/// # Ok::<(), urgency::JoinError>(())
/// ```
pub struct SetOnce<T> {
    /// Without permits; closed when the data is there.
    unset: Semaphore,
    data: OnceLock<T>,
}

impl<T> SetOnce<T> {
    const_fn! {
        /// Empty.
        pub fn new() -> Self {
            SetOnce {
                unset: Semaphore::new(0),
                data: OnceLock::new(),
            }
        }
    }

    const_fn! {
        /// As [`new`](Self::new), under the name for statics in programs that were written for Tokio.
        pub fn const_new() -> Self {
            Self::new()
        }
    }

    /// With this data, or empty.
    pub fn new_with(data: Option<T>) -> Self {
        data.map_or_else(Self::new, Self::from)
    }

    /// Whether the data is there.
    pub fn initialized(&self) -> bool {
        self.get().is_some()
    }

    /// The data, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.data.get()
    }

    /// Puts the data in and wakes all its waiters.
    ///
    /// # Errors
    ///
    /// With the data, if there is some already.
    pub fn set(&self, data: T) -> Result<(), SetOnceError<T>> {
        self.data.set(data).map_err(SetOnceError)?;
        self.unset.close();
        Ok(())
    }

    /// The data, if it is there, taken out.
    pub fn into_inner(self) -> Option<T> {
        self.data.into_inner()
    }

    /// Waits for the data.
    ///
    /// # Cancellation
    ///
    /// Dropping the future gives up the place in the queue.
    pub async fn wait(&self) -> &T {
        loop {
            if let Some(data) = self.get() {
                return data;
            }
            // An error: closed.
            let _never = self.unset.acquire().await;
        }
    }

    /// As [`wait`](Self::wait), for closures and plain threads.
    pub fn blocking_wait(&self) -> &T {
        crate::block_on(self.wait())
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        SetOnce::new()
    }
}

impl<T> From<T> for SetOnce<T> {
    fn from(data: T) -> Self {
        let cell = SetOnce::new();
        if cell.set(data).is_err() {
            unreachable!("it was empty");
        }
        cell
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        SetOnce::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce")
            .field("value", &self.get())
            .finish()
    }
}

/// There was data already: this comes back.
#[derive(PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Debug for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnceError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the data was set before")
    }
}

impl<T> Error for SetOnceError<T> {}
