//! `SetOnce`: data that is set once, and waited for.
//!
//! Its waiters wait for a permit of a semaphore that never has one. Setting the data closes the semaphore, which wakes
//! them all.

use super::{once::set_once, semaphore::Semaphore};
use std::{fmt, sync::OnceLock};

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

set_once!(SetOnce);

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

impl<T> From<T> for SetOnce<T> {
    fn from(data: T) -> Self {
        let cell = SetOnce::new();
        if cell.set(data).is_err() {
            unreachable!("it was empty");
        }
        cell
    }
}

debug_struct!([T: fmt::Debug] SetOnce<T>, |it| value: it.get());

/// There was data already: this comes back.
#[derive(PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

debug_struct!([T] SetOnceError<T>);
error_text!([T] SetOnceError<T>, "the data was set before");
