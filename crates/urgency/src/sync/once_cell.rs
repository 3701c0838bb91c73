//! `OnceCell`: data that is made once, by the first code that needs it.

use super::{error::TryAcquireError, once::set_once, semaphore::Semaphore};
use std::{convert::Infallible, fmt, future::Future, sync::OnceLock};

/// A place for data that is set once; see [`mod@crate::sync`] for what holds for all primitives.
///
/// If making the data fails, panics or is cancelled, the next waiter makes it. Looking at data that is there costs one
/// load.
///
/// There is no priority inheritance: urgent code waits until the less urgent code that makes the data has done so at
/// its own level. Where that matters, make the data before urgent code needs it, or keep an `Option` in a
/// [`Mutex`](super::Mutex).
///
/// ```
/// use urgency::sync::OnceCell;
///
/// static CONFIG: OnceCell<String> = OnceCell::new();
///
/// async fn config() -> &'static str {
///     CONFIG.get_or_init(async || "verbose".to_owned()).await
/// }
///
/// assert_eq!(urgency::block_on(config()), "verbose");
/// assert!(CONFIG.get().is_some());
/// ```
pub struct OnceCell<T> {
    /// Its one permit is the right to set the data; closed when that was done.
    right: Semaphore,
    data: OnceLock<T>,
}

set_once!(OnceCell);

impl<T> OnceCell<T> {
    const_fn! {
        /// Empty.
        pub fn new() -> Self {
            OnceCell {
                right: Semaphore::new(1),
                data: OnceLock::new(),
            }
        }
    }

    /// The data, if it is there, to change.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.data.get_mut()
    }

    /// Puts the data in.
    ///
    /// # Errors
    ///
    /// With the data, if the cell has some already, or another call is making it.
    pub fn set(&self, data: T) -> Result<(), SetError<T>> {
        match self.right.try_acquire() {
            Ok(_right) => {
                self.fill(data);
                Ok(())
            }
            Err(TryAcquireError::Closed) => Err(SetError::AlreadyInitializedError(data)),
            Err(TryAcquireError::NoPermits) => Err(SetError::InitializingError(data)),
        }
    }

    /// Takes the data out of the cell, which is empty then.
    ///
    /// ```
    /// use urgency::sync::OnceCell;
    ///
    /// let mut cell = OnceCell::new();
    /// cell.set(1).unwrap();
    /// assert_eq!(cell.take(), Some(1));
    /// assert!(cell.get().is_none());
    /// ```
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    /// Only the code that has the right calls this.
    fn fill(&self, data: T) -> &T {
        let data = self.data.get_or_init(|| data);
        self.right.close();
        data
    }

    /// The data; if there is none yet, this or another call makes it.
    ///
    /// # Cancellation
    ///
    /// Dropping the future while it makes the data leaves the cell empty, and the next waiter makes the data.
    pub async fn get_or_init<F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> &T {
        let made = self.get_or_try_init(async || Ok::<T, Infallible>(make().await));
        made.await.unwrap_or_else(|never| match never {})
    }

    /// As [`get_or_init`](Self::get_or_init), where making it may fail.
    ///
    /// # Errors
    ///
    /// The error of `make`. The cell stays empty then, and the next waiter makes the data.
    ///
    /// # Cancellation
    ///
    /// As [`get_or_init`](Self::get_or_init).
    pub async fn get_or_try_init<E, F: Future<Output = Result<T, E>>>(
        &self,
        make: impl FnOnce() -> F,
    ) -> Result<&T, E> {
        if let Some(data) = self.get() {
            return Ok(data);
        }
        // Closed: the data is there.
        let _right = self.right.acquire().await;
        match self.get() {
            Some(data) => Ok(data),
            None => Ok(self.fill(make().await?)),
        }
    }

    /// As [`get_or_init`](Self::get_or_init), for closures and plain threads.
    ///
    /// ```
    /// let answer = urgency::sync::OnceCell::new();
    /// assert_eq!(*answer.blocking_get_or_init(|| 42), 42);
    /// ```
    pub fn blocking_get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(data) => data,
            None => crate::block_on(self.get_or_init(async || make())),
        }
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(data: T) -> Self {
        let cell = OnceCell::new();
        cell.fill(data);
        cell
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell").field(&self.get()).finish()
    }
}

/// Why the data was not put in: it comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SetError<T> {
    /// There is some already.
    AlreadyInitializedError(T),
    /// Another call is making the data.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Whether there is some already.
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, SetError::AlreadyInitializedError(_))
    }

    /// Whether another call is making the data.
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, SetError::InitializingError(_))
    }
}

debug_text!([T] SetError<T>, |it| match it {
    SetError::AlreadyInitializedError(_) => "AlreadyInitializedError(..)",
    SetError::InitializingError(_) => "InitializingError(..)",
});
error_text!([T] SetError<T>, |it| match it {
    SetError::AlreadyInitializedError(_) => "the cell has its data already",
    SetError::InitializingError(_) => "another call is making the cell's data",
});
