//! A clock that can stand still, for tests of what takes long: [`pause`], [`resume`], [`advance`].
//!
//! Each runtime has its own, in its driver (`reactor/clock.rs`).

use crate::reactor::driver::Driver;
use std::{sync::Arc, time::Duration};

fn driver(what: &str) -> Arc<Driver> {
    match crate::runtime::driver() {
        Ok(driver) => driver,
        Err(error) => panic!("the clock cannot be {what}: {error}"),
    }
}

/// Stops the clock of the calling code's runtime, for tests.
///
/// From now on [`Instant::now`](super::Instant::now) stands still. Timers of the runtime fire when the clock is moved
/// by [`advance`]; and if nothing else is to be done in the runtime, the clock goes on to the next timer by itself.
/// What other threads and devices do takes as long as ever, and the clock does not wait for it.
///
/// # Panics
///
/// If the clock is paused already.
///
/// ```
/// use urgency::time::{self, Duration, Instant};
///
/// let runtime = urgency::Runtime::builder().workers(1).build()?;
/// runtime.block_on(async {
///     time::pause();
///     let start = Instant::now();
///     time::sleep(Duration::from_secs(3600)).await; // at once
///     assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// });
/// # Ok::<(), urgency::BuildError>(())
/// ```
#[track_caller]
pub fn pause() {
    assert!(
        driver("paused").pause_clock(),
        "the clock is paused already"
    );
}

/// Lets a paused clock go on from the time that it shows.
///
/// # Panics
///
/// If the clock is not paused.
#[track_caller]
pub fn resume() {
    assert!(driver("resumed").resume_clock(), "the clock is not paused");
}

/// Moves a paused clock on, fires the timers that are due then, and lets others run once. The clock moves when the
/// future is first polled. It goes no further than 146 years from the runtime's start.
///
/// # Panics
///
/// If the clock is not paused.
///
/// ```
/// use urgency::time::{self, Duration, Instant};
///
/// let runtime = urgency::Runtime::builder().workers(1).build()?;
/// runtime.block_on(async {
///     time::pause();
///     let start = Instant::now();
///     time::advance(Duration::from_secs(60)).await;
///     assert_eq!(start.elapsed(), Duration::from_secs(60));
///     time::resume();
/// });
/// # Ok::<(), urgency::BuildError>(())
/// ```
pub async fn advance(duration: Duration) {
    assert!(
        driver("moved on").advance_clock(duration),
        "the clock is not paused; call `pause` before"
    );
    crate::yield_now().await;
}
