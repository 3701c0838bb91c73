//! To wait for several things of one descriptor at once, and to make a call of the program's own when it is ready.
//!
//! The kernel itself is asked how a descriptor is, by `poll(2)`; nothing is remembered here, so nothing has to be
//! cleared. The wait is an operation of `source.rs` in each direction that an [`Interest`] has: the first of them that
//! succeeds ends both.
//!
//! An operation that would block retracts the readiness of its direction, and the operations behind it wait for the
//! next edge. That is right as long as no read would return at once. So a wait for exceptions alone is no operation in
//! the reading direction: it must not hide from the readers that there are bytes. It has a registration of its own, by
//! a second descriptor of the same file, until it ends.

use super::{Async, Interest, Ready, source::Done};
use crate::reactor::{directions::Direction, readiness::Ticket, sockets::poll_now};
use rustix::fd::{AsFd, OwnedFd};
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

/// How a descriptor is now, as far as it is of interest. It does not wait.
pub(crate) fn ready_for(fd: impl AsFd, interest: Interest) -> io::Result<Ready> {
    Ok(interest.ready(poll_now(fd, interest.wanted())?))
}

/// As [`ready_for`], of a socket of datagrams.
pub(crate) fn ready_with_datagrams(fd: impl AsFd, interest: Interest) -> io::Result<Ready> {
    Ok(interest.ready_with_datagrams(poll_now(fd, interest.wanted())?))
}

/// As [`ready_for`], as an attempt: `WouldBlock` if there is nothing of interest.
pub(crate) fn some_ready(ready: io::Result<Ready>) -> io::Result<Ready> {
    match ready? {
        Ready::EMPTY => Err(io::ErrorKind::WouldBlock.into()),
        ready => Ok(ready),
    }
}

impl<T: AsFd> Async<T> {
    /// Makes `operation` if the descriptor is ready for one of `interest` now; if it is not, `operation` is not called.
    ///
    /// ```
    /// use std::io::{ErrorKind, Read, Write};
    /// use urgency::io::{Async, Interest};
    ///
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = Async::new(reader)?;
    /// let mut buffer = [0; 8];
    /// let mut read = || reader.try_io(Interest::READABLE, |mut pipe| pipe.read(&mut buffer));
    /// assert_eq!(read().unwrap_err().kind(), ErrorKind::WouldBlock);
    /// writer.write_all(b"now")?;
    /// assert_eq!(read()?, 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WouldBlock` if the descriptor is not ready, and the operation's own errors.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        operation: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        some_ready(ready_for(self.get_ref(), interest))?;
        operation(self.get_ref())
    }

    /// Makes `operation` as soon as it does not fail with `WouldBlock`, and waits between attempts until the descriptor
    /// is ready for one of `interest`. The first attempt is made when the future is first polled.
    ///
    /// Dropping the future cancels: the operation has happened if and only if the future returned.
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use urgency::io::{Async, Interest};
    ///
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = Async::new(reader)?;
    /// let count = urgency::block_on(async {
    ///     writer.write_all(b"now")?;
    ///     let mut buffer = [0; 8];
    ///     reader.async_io(Interest::READABLE, |mut pipe| pipe.read(&mut buffer)).await
    /// })?;
    /// assert_eq!(count, 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The operation's errors, or as [`readable`](Async::readable).
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.when(interest, operation).await
    }

    /// An operation that any readiness of interest may end.
    pub(crate) fn when<R, F>(&self, interest: Interest, attempt: F) -> When<'_, T, F>
    where
        F: FnMut(&T) -> io::Result<R>,
    {
        When {
            on: self,
            interest,
            attempt,
            reads: None,
            writes: None,
            aside: None,
        }
    }
}

/// See [`Async::when`].
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct When<'a, T: AsFd, F> {
    on: &'a Async<T>,
    interest: Interest,
    attempt: F,
    reads: Option<Ticket>,
    writes: Option<Ticket>,
    /// What waits for exceptions alone, and its ticket.
    aside: Option<(Async<OwnedFd>, Option<Ticket>)>,
}

// The closure is called by reference and never pinned.
impl<T: AsFd, F> Unpin for When<'_, T, F> {}

impl<T: AsFd, R, F: FnMut(&T) -> io::Result<R>> Future for When<'_, T, F> {
    type Output = io::Result<R>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let on = this.on;
        let mut attempt = |io: &T| (this.attempt)(io).map(Done::maybe_more);
        let (read, write) = (Direction::Read, Direction::Write);
        let mut poll = Poll::Pending;
        if this.interest.is_readable() {
            poll = on.poll_with_ticket(cx, read, &mut this.reads, &mut attempt);
        }
        if poll.is_pending() && this.interest.is_writable() {
            poll = on.poll_with_ticket(cx, write, &mut this.writes, &mut attempt);
        }
        if poll.is_pending() && this.interest.is_aside() {
            if this.aside.is_none() {
                let second = on.as_fd().try_clone_to_owned()?;
                this.aside = Some((Async::from_nonblocking(second), None));
            }
            if let Some((aside, ticket)) = &mut this.aside {
                let attempt = |_: &OwnedFd| attempt(on.get_ref());
                poll = aside.poll_with_ticket(cx, read, ticket, attempt);
            }
        }
        poll
    }
}

impl<T: AsFd, F> Drop for When<'_, T, F> {
    fn drop(&mut self) {
        // Nothing else waits aside: the waiters go with the registration.
        self.on.leave(Direction::Read, self.reads);
        self.on.leave(Direction::Write, self.writes);
    }
}
