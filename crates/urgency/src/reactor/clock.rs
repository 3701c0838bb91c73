//! The clock of a driver, which can stand still.
//!
//! The clock is only there once it was paused; without it, the driver's times are the system's. All times are
//! nanoseconds since the driver was made.
//!
//! # States
//!
//! - *paused*: the clock shows `base`.
//! - *running*: the clock shows `base`, and what has passed since `since`.
//!
//! While the clock is paused and the runtime has nothing to do but wait for a timer, the driver moves the clock on to
//! that timer (`Driver::expire`). To notice this, the driver looks at the runtime each [`LOOK`] of real time.

#![cfg(not(urgency_loom))]

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether any clock was ever paused.
static EVER_PAUSED: AtomicBool = AtomicBool::new(false);

/// From now on the time is asked of the runtime's clock.
pub(super) fn note_pause() {
    EVER_PAUSED.store(true, Ordering::SeqCst);
}

/// Whether the time must be asked of a driver's clock: some clock was paused in this process.
#[inline]
pub(crate) fn was_ever_paused() -> bool {
    EVER_PAUSED.load(Ordering::Relaxed)
}

/// After so many nanoseconds a driver with a paused clock looks again whether its runtime is idle.
const LOOK: u64 = 100_000;

/// See the module's text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: u64,
    since: Option<u64>,
}

impl Clock {
    /// Stands still at `now`.
    pub(crate) fn paused(now: u64) -> Self {
        Clock {
            base: now,
            since: None,
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// What it shows at a real time.
    pub(crate) fn now(&self, real: u64) -> u64 {
        let passed = self.since.map_or(0, |since| real.saturating_sub(since));
        self.base.saturating_add(passed)
    }

    /// The real time at which to look for a timer that is due at `at`.
    pub(crate) fn real(&self, at: u64, real_now: u64) -> u64 {
        match self.since {
            Some(since) => since.saturating_add(at.saturating_sub(self.base)),
            None if at <= self.base => real_now,
            None => real_now.saturating_add(LOOK),
        }
    }

    /// Stands still from now on.
    pub(crate) fn pause(&mut self, real: u64) {
        *self = Clock::paused(self.now(real));
    }

    /// Runs from now on.
    pub(crate) fn resume(&mut self, real: u64) {
        self.since = Some(real);
    }

    /// Goes on to a later time.
    pub(crate) fn move_to(&mut self, at: u64) {
        self.base = self.base.max(at);
    }
}
