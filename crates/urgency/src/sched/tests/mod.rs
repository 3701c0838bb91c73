//! What an operation of a program costs the scheduler, counted: [`steps`] counts how many workers are looked at,
//! [`costs`] are the tests, [`breadth`] by levels and stacks, and [`below`] by rings. What one expiry of relief does:
//! [`expiries`]. By how much an entry is overtaken: [`overtaking`]. And stacks for the tests of the scheduler's rooms.

mod below;
mod breadth;
mod costs;
pub(super) mod expiries;
mod overtaking;
pub(super) mod steps;

use super::{
    Forked, Kind,
    job::Job,
    stack::{Binding, Me, Stack},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// How long a test waits at most for what must come.
pub(super) const LIMIT: Duration = Duration::from_secs(20);

/// Waits until this is so.
pub(super) fn until(is_so: impl Fn() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < limit, "it does not come");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A fork that says that it ran.
#[repr(C)]
struct Says {
    forked: Forked,
    ran: AtomicBool,
}

impl Says {
    const KIND: Kind = Kind {
        // SAFETY: the fork is the first field of a `Says`.
        execute: |forked| unsafe { (*forked.cast::<Says>()).ran.store(true, Ordering::SeqCst) },
        // SAFETY: by the caller's promise.
        stolen: |forked| unsafe {
            Forked::init_thief(forked);
            forked
        },
        name: || "a fork of a test",
    };
}

/// Forks, to the private end of the deque. The fork is never freed. Whether it ran.
pub(super) fn fork(me: Me<'_>) -> &'static AtomicBool {
    let says: &'static Says = Box::leak(Box::new(Says {
        forked: Forked::new(&Says::KIND),
        ran: AtomicBool::new(false),
    }));
    // SAFETY: the fork stays valid, since it is never freed.
    unsafe { me.deque().push(std::ptr::from_ref(says).cast()) };
    &says.ran
}

/// A stack of this job, which the calling thread is.
pub(super) fn stack_of(job: &Arc<Job>) -> (Binding, Arc<Stack>) {
    let stack = Stack::new(&job.core);
    // SAFETY: the stack is new.
    let mut binding = unsafe { Binding::new(stack.clone()) };
    binding.take_up(job.clone());
    (binding, stack)
}

/// The same, in user code at this level, and its worker was revoked.
pub(super) fn revoked_at(job: &Arc<Job>, level: u8) -> (Binding, Arc<Stack>) {
    let (binding, stack) = stack_of(job);
    binding.me().set_level(level);
    binding.me().attention().leave(0, 8);
    assert_eq!(stack.attention.revoke(None), Some(0));
    (binding, stack)
}

/// By a closure that has bound its thread to `cpu`: its worker shows that it is there. A worker does where its stack
/// goes on, and a sleep may be over at once.
#[cfg(target_os = "linux")]
pub(super) fn show_place(cpu: i32) {
    let shows = |me: Option<Me<'_>>| me.is_some_and(|me| me.worker().place.is_on(cpu));
    while !Stack::with_current(shows) {
        crate::block_on(crate::time::sleep(Duration::from_millis(1)));
    }
}
