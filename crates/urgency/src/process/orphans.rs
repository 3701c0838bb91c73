//! Children that were dropped before they were waited for. They go on, or were killed; and what is left of them, a
//! zombie, is reaped.
//!
//! # Where an orphan is
//!
//! 1. *Watched.* A driver has the orphan's pidfd, and a waker of the orphan that is no task's. When the child ends, the
//!    thread in the poller calls that waker, which reaps. So an orphan costs a descriptor and no task: it is in no
//!    account, has no level, and a runtime that drains does not wait for it.
//! 2. *Left.* There was no driver (the child was dropped on a plain thread of a program that never used a runtime), or
//!    no pidfd, or the driver ended before the child did. Then the child is in a list. Each child that is spawned, or
//!    dropped before its end, makes a new attempt with all of the list. So the number of zombies does not grow.
//!
//! A waker is called once: it takes the orphan out of its own state, so no two threads have it. The driver ends by
//! calling all wakers. Then the child has not ended, and goes to the list. But a child that was killed is about to
//! end, and often the end of the runtime has killed it, just before the driver ended. So the waker waits for its
//! end, until [`CANCEL_GRACE`] after the kill: a child that sleeps in the kernel holds nothing up for longer, and
//! no number of them does.
//!
//! The driver that watches is the one of the runtime of the code that drops the child, or else the global one. A drop
//! starts no runtime: that may fail.
//!
//! Rejected: a task for each orphan, which a drain would wait for, and which the limits of admission might refuse.

use crate::{
    reactor::{
        directions::{Direction, Directions},
        driver::Driver,
    },
    runtime::context::live_driver,
    sched::doors::shutdown::CANCEL_GRACE,
    sys::mutex::Mutex,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{
    io, mem,
    process::Child,
    sync::Arc,
    task::{Wake, Waker},
    time::Instant,
};

/// What nobody watches.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// The descriptor of a child that has not been reaped.
pub(super) fn pidfd(child: &Child) -> io::Result<OwnedFd> {
    Ok(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?)
}

/// Nobody waits for this child, which may still run. `killed`: when it was, if it was.
pub(super) fn adopt(child: Child, killed: Option<Instant>) {
    look();
    watch_or_leave(child, killed);
}

/// Makes a new attempt with all that nobody watches.
pub(super) fn look() {
    // Another thread that has the lock makes the attempt. In a child of `fork` that thread may not be there.
    let left = LEFT.try_lock().map(|mut left| mem::take(&mut *left));
    left.into_iter()
        .flatten()
        .for_each(|child| watch_or_leave(child, None));
}

fn watch_or_leave(mut child: Child, killed: Option<Instant>) {
    if goes_on(&mut child)
        && let Err(child) = watch(child, killed)
    {
        LEFT.lock().push(child);
    }
}

/// Reaps the child if it has ended. An error: it is no child of this process any more, since other code reaped it.
fn goes_on(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

/// Has a driver watch the child, or gives it back.
fn watch(child: Child, killed: Option<Instant>) -> Result<(), Child> {
    let Some(driver) = live_driver() else {
        return Err(child);
    };
    let Ok(pidfd) = pidfd(&child) else {
        return Err(child);
    };
    let directions = Arc::<Directions>::default();
    let readiness = directions.of(Direction::Read);
    // Nothing is known yet. With the registration the kernel reports that the child has ended meanwhile.
    readiness.retract(readiness.look());
    let interest = Direction::Read.interest();
    let Ok(key) = driver.watch(pidfd.as_fd(), interest, directions.clone()) else {
        return Err(child);
    };
    let orphan = Orphan(Mutex::new(Some(Watched {
        child,
        killed,
        pidfd,
        driver,
        key,
    })));
    let waker = Waker::from(Arc::new(orphan));
    if !readiness.watch(&waker) {
        waker.wake(); // It ended before that, or the driver did.
    }
    Ok(())
}

/// An orphan that a driver watches. It is the waker itself.
struct Orphan(Mutex<Option<Watched>>);

struct Watched {
    child: Child,
    /// When.
    killed: Option<Instant>,
    pidfd: OwnedFd,
    driver: Arc<Driver>,
    key: u64,
}

/// Waits for the end of a child that was killed then, for as long as that may take. Whether it has come.
pub(super) fn ends_soon(pidfd: &OwnedFd, killed: Instant) -> bool {
    let left = CANCEL_GRACE.saturating_sub(killed.elapsed());
    let mut ends = [PollFd::new(pidfd, PollFlags::IN)];
    let limit = Timespec::try_from(left).ok();
    limit.is_some_and(|limit| poll(&mut ends, Some(&limit)).is_ok_and(|ended| ended > 0))
}

impl Wake for Orphan {
    fn wake(self: Arc<Self>) {
        let watched = self.0.lock().take();
        let Some(mut watched) = watched else {
            return;
        };
        watched.driver.forget(watched.pidfd.as_fd(), watched.key);
        if let Some(killed) = watched.killed
            && goes_on(&mut watched.child)
        {
            ends_soon(&watched.pidfd, killed);
        }
        if goes_on(&mut watched.child) {
            LEFT.lock().push(watched.child);
        }
    }
}

/// How many are left.
#[cfg(all(test, not(miri)))]
pub(super) fn left() -> usize {
    LEFT.lock().len()
}
