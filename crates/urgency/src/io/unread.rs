//! What a started operation got and nobody took.
//!
//! A started read makes its attempt at once, so it may hold bytes when it is dropped. They go back
//! here, and the next reader of the same stream gets them first: cancelling loses nothing. The same
//! holds for a datagram and for an accepted connection. Several results that are put back come out in the
//! order in which they were put back.
//!
//! The common reader pays one load. Whoever puts something back raises the source's read direction
//! afterwards; [`Source::raise`](super::source::Source::raise) says why no waiting reader misses it.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Unread<T> {
    /// Written under the lock; may be read without it.
    any: AtomicBool,
    queue: Mutex<VecDeque<T>>,
}

impl<T> Unread<T> {
    pub(crate) const fn new() -> Self {
        Unread {
            any: AtomicBool::new(false),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    pub(crate) fn put_back(&self, value: T) {
        let mut queue = self.lock();
        queue.push_back(value);
        self.any.store(true, Ordering::Release);
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// Shows the oldest result to `take`, which may keep it (`Some` goes back to the front).
    #[inline]
    pub(crate) fn take_with<R>(&self, take: impl FnOnce(T) -> (R, Option<T>)) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        self.take_with_cold(take)
    }

    #[cold]
    fn take_with_cold<R>(&self, take: impl FnOnce(T) -> (R, Option<T>)) -> Option<R> {
        let mut queue = self.lock();
        let (result, rest) = take(queue.pop_front()?);
        if let Some(rest) = rest {
            queue.push_front(rest);
        }
        self.any.store(!queue.is_empty(), Ordering::Release);
        Some(result)
    }

    /// Takes the oldest result.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        self.take_with(|value| (value, None))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a stream that were read and not taken.
#[derive(Debug)]
pub(crate) struct Bytes {
    buffer: Vec<u8>,
    from: usize,
    to: usize,
}

impl Bytes {
    /// The first `count` bytes of `buffer`.
    pub(crate) fn new(buffer: Vec<u8>, count: usize) -> Self {
        Bytes {
            buffer,
            from: 0,
            to: count,
        }
    }

    /// Copies as much as fits. What is left stays in `self`.
    pub(crate) fn copy_to(&mut self, target: &mut [u8]) -> usize {
        let count = self.peek_to(target);
        self.from += count;
        count
    }

    /// As [`Bytes::copy_to`]. Initialises as many bytes of `target` as it returns.
    #[cfg(feature = "tokio-io")]
    pub(crate) fn copy_to_uninit(&mut self, target: &mut [std::mem::MaybeUninit<u8>]) -> usize {
        let bytes = &self.buffer[self.from..self.to];
        let count = bytes.len().min(target.len());
        for (to, byte) in target.iter_mut().zip(bytes) {
            to.write(*byte);
        }
        self.from += count;
        count
    }

    /// As [`Bytes::copy_to`], and keeps everything.
    pub(crate) fn peek_to(&self, target: &mut [u8]) -> usize {
        let bytes = &self.buffer[self.from..self.to];
        let count = bytes.len().min(target.len());
        target[..count].copy_from_slice(&bytes[..count]);
        count
    }

    /// `self` unless it is used up.
    pub(crate) fn rest(self) -> Option<Self> {
        (self.from < self.to).then_some(self)
    }
}
