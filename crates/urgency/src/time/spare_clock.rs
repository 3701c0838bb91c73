//! A clock for timers of runtimes that have no driver, because the process had no descriptors left.
//!
//! One thread of the process waits for the earliest timer, and ends when there is none. A program in that state needs
//! no more: timers fire in order and never early, as a driver's timers do. There are two differences. First, a runtime
//! that ends does not find its timers here: a future that is dropped cancels its own timer, and a stack that blocks on
//! a timer goes on when its time has come. Second, this thread calls the wakers itself, while a driver's expiry wakes a
//! thread of the runtime, which calls them.
//!
//! Rejected: to give the wait of an idle worker a limit. A spare thread would have to wait for the time and for a
//! delivery at once, in the mailbox of every runtime, for a state that hardly any program is ever in.

use crate::{
    reactor::timers::{TimerKey, Timers},
    sys::mutex::Mutex,
};
use std::{
    io, mem,
    sync::{Condvar, LazyLock, PoisonError},
    task::Waker,
    thread,
    time::{Duration, Instant},
};

struct State {
    timers: Timers,
    /// Whether the thread looks at `timers` before it ends.
    is_served: bool,
}

static STATE: Mutex<State> = Mutex::new(State {
    timers: Timers::new(),
    is_served: false,
});

/// The earliest time has changed.
static EARLIER: Condvar = Condvar::new();

/// The zero of the timers.
static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

fn nanoseconds(at: Instant) -> u64 {
    let since = at.saturating_duration_since(*BEGIN).as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX)
}

/// When a timer of this deadline is due: rounded up, so that none is early.
fn due(deadline: Instant) -> u64 {
    nanoseconds(deadline).saturating_add(1)
}

/// Adds a timer that wakes `waker` at `deadline`.
///
/// # Errors
///
/// If the system refuses the thread.
pub(super) fn add(deadline: Instant, waker: &Waker) -> io::Result<TimerKey> {
    let waker = waker.clone();
    let at = due(deadline);
    let mut state = STATE.lock();
    if !state.is_served {
        thread::Builder::new()
            .name("urgency-clock".into())
            .spawn(serve)?;
        state.is_served = true;
    }
    let key = state.timers.insert(at, waker);
    drop(state);
    EARLIER.notify_one();
    Ok(key)
}

/// Replaces the waker of a timer. `false`: it fired already.
pub(super) fn rewake(key: TimerKey, waker: &Waker) -> bool {
    // Dropped without the lock, whichever it is.
    let mut waker = waker.clone();
    let mut state = STATE.lock();
    let pending = state.timers.waker_mut(key);
    let is_pending = pending.map(|old| mem::swap(old, &mut waker)).is_some();
    drop(state);
    is_pending
}

/// Gives a timer another time. `false`: it fired already.
pub(super) fn reset(key: TimerKey, deadline: Instant) -> bool {
    let is_pending = STATE.lock().timers.reset(key, due(deadline));
    EARLIER.notify_one();
    is_pending
}

/// Cancels a timer. One that fired already is gone anyway.
pub(super) fn cancel(key: TimerKey) {
    let removed = STATE.lock().timers.remove(key);
    drop(removed);
}

/// The thread.
fn serve() {
    let mut ready = Vec::new();
    let mut state = STATE.lock();
    loop {
        let now = nanoseconds(Instant::now());
        state.timers.expire(now, &mut ready);
        if !ready.is_empty() {
            drop(state);
            crate::reactor::readiness::wake_all(&mut ready);
            state = STATE.lock();
            continue;
        }
        let Some(earliest) = state.timers.earliest() else {
            state.is_served = false;
            return;
        };
        let left = Duration::from_nanos(earliest - now);
        let waited = EARLIER.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
