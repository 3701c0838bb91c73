//! Results of started operations that were dropped before they were taken.
//!
//! A started read makes its attempt at once, so it may hold bytes when it is dropped. The bytes go back here, and the
//! next reader of the same stream gets them first: cancelling loses nothing. The same holds for a datagram and for an
//! accepted connection.
//!
//! # Order
//!
//! Started operations may be dropped in any order, and a part of what was put back may be taken and put back
//! again. So whatever a started operation takes from the kernel gets a [`Place`], which stays with it and all
//! its parts, and the queue is sorted by it: results come out in the order in which they came. (Among
//! operations that take at the same time on several threads there is no order to keep.) What a later
//! operation has consumed already is past: put back after that, a result comes out behind it.
//!
//! A usual read pays one load; a started read pays a locked instruction beside its system call. After a result was put
//! back, the source's read direction is raised; [`Source::raise`](super::source::Source::raise) says why no
//! waiting reader misses it.

use super::source::{Done, ready_now};
use crate::{reactor::directions::Direction, sys::mutex::Mutex};
use std::{
    collections::VecDeque,
    io,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Where a result, or its first byte, is among all that started operations took from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    /// The place of the byte `count` further on.
    pub(crate) fn after(self, count: usize) -> Self {
        Place(self.0 + count as u64)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Unread<T> {
    /// Written under the lock; may be read without it.
    any: AtomicBool,
    next: AtomicU64,
    /// Sorted by place.
    queue: Mutex<VecDeque<(Place, T)>>,
}

impl<T> Unread<T> {
    pub(crate) const fn new() -> Self {
        Unread {
            any: AtomicBool::new(false),
            next: AtomicU64::new(0),
            queue: Mutex::new(VecDeque::new()),
        }
    }

    /// The place of what a started operation has just taken from the kernel: one result, or so many bytes.
    pub(crate) fn place(&self, count: usize) -> Place {
        // Relaxed: only operations that follow one another have an order, and each sees the operations before it.
        Place(self.next.fetch_add(count as u64, Ordering::Relaxed))
    }

    pub(crate) fn put_back(&self, place: Place, value: T) {
        let mut queue = self.queue.lock();
        let behind = queue.partition_point(|(other, _)| *other < place);
        queue.insert(behind, (place, value));
        self.any.store(true, Ordering::Release);
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.any.load(Ordering::Acquire)
    }

    /// An attempt that only asks: `WouldBlock` unless there is something here, or a read of `io` would return at once.
    pub(crate) fn is_readable(&self, io: impl AsFd) -> io::Result<Done<()>> {
        if self.is_empty() {
            return ready_now(io, Direction::Read);
        }
        Ok(Done::maybe_more(()))
    }

    /// Shows the first result and its place to `take`, which may keep it, or a part: `Some` goes back to the
    /// front.
    #[inline]
    pub(crate) fn take_with<R>(
        &self,
        take: impl FnOnce(Place, T) -> (R, Option<(Place, T)>),
    ) -> Option<R> {
        if self.is_empty() {
            return None;
        }
        self.take_with_cold(take)
    }

    #[cold]
    fn take_with_cold<R>(
        &self,
        take: impl FnOnce(Place, T) -> (R, Option<(Place, T)>),
    ) -> Option<R> {
        let mut queue = self.queue.lock();
        let (place, value) = queue.pop_front()?;
        let (result, rest) = take(place, value);
        if let Some(rest) = rest {
            queue.push_front(rest);
        }
        self.any.store(!queue.is_empty(), Ordering::Release);
        Some(result)
    }
}

impl Unread<Bytes> {
    /// Shows the first bytes to `copy`, which takes as many as it returns. Also where they were.
    #[inline]
    pub(crate) fn take_bytes(
        &self,
        copy: impl FnOnce(&mut Bytes) -> usize,
    ) -> Option<(usize, Place)> {
        self.take_with(|place, mut bytes| {
            let count = copy(&mut bytes);
            let rest = bytes.rest().map(|rest| (place.after(count), rest));
            ((count, place), rest)
        })
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
