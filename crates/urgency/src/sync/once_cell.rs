//! `OnceCell`: data that is made once, by the first who needs it.

use super::semaphore::Semaphore;
use std::{convert::Infallible, fmt, future::Future, sync::OnceLock};

/// A place for data that is set once; see [`mod@crate::sync`] for what holds for all primitives.
///
/// If making it fails, panics or is cancelled, the next who waits makes it. Looking at data that is there
/// costs one load.
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

    /// The data, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.data.get()
    }

    /// The data, if it is there, to change.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.data.get_mut()
    }

    /// The data, if it is there, taken out of the cell.
    pub fn into_inner(self) -> Option<T> {
        self.data.into_inner()
    }

    /// Puts the data in.
    ///
    /// # Errors
    ///
    /// With the data, if there is some already, or somebody is making it.
    pub fn set(&self, data: T) -> Result<(), T> {
        let Ok(right) = self.right.try_acquire() else {
            return Err(data);
        };
        self.fill(data);
        drop(right);
        Ok(())
    }

    /// By whoever has the right.
    fn fill(&self, data: T) -> &T {
        let data = self.data.get_or_init(|| data);
        self.right.close();
        data
    }

    /// The data; if there is none yet, this or another call makes it.
    ///
    /// # Cancellation
    ///
    /// Dropping the future while it makes the data leaves the cell empty, and the next who waits makes it.
    pub async fn get_or_init<F: Future<Output = T>>(&self, make: impl FnOnce() -> F) -> &T {
        let made = self.get_or_try_init(async || Ok::<T, Infallible>(make().await));
        made.await.unwrap_or_else(|never| match never {})
    }

    /// As [`get_or_init`](Self::get_or_init), where making it may fail.
    ///
    /// # Errors
    ///
    /// That of `make`. The cell stays empty then, and the next who waits makes the data.
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
    /// assert_eq!(*answer.get_or_init_blocking(|| 42), 42);
    /// ```
    pub fn get_or_init_blocking(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(data) => data,
            None => crate::block_on(self.get_or_init(async || make())),
        }
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        OnceCell::new()
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
