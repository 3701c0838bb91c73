//! The driver: what one runtime waits for in the kernel, descriptors, timers and relief alike.
//!
//! It is over any [`Poller`], and [`Driver`] is the one over the system's. It owns the poller, the table of registered
//! sources and the timers. It has no thread: workers and the thread in the poller call [`Driver::wait`], any number of
//! them at once. It wakes tasks by itself in [`Driver::shutdown`] only. `wait` hands the wakers out in the order in
//! which the kernel reported the events, and for expired timers in the order of their deadlines. Together with FIFO
//! queues that order is the aging heuristic (fairness paper, section 3).
//!
//! # Locks
//!
//! `sources`, then the lock of one source's direction; `timers`. None is held while a thread waits or sets the timer
//! descriptor, and no waker is woken or dropped under any of them.
//!
//! # One timer descriptor
//!
//! Timers and relief share one timer descriptor. It is set for the earliest thing to come, and only when something
//! earlier is added (`protocol/alarm.rs`). A cancelled timer stays set and costs at most one expiry in vain. Relief is
//! one-shot too, so nothing ticks.
//!
//! # Interest
//!
//! The number of registered sources and pending timers. A program without sources and timers never enters the kernel
//! for the driver's sake. When the number leaves zero the hook of [`Driver::on_interest`] is called, since at that
//! moment all workers may be busy and no thread in the poller.
//!
//! # A paused clock
//!
//! Tests may pause the clock of the timers (`clock.rs`). Relief goes by the system's clock in any case. While the
//! clock is paused, the timer descriptor expires again and again: each time, if the runtime is idle, the clock goes on
//! to the earliest timer. The wakers of such timers are woken here, before any thread looks again whether the runtime
//! is idle.
//!
//! # Shutdown
//!
//! `shut` is set under each of the two locks before the registered wakers are collected, so that a
//! registration is either collected or refused.

#![cfg(not(urgency_loom))]

#[cfg(test)]
mod completions;
mod paused;
mod shut;

pub(crate) use shut::DriverShut;

use super::{
    clock::Clock,
    directions::Directions,
    epoll::Epoll,
    incoming::Incoming,
    poller::{Event, Interest, Poller},
    readiness::wake_all,
    sources::Sources,
    timers::{TimerKey, Timers},
};
use crate::{
    protocol::alarm::{Alarm, NEVER},
    sys::{fork::Process, mutex::Mutex},
};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::{
    io, mem,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Waker,
    time::{Duration, Instant},
};

/// What a wait brought beside the wakers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitOutcome {
    /// Descriptors and timers that became ready, whether or not a task waits for them.
    pub(crate) events: usize,
    /// The relief time is over; arm it again if it is still needed.
    pub(crate) relief: bool,
    /// This thread took one notification.
    pub(crate) notified: bool,
}

impl WaitOutcome {
    fn is_empty(self) -> bool {
        self == WaitOutcome::default()
    }
}

/// The driver over the system's poller.
pub(crate) type Driver = DriverOver<Epoll>;

/// See the module's text.
pub(crate) struct DriverOver<P> {
    poller: P,
    sources: Mutex<Sources>,
    /// Whether events come from a crowd; written under the lock of `sources`.
    crowd: AtomicBool,
    /// Of the events that end a blocking wait.
    pub(crate) incoming: Incoming,
    timers: Mutex<Schedule>,
    alarm: Alarm,
    /// When relief is due; written under the lock of `timers`.
    relief: AtomicU64,
    /// The period with which relief was armed last, for a look without a clock.
    relief_after: AtomicU64,
    interest: AtomicUsize,
    on_interest: OnceLock<Box<dyn Fn() + Send + Sync>>,
    is_idle: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Held by the thread that moves a paused clock on.
    moves: Mutex<()>,
    shut: AtomicBool,
    process: Process,
}

struct Schedule {
    timers: Timers,
    /// Of the timers, if it was ever paused.
    clock: Option<Clock>,
}

impl Schedule {
    fn is_paused(&self) -> bool {
        self.clock.is_some_and(|clock| clock.is_paused())
    }

    /// What the timers' clock shows at a real time.
    fn now(&self, real: u64) -> u64 {
        self.clock.map_or(real, |clock| clock.now(real))
    }
}

impl<P: Poller> DriverOver<P> {
    /// Makes a driver: three descriptors over epoll, no thread. Fails at the limit of open descriptors.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(DriverOver {
            poller: P::new()?,
            sources: Mutex::new(Sources::new()),
            crowd: AtomicBool::new(false),
            incoming: Incoming::new(),
            timers: Mutex::new(Schedule {
                timers: Timers::new(),
                clock: None,
            }),
            alarm: Alarm::new(),
            relief: AtomicU64::new(NEVER),
            relief_after: AtomicU64::new(NEVER),
            interest: AtomicUsize::new(0),
            on_interest: OnceLock::new(),
            is_idle: OnceLock::new(),
            moves: Mutex::new(()),
            shut: AtomicBool::new(false),
            process: Process::this(),
        }))
    }

    /// Sets what is called, without locks, each time when there is something to wait for after there was
    /// nothing. Only the first call counts.
    pub(crate) fn on_interest(&self, hook: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_interest.set(Box::new(hook));
    }

    /// Sets how to see that nothing is ready and nothing runs. Only the first call counts.
    pub(crate) fn idle_if(&self, is_idle: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.is_idle.set(Box::new(is_idle));
    }

    /// Whether any source or timer is registered.
    #[inline]
    pub(crate) fn has_interest(&self) -> bool {
        self.interest.load(Ordering::SeqCst) != 0
    }

    /// Whether events come from many descriptors (`crowd.rs`).
    #[inline]
    pub(crate) fn serves_crowd(&self) -> bool {
        self.crowd.load(Ordering::Relaxed)
    }

    /// Waits for something to do, or only looks if `block` is false, and adds the wakers of whatever became
    /// ready to `ready`.
    ///
    /// A blocking wait returns when an event came, relief is due, it took a notification, or it was
    /// interrupted by a signal (then the outcome is empty).
    pub(crate) fn wait(&self, block: bool, ready: &mut Vec<Waker>) -> io::Result<WaitOutcome> {
        let (outcome, ()) = self.wait_until(block, ready, || ())?;
        Ok(outcome)
    }

    /// As [`DriverOver::wait`], and calls `awake` when the calling thread is back from its wait, before anything that
    /// wakes another one: the timer descriptor is set for what comes next, and that may be due in a microsecond.
    pub(crate) fn wait_until<A>(
        &self,
        block: bool,
        ready: &mut Vec<Waker>,
        awake: impl Fn() -> A,
    ) -> io::Result<(WaitOutcome, A)> {
        let mut batch = P::Batch::default();
        loop {
            let mut outcome = WaitOutcome::default();
            let mut interrupted = true;
            let mut timer = false;
            let mut notification = false;
            let events = self.poller.wait(block, &mut batch)?;
            let awake = awake();
            {
                let (mut sources, mut came) = (None, None);
                for event in events {
                    interrupted = false;
                    match event {
                        Event::Ready(key, edge) => {
                            let sources = sources.get_or_insert_with(|| self.sources.lock());
                            if let Some(fd) = sources.event(key, edge, ready) {
                                outcome.events += 1;
                                came = Some(fd);
                            }
                        }
                        Event::Timer => timer = true,
                        Event::Notification => notification = true,
                    }
                }
                if let Some(sources) = sources {
                    let crowd = sources.serve_crowd();
                    if crowd != self.crowd.load(Ordering::Relaxed) {
                        self.crowd.store(crowd, Ordering::Relaxed);
                    }
                }
                if block {
                    came.into_iter().for_each(|fd| self.incoming.note(fd));
                }
            }
            // Without the lock of the sources: both may make system calls, and other processes may preempt
            // this thread in each for long.
            if timer {
                self.expire(&mut outcome, ready);
            }
            if notification {
                outcome.notified = self.poller.take_notification(block);
            }
            // What is left are events of closed descriptors, of cancelled timers, and edges of
            // notifications that another thread took: nothing to return for.
            if !block || interrupted || !outcome.is_empty() {
                return Ok((outcome, awake));
            }
        }
    }

    /// Waits for a notification, for `limit` at most, while others look for events. Then looks for everything.
    pub(crate) fn rest<A>(
        &self,
        limit: Duration,
        ready: &mut Vec<Waker>,
        awake: impl Fn() -> A,
    ) -> io::Result<(WaitOutcome, A)> {
        let notified = self.poller.rest(limit)?;
        let (mut outcome, awake) = self.wait_until(false, ready, awake)?;
        outcome.notified |= notified;
        Ok((outcome, awake))
    }

    /// A thread that rests does so for `limit` from now on.
    pub(crate) fn postpone(&self, limit: Duration) {
        self.poller.postpone(limit);
    }

    /// Makes one thread return from a blocking wait: a thread that waits now, or else the next thread that would wait.
    pub(crate) fn notify(&self) {
        self.poller.notify();
    }

    /// Makes some wait return after this time at the latest, with `relief` set. One-shot. While a relief is
    /// pending that comes as early, nothing happens, without a look at the clock.
    pub(crate) fn arm_relief(&self, after: Duration) {
        let period = u64::try_from(after.as_nanos()).unwrap_or(NEVER - 1);
        if self.relief.load(Ordering::Acquire) != NEVER
            && self.relief_after.load(Ordering::Relaxed) <= period
        {
            return;
        }
        let at = {
            let _timers = self.timers.lock();
            let at = self.poller.now().saturating_add(period).min(NEVER);
            if self.relief.load(Ordering::Relaxed) <= at {
                return;
            }
            self.relief_after.store(period, Ordering::Relaxed);
            self.relief.store(at, Ordering::Release);
            at
        };
        self.program(at);
    }

    /// Wakes all that wait here; they and all that come later get [`DriverShut`]. Threads in a
    /// blocking wait stay there until they are notified.
    pub(crate) fn shutdown(&self) {
        let mut ready = Vec::new();
        {
            let sources = self.sources.lock();
            self.shut.store(true, Ordering::SeqCst);
            sources.shut(&mut ready);
        }
        {
            let mut schedule = self.timers.lock();
            let timers = schedule.timers.len();
            schedule.timers.expire(u64::MAX, &mut ready);
            self.interest.fetch_sub(timers, Ordering::SeqCst);
        }
        wake_all(&mut ready);
    }

    /// Whether its threads are in this process.
    #[inline]
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_this()
    }

    /// # Panics
    ///
    /// If its threads are not in this process.
    #[track_caller]
    pub(crate) fn must_be_here(&self) {
        self.process.must_be_this();
    }

    /// Whether [`Driver::shutdown`] was called.
    pub(crate) fn is_shut(&self) -> bool {
        self.shut.load(Ordering::SeqCst)
    }

    /// Watches a descriptor. The key is for [`Driver::watch_more`] and [`Driver::forget`].
    pub(crate) fn watch(
        &self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        directions: Arc<Directions>,
    ) -> io::Result<u64> {
        let key = {
            let mut sources = self.sources.lock();
            if self.is_shut() {
                return Err(DriverShut.into());
            }
            sources.insert(fd.as_raw_fd(), directions)
        };
        if let Err(error) = self.poller.add(fd, key, interest) {
            let removed = self.sources.lock().remove(key);
            drop(removed);
            return Err(error);
        }
        self.add_interest();
        Ok(key)
    }

    /// Watches a registered descriptor for `interest`, which includes the directions of before.
    pub(crate) fn watch_more(
        &self,
        fd: BorrowedFd<'_>,
        key: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.poller.modify(fd, key, interest)
    }

    /// Stops watching a descriptor that is about to be closed or given back. In a child of `fork` it goes on to be
    /// watched for the parent, which has the descriptor under the same number.
    pub(crate) fn forget(&self, fd: BorrowedFd<'_>, key: u64) {
        if !self.is_here() {
            return;
        }
        // Nothing is left to do if the kernel has forgotten it already.
        let _ = self.poller.remove(fd, key);
        let removed = self.sources.lock().remove(key);
        if removed.is_some() {
            self.interest.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Adds a timer that wakes `waker` at `deadline`.
    pub(crate) fn add_timer(
        &self,
        deadline: Instant,
        waker: &Waker,
    ) -> Result<TimerKey, DriverShut> {
        let waker = waker.clone();
        let at = self.poller.nanoseconds(deadline);
        let (key, real) = {
            let mut schedule = self.timers.lock();
            if self.is_shut() {
                return Err(DriverShut);
            }
            let key = schedule.timers.insert(at, waker);
            (key, self.real(&schedule, at))
        };
        self.program(real);
        self.add_interest();
        Ok(key)
    }

    /// Replaces the waker of a timer. `false`: it fired already.
    pub(crate) fn rewake_timer(&self, key: TimerKey, waker: &Waker) -> bool {
        if !self.is_here() {
            return false;
        }
        // Cloned and dropped without the lock, whichever it is then.
        let mut waker = waker.clone();
        let mut schedule = self.timers.lock();
        let pending = schedule.timers.waker_mut(key);
        let is_pending = pending.map(|old| mem::swap(old, &mut waker)).is_some();
        drop(schedule);
        is_pending
    }

    /// Gives a timer another time. `false`: it fired already.
    pub(crate) fn reset_timer(&self, key: TimerKey, deadline: Instant) -> bool {
        if !self.is_here() {
            return false;
        }
        let at = self.poller.nanoseconds(deadline);
        let mut schedule = self.timers.lock();
        if !schedule.timers.reset(key, at) {
            return false;
        }
        let real = self.real(&schedule, at);
        drop(schedule);
        self.program(real);
        true
    }

    /// Cancels a timer. A timer that fired already is gone anyway.
    pub(crate) fn cancel_timer(&self, key: TimerKey) {
        if !self.is_here() {
            return;
        }
        let removed = self.timers.lock().timers.remove(key);
        if removed.is_some() {
            self.interest.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn add_interest(&self) {
        if self.interest.fetch_add(1, Ordering::SeqCst) == 0
            && let Some(hook) = self.on_interest.get()
        {
            hook();
        }
    }

    /// The timer descriptor expired: collects what is due and programs what comes next.
    fn expire(&self, outcome: &mut WaitOutcome, ready: &mut Vec<Waker>) {
        self.alarm.expired();
        // What the events have made ready is about to be woken: nothing is idle.
        if ready.is_empty() && self.timers.lock().is_paused() {
            self.move_if_idle();
        }
        let next = {
            let mut schedule = self.timers.lock();
            let now = self.poller.now();
            let at = schedule.now(now);
            let fired = schedule.timers.expire(at, ready);
            if fired != 0 {
                outcome.events += fired;
                self.interest.fetch_sub(fired, Ordering::SeqCst);
            }
            if self.relief.load(Ordering::Relaxed) <= now {
                self.relief.store(NEVER, Ordering::Release);
                outcome.relief = true;
            }
            let next = self.next_timer(&schedule).unwrap_or(NEVER);
            next.min(self.relief.load(Ordering::Relaxed))
        };
        self.program(next);
    }

    /// When the earliest timer is due, by the system's clock.
    fn next_timer(&self, schedule: &Schedule) -> Option<u64> {
        let next = schedule.timers.earliest()?;
        Some(self.real(schedule, next))
    }

    /// A time by the timers' clock, by the system's.
    fn real(&self, schedule: &Schedule, at: u64) -> u64 {
        match schedule.clock {
            Some(clock) => clock.real(at, self.poller.now()),
            None => at,
        }
    }

    /// Sees to it that the timer descriptor expires at `at` or earlier. Not under the lock of `timers`.
    fn program(&self, at: u64) {
        self.alarm.by(at, |at| self.poller.program_timer(at));
    }

    /// The calling thread's processor is the next one that the timer descriptor interrupts.
    pub(crate) fn bring_timer(&self) {
        self.alarm.again(|at| self.poller.program_timer(at));
    }
}

debug_struct!([P] DriverOver<P>, |it| interest: it.interest, shut: it.shut);
