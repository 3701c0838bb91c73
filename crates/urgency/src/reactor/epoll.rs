//! The kernel's readiness queue on Linux: one epoll instance, one eventfd, two timerfds.
//!
//! The [`Poller`] of Linux. It knows no wakers and no sources: it hands out [`Event`]s that carry the key under which a
//! descriptor was added.
//!
//! # Rules
//!
//! 1. Everything is edge-triggered, the eventfd and the timerfd included. So nothing has to be read from these two (but
//!    by `rest`, which polls the eventfd without the epoll instance). One event wakes one of the threads that wait, and
//!    no thread is woken for an event that another one has taken already. (Level-triggered descriptors go back to the
//!    ready list at once and wake the next thread for nothing.)
//! 2. No lock is held anywhere while a thread waits. The kernel wakes the thread that came last.
//! 3. A notification is a count in user space plus an edge of the eventfd. A thread that harvests the edge and wants
//!    the notification takes one from the count. If some are left, the thread raises the edge again: so `n`
//!    notifications end `n` waits although the kernel may have merged their edges.
//! 4. Interest in writing is added when a write would block for the first time. Asking for both at once
//!    would make each new connection report that it is writable, and so wake a thread for nothing.
//! 5. The timer is programmed with absolute times of the monotonic clock; a time in the past fires at once. Programming
//!    the timer anew discards an expiry that no thread has harvested yet, which is harmless since the new time is then
//!    in the past.
//! 6. A thread that rests has a timer of its own, outside the epoll instance, since other threads postpone the end of
//!    the rest. Of a wait with a time limit only the waiting thread could do that. The timer may expire when no thread
//!    rests: the next rest sets it anew.
//!
//! # Rejected
//!
//! `EPOLLONESHOT` (a system call per wait instead of one per descriptor), a time limit for
//! `epoll_wait` (only the thread that computed it would honour it, and it rounds to milliseconds), and a
//! pipe for the notification (must be drained).

#![cfg(not(urgency_loom))]

use super::poller::{Edge, Event, Interest, Poller};
use crate::sys::primitives::atomic::{AtomicU32, Ordering};
use rustix::{
    event::{
        EventfdFlags, PollFd, PollFlags,
        epoll::{self, EventData, EventFlags},
        eventfd, poll,
    },
    fd::{BorrowedFd, OwnedFd},
    io::Errno,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    },
};
use std::{
    io,
    mem::MaybeUninit,
    time::{Duration, Instant},
};

/// How many events one system call fetches at most.
const BATCH: usize = 128;

/// The key of the eventfd; descriptors have smaller ones.
const NOTIFICATION: u64 = u64::MAX;

/// The key of the timerfd.
const TIMER: u64 = u64::MAX - 1;

/// What epoll is asked for.
fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::ET;
    if interest.contains(Interest::READ) {
        flags |= EventFlags::IN | EventFlags::RDHUP | EventFlags::PRI;
    }
    if interest.contains(Interest::WRITE) {
        flags |= EventFlags::OUT;
    }
    flags
}

/// Room for the events of one system call, on the stack of the waiting thread.
pub(crate) struct Batch([MaybeUninit<epoll::Event>; BATCH]);

impl Default for Batch {
    fn default() -> Self {
        Batch([MaybeUninit::uninit(); BATCH])
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    notification: OwnedFd,
    pending: AtomicU32,
    timer: OwnedFd,
    /// Rule 6.
    rest: OwnedFd,
    /// The same moment on both clocks; nanoseconds of the poller count from it.
    origin: (Instant, Duration),
}

impl Epoll {
    fn raise(&self) {
        // Cannot fail but for a full counter, which takes centuries, and a full one is readable as well.
        let _ = rustix::io::write(&self.notification, &1u64.to_ne_bytes());
    }
}

impl Poller for Epoll {
    type Batch = Batch;

    fn new() -> io::Result<Self> {
        // Miri interprets no timerfd. The runtime does without a driver, as in a process without descriptors.
        if cfg!(miri) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let notification = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let timer = new_timer()?;
        let edge = EventFlags::IN | EventFlags::ET;
        epoll::add(
            &epoll,
            &notification,
            EventData::new_u64(NOTIFICATION),
            edge,
        )?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), edge)?;
        Ok(Epoll {
            epoll,
            notification,
            pending: AtomicU32::new(0),
            timer,
            rest: new_timer()?,
            origin: both_clocks(),
        })
    }

    fn add(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(key < TIMER);
        Ok(epoll::add(
            &self.epoll,
            fd,
            EventData::new_u64(key),
            flags(interest),
        )?)
    }

    fn modify(&self, fd: BorrowedFd<'_>, key: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            fd,
            EventData::new_u64(key),
            flags(interest),
        )?)
    }

    fn remove(&self, fd: BorrowedFd<'_>, _: u64) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    fn wait<'a>(
        &'a self,
        block: bool,
        batch: &'a mut Batch,
    ) -> io::Result<impl Iterator<Item = Event> + 'a> {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let limit = if block { None } else { Some(&now) };
        let events = match epoll::wait(&self.epoll, &mut batch.0[..], limit) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => &mut [],
            Err(error) => return Err(error.into()),
        };
        Ok(events.iter().map(|event| translate(*event)))
    }

    fn rest(&self, limit: Duration) -> io::Result<bool> {
        self.postpone(limit);
        let mut set = [
            PollFd::new(&self.notification, PollFlags::IN),
            PollFd::new(&self.rest, PollFlags::IN),
        ];
        match poll(&mut set, None) {
            Ok(_) if !set[0].revents().is_empty() => {}
            Ok(_) | Err(Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        // Unread, old notifications would end every rest. To read takes the edge away as well, so what is
        // pending is taken here, or the edge raised anew.
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.notification, &mut count);
        Ok(self.take_notification(true))
    }

    fn postpone(&self, limit: Duration) {
        // Relative: a thread that is preempted before the call still gives the whole time.
        set_timer(&self.rest, TimerfdTimerFlags::empty(), limit);
    }

    fn notify(&self) {
        // Release: what the notifier wrote is visible to the thread that takes the notification.
        self.pending.fetch_add(1, Ordering::Release);
        self.raise();
    }

    fn take_notification(&self, wanted: bool) -> bool {
        let take = |pending: u32| wanted.then(|| pending.checked_sub(1)).flatten();
        let taken = self
            .pending
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take);
        let (Ok(before) | Err(before)) = taken;
        if before != u32::from(taken.is_ok()) {
            self.raise();
        }
        taken.is_ok()
    }

    fn now(&self) -> u64 {
        self.nanoseconds(Instant::now())
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.origin.0).as_nanos();
        // 292 years; later times are never reached.
        u64::try_from(since)
            .unwrap_or(u64::MAX)
            .min(i64::MAX as u64)
    }

    fn instant(&self, at: u64) -> Instant {
        self.origin.0 + Duration::from_nanos(at)
    }

    fn program_timer(&self, at: u64) {
        let at = self.origin.1 + Duration::from_nanos(at);
        set_timer(&self.timer, TimerfdTimerFlags::ABSTIME, at);
    }
}

fn new_timer() -> io::Result<OwnedFd> {
    Ok(timerfd_create(
        TimerfdClockId::Monotonic,
        TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
    )?)
}

fn set_timer(timer: &OwnedFd, flags: TimerfdTimerFlags, time: Duration) {
    let setting = Itimerspec {
        it_interval: Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        it_value: Timespec {
            tv_sec: time.as_secs() as _,
            tv_nsec: time.subsec_nanos() as _,
        },
    };
    timerfd_settime(timer, flags, &setting)
        .expect("the descriptor is a timer and the time is valid");
}

fn translate(event: epoll::Event) -> Event {
    match event.data.u64() {
        NOTIFICATION => Event::Notification,
        TIMER => Event::Timer,
        key => {
            let flags = event.flags;
            let gone = flags.intersects(EventFlags::HUP | EventFlags::ERR);
            let ending = EventFlags::RDHUP | EventFlags::PRI;
            Event::Ready(
                key,
                Edge {
                    readable: gone || flags.intersects(EventFlags::IN | ending),
                    writable: gone || flags.contains(EventFlags::OUT),
                    exceptional: gone || flags.intersects(ending),
                },
            )
        }
    }
}

/// Reads both clocks at nearly the same moment; the second reading is the later one, so that no timer
/// fires before its time by [`Instant`].
fn both_clocks() -> (Instant, Duration) {
    let reading = || {
        let instant = Instant::now();
        let raw = clock_gettime(ClockId::Monotonic);
        let width = instant.elapsed();
        let raw = Duration::new(raw.tv_sec as u64, raw.tv_nsec as u32);
        (width, instant, raw)
    };
    let (_, instant, raw) = (0..8)
        .map(|_| reading())
        .min_by_key(|reading| reading.0)
        .expect("eight readings were taken");
    (instant, raw)
}
