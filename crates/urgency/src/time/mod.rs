//! Time: sleeping, ticking, and limits on how long something may take.
//!
//! Timers belong to the driver of the runtime, in one heap, and fire by one timer descriptor with the
//! precision of the kernel's clock (`CLOCK_MONOTONIC`). They fire in the order of their deadlines and never
//! early. A pending timer is a waiting future as a socket is: nothing ticks, and a program without
//! timers pays nothing. A sleep starts when it is made, not when it is first awaited.
//!
//! The blocking form, for closures, is [`block_on`](crate::block_on) around any of them.
//!
//! A process that has no descriptors left when its runtime is built has timers all the same, by a thread that waits
//! for the earliest (`spare_clock`).
//!
//! The heap of timers is the reactor's (`reactor/timers.rs`), `sleep` is the one future that uses it; the others are
//! made of that. `clock` and `instant` are for tests in which time stands still.

pub(crate) mod clock;
mod instant;
mod interval;
mod sleep;
mod spare_clock;
mod timeout;

pub use clock::{advance, pause, resume};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Timeout, timeout, timeout_at};

/// The errors of this module.
pub mod error {
    pub use super::timeout::Elapsed;
}

#[cfg(test)]
mod tests;

pub use std::time::Duration;

/// A time that is reached by a paused clock only, for durations that overflow the clock: a century from now.
fn far(now: Instant) -> Instant {
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    now.checked_add(CENTURY).unwrap_or(now)
}

/// `duration` from now.
fn after(duration: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(duration).unwrap_or_else(|| far(now))
}
