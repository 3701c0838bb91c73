//! One descriptor that can wait: its two directions and its registration with a driver.
//!
//! A source is not registered until an operation would block for the first time. Then it belongs to the driver of the
//! thread that made this attempt. Until then it costs nothing but the system calls of its operations.
//!
//! # Protocol of an operation ([`Source::poll`])
//!
//! 1. Not registered for the direction: attempt. If it would block, register and go to 2.
//! 2. Look at the direction's readiness; if ready, attempt. If it would block, retract and, unless an
//!    edge came meanwhile, go to 3.
//! 3. Wait (see `reactor/readiness.rs`), unless the driver was shut down. Then the operation is an error, or pending if
//!    its task ends with its runtime.
//!
//! The registration itself makes the kernel report readiness that exists already, and a new direction
//! starts as ready, so nothing is lost between 1 and 2. What comes from elsewhere ([`Source::raise`])
//! is not lost either: of the attempt after the registration and the look for a registration after the
//! arrival, one sees the other, by the two fences.
//!
//! An operation that succeeds at once takes from the budget of its poll (`runtime/coop.rs`), so a task whose socket is
//! always ready lets others go first.
//!
//! A registration ends before the descriptor is closed; its key is never valid again.

use crate::{
    reactor::{
        directions::{Direction, Directions},
        driver::{Driver, DriverShut},
        poller::Interest,
        readiness::{Look, Readiness, Ticket, wake},
        sockets::is_ready_now,
    },
    runtime::{self, coop},
    sched::doors::caller::{ends_with_runtime, has_ended},
    sys::mutex::Mutex,
};
use rustix::fd::{AsFd, BorrowedFd};
use std::{
    io,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering, fence},
    },
    task::{Poll, Waker},
};

/// The result of a successful attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done<R> {
    pub(crate) value: R,
    /// The attempt showed that the next one would block.
    pub(crate) exhausted: bool,
}

impl<R> Done<R> {
    /// The next attempt may succeed as well.
    pub(crate) fn maybe_more(value: R) -> Self {
        Done {
            value,
            exhausted: false,
        }
    }

    pub(crate) fn map<T>(self, f: impl FnOnce(R) -> T) -> Done<T> {
        Done {
            value: f(self.value),
            exhausted: self.exhausted,
        }
    }
}

/// What waits if the operation would block.
pub(crate) enum Waits<'a> {
    /// A future that keeps its ticket and calls [`Source::leave`] when it is dropped.
    Future(&'a mut Option<Ticket>, &'a Waker),
    /// A `poll_*` form.
    Watcher(&'a Waker),
    /// Nothing: the source is registered, and that is all.
    Nobody,
}

impl Waits<'_> {
    /// Whether a task waits that ends with its runtime: see [`ends_with_runtime`].
    #[cold]
    fn is_of_ending_task(&self) -> bool {
        !matches!(self, Waits::Nobody) && ends_with_runtime()
    }

    /// Whether the task that waits is to let others go first. Then it is woken.
    #[inline]
    fn is_to_pause(&self) -> bool {
        match self {
            Waits::Future(_, waker) | Waits::Watcher(waker) => coop::is_used_up_or_long(waker),
            Waits::Nobody => false,
        }
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Source {
    registering: Mutex<()>,
    registration: OnceLock<Registration>,
}

/// No code of others runs while the registration is half changed.
impl RefUnwindSafe for Source {}
impl UnwindSafe for Source {}

#[derive(Debug)]
struct Registration {
    driver: Arc<Driver>,
    key: u64,
    interest: AtomicU8,
    directions: Arc<Directions>,
}

impl Registration {
    fn is_for(&self, direction: Direction) -> bool {
        // Acquire: pairs with the release after the kernel knows the direction.
        Interest::from_bits(self.interest.load(Ordering::Acquire)).contains(direction.interest())
    }
}

impl Source {
    pub(crate) const fn new() -> Self {
        Source {
            registering: Mutex::new(()),
            registration: OnceLock::new(),
        }
    }

    #[inline]
    fn readiness(&self, direction: Direction) -> Option<&Readiness> {
        let registration = self.registration.get()?;
        registration
            .is_for(direction)
            .then(|| registration.directions.of(direction))
    }

    /// Makes an operation, or sees to it that `waits` is woken when it is worth another attempt.
    #[inline]
    pub(crate) fn poll<Io: AsFd, R>(
        &self,
        io: &mut Io,
        direction: Direction,
        mut waits: Waits<'_>,
        mut attempt: impl FnMut(&mut Io) -> io::Result<Done<R>>,
    ) -> Poll<io::Result<R>> {
        if waits.is_to_pause() {
            return Poll::Pending;
        }
        loop {
            let readiness = self.readiness(direction);
            let look = readiness.map(Readiness::look);
            if look.is_none_or(Look::is_ready) {
                match attempt(io) {
                    Ok(done) => {
                        if let (true, Some(readiness), Some(look)) =
                            (done.exhausted, readiness, look)
                        {
                            readiness.retract_if_trusted(look);
                        }
                        self.finish(direction, &mut waits);
                        return Poll::Ready(Ok(done.value));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => {
                        self.finish(direction, &mut waits);
                        return Poll::Ready(Err(error));
                    }
                }
                let (Some(readiness), Some(look)) = (readiness, look) else {
                    match self.register(io.as_fd(), direction) {
                        Ok(()) => continue,
                        Err(_) if waits.is_of_ending_task() => return Poll::Pending,
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                };
                if !readiness.retract(look) {
                    continue;
                }
            }
            let readiness = readiness.expect("an unregistered source is always attempted");
            self.must_be_here();
            if readiness.look().is_shut() || has_ended() {
                if waits.is_of_ending_task() {
                    return Poll::Pending;
                }
                self.finish(direction, &mut waits);
                return Poll::Ready(Err(DriverShut.into()));
            }
            let waiting = match &mut waits {
                Waits::Future(ticket, waker) => readiness.wait(ticket, waker),
                Waits::Watcher(waker) => readiness.watch(waker),
                Waits::Nobody => true,
            };
            if waiting {
                return Poll::Pending;
            }
        }
    }

    /// The operation has its result.
    #[inline]
    fn finish(&self, direction: Direction, waits: &mut Waits<'_>) {
        coop::take();
        if let Waits::Future(ticket, _) = waits
            && let Some(ticket) = ticket.take()
        {
            self.leave(direction, ticket);
        }
    }

    /// The future with this ticket has its result or is dropped.
    pub(crate) fn leave(&self, direction: Direction, ticket: Ticket) {
        if let Some(registration) = self.registration.get()
            && registration.driver.is_here()
        {
            registration.directions.of(direction).leave(ticket);
        }
    }

    /// Something became available that the kernel knows nothing of: as if an edge had come.
    pub(crate) fn raise(&self, direction: Direction) {
        fence(Ordering::SeqCst);
        if let Some(registration) = self.registration.get() {
            let mut ready = Vec::new();
            registration
                .directions
                .of(direction)
                .edge(false, &mut ready);
            ready.into_iter().for_each(wake);
        }
    }

    #[cold]
    fn register(&self, fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
        self.must_be_here();
        let _one_at_a_time = self.registering.lock();
        if let Some(registration) = self.registration.get() {
            if registration.is_for(direction) {
                return Ok(());
            }
            let interest = Interest::from_bits(registration.interest.load(Ordering::Relaxed))
                .and(direction.interest());
            registration
                .driver
                .watch_more(fd, registration.key, interest)?;
            registration
                .interest
                .store(interest.bits(), Ordering::Release);
            return Ok(());
        }
        let driver = runtime::driver()?;
        let directions = Arc::<Directions>::default();
        let interest = direction.interest();
        let key = driver
            .watch(fd, interest, directions.clone())
            .map_err(explain)?;
        self.registration
            .set(Registration {
                driver,
                key,
                interest: AtomicU8::new(interest.bits()),
                directions,
            })
            .expect("set only under the lock");
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// # Panics
    ///
    /// If its events come in the parent of this process.
    #[track_caller]
    fn must_be_here(&self) {
        if let Some(registration) = self.registration.get() {
            registration.driver.must_be_here();
        }
    }

    /// Ends the registration, before the descriptor is closed.
    pub(crate) fn deregister(&mut self, fd: BorrowedFd<'_>) {
        if let Some(registration) = self.registration.take() {
            registration.driver.forget(fd, registration.key);
        }
    }
}

/// An attempt that only asks: `WouldBlock` unless a read (or write) would return at once.
pub(crate) fn ready_now(io: impl AsFd, direction: Direction) -> io::Result<Done<()>> {
    if is_ready_now(io, direction.interest())? {
        Ok(Done::maybe_more(()))
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// What the kernel's refusal to watch a descriptor means.
fn explain(error: io::Error) -> io::Error {
    let text = match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::PERM) => {
            "this descriptor cannot be waited for, since it is always ready as a regular file is; \
             use urgency::fs"
        }
        Some(rustix::io::Errno::EXIST) => {
            "this descriptor is waited for already; share one Async instead of making two"
        }
        Some(rustix::io::Errno::NOSPC) => {
            "the limit of watched descriptors (/proc/sys/fs/epoll/max_user_watches) is reached; \
             raise it or close some"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), text)
}
