//! The timers' clock, where it can be stopped and moved: clock.rs says what for.

use super::{DriverOver, Schedule};
use crate::{
    reactor::{
        clock::{self, Clock},
        poller::Poller,
        readiness::wake_all,
    },
    sys::mutex::MutexGuard,
};
use std::{
    sync::atomic::Ordering,
    task::Waker,
    time::{Duration, Instant},
};

/// 146 years. [`DriverOver::advance_clock`] goes no further, so that there are later times for timers.
const FARTHEST: u64 = i64::MAX as u64 / 2;

impl<P: Poller> DriverOver<P> {
    /// A paused clock goes on to the earliest timer, if the runtime is idle.
    #[cold]
    pub(super) fn move_if_idle(&self) {
        let Some(_moves) = self.moves.try_lock() else {
            return;
        };
        if self.is_idle.get().is_none_or(|is_idle| is_idle()) {
            let mut schedule = self.timers.lock();
            let Some(next) = schedule.timers.earliest() else {
                return;
            };
            let mut ready = Vec::new();
            self.move_clock(&mut schedule, next, &mut ready);
            drop(schedule);
            wake_all(&mut ready);
        }
    }

    /// Moves the clock on, if it is paused, and takes the timers that are due then.
    fn move_clock(&self, schedule: &mut Schedule, to: u64, ready: &mut Vec<Waker>) {
        if let Some(clock) = schedule.clock.as_mut().filter(|clock| clock.is_paused()) {
            clock.move_to(to);
            let fired = schedule.timers.expire(to, ready);
            self.interest.fetch_sub(fired, Ordering::SeqCst);
        }
    }

    /// What the timers' clock shows.
    pub(crate) fn clock_now(&self) -> Instant {
        let schedule = self.timers.lock();
        match schedule.clock {
            Some(clock) => self.poller.instant(clock.now(self.poller.now())),
            None => Instant::now(),
        }
    }

    /// Stops the timers' clock. False if it was stopped before.
    pub(crate) fn pause_clock(&self) -> bool {
        clock::note_pause();
        let mut schedule = self.timers.lock();
        let now = self.poller.now();
        match &mut schedule.clock {
            None => schedule.clock = Some(Clock::paused(now)),
            Some(clock) if clock.is_paused() => return false,
            Some(clock) => clock.pause(now),
        }
        self.program_earliest(schedule);
        true
    }

    /// Lets the timers' clock go on. False if it is not paused.
    pub(crate) fn resume_clock(&self) -> bool {
        let mut schedule = self.timers.lock();
        let now = self.poller.now();
        match schedule.clock.as_mut().filter(|clock| clock.is_paused()) {
            Some(clock) => clock.resume(now),
            None => return false,
        }
        self.program_earliest(schedule);
        true
    }

    /// Moves the timers' clock on and wakes what is due then. False if it is not paused.
    pub(crate) fn advance_clock(&self, by: Duration) -> bool {
        let mut ready = Vec::new();
        {
            let mut schedule = self.timers.lock();
            if !schedule.is_paused() {
                return false;
            }
            let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
            let now = schedule.now(0);
            let to = now.saturating_add(by).min(FARTHEST.max(now));
            self.move_clock(&mut schedule, to, &mut ready);
        }
        wake_all(&mut ready);
        true
    }

    fn program_earliest(&self, schedule: MutexGuard<'_, Schedule>) {
        let next = self.next_timer(&schedule);
        drop(schedule);
        next.into_iter().for_each(|next| self.program(next));
    }
}
